// Package commitstatus reports the state of commits to a Git forge.
//
// What a commit should say is derived by its callers, anew each time. This package answers:
//   - what of it is posted, and when (Enter, Overtake, Begin, WithResults, Prune: pure functions
//     over the marks, of which there is one per commit and context);
//   - in which words (Shorten, Refusal, ContextName: short, printable, no running clock);
//   - how it reaches the forge (Forge, one interface with one file per forge, and the
//     Deliverer, which posts off the reconcile path, so that a forge that is down never
//     delays a rollout).
//
// The way of one status:
//
//	reconcile: WithResults(marks, Deliverer.Results) -> Enter, Overtake, Prune -> Begin
//	           -> status write -> Deliverer.Enqueue(marks)
//	worker:    read the forge, if it may show something else than the mark -> Post
//	           -> Results, Notify -> reconcile
//
// A mark names what is being posted before it is posted. After the end of a process the
// forge therefore shows what the mark has as accepted or as being posted, and one read says
// which. So nothing is lost. A status is posted twice only if the forge had accepted it and
// did not show it when it was read.
//
// The marks and the text take the time as an argument; only the Deliverer and the HTTP
// clients have a clock, and that one can be replaced.
package commitstatus
