// Package commitstatus reports the state of commits to a Git forge.
//
// A caller derives the state of each commit anew every time. This package decides:
//   - which state is posted, and when (Enter, Overtake, Begin, WithResults, Prune: pure functions
//     over the marks; there is one mark per commit and context);
//   - the words (Shorten, Refusal, ContextName: short, printable, no running clock);
//   - how a status reaches the forge (Forge is one interface with one file per forge. The
//     Deliverer posts outside of the reconcile, so that a forge that is down never delays a rollout).
//
// The way of one status:
//
//	reconcile: WithResults(marks, Deliverer.Results) -> Enter, Overtake, Prune -> Begin
//	           -> status write -> Deliverer.Enqueue(marks)
//	worker:    read the forge, if it may show something else than the mark -> Post
//	           -> Results, Notify -> reconcile
//
// A mark names a status before the status is posted. So after the end of a process, the forge shows either the
// accepted status of the mark or its status under way. One read of the forge shows which, and no status is lost. A
// status is posted twice only if the forge had accepted it but did not show it at that read.
//
// The functions over marks and texts take the time as an argument. Only the Deliverer and the HTTP clients have a
// clock, and tests can replace it.
package commitstatus
