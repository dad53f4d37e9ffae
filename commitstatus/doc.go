// Package commitstatus tells a Git forge how a commit fares, and remembers what
// the forge was told.
//
// It answers three questions:
//   - what may be said next about a commit, and when (the ledger: Want, Due,
//     Settle, Supersede, Prune; pure functions over a list of Report that the
//     caller keeps in a Kubernetes status);
//   - in which words (Describe, ContextName: short, printable, never cut in the
//     middle of a character, no running clock);
//   - how it reaches the forge (Forge, one interface with one file per forge, and
//     the Deliverer, which posts off the reconcile path, so that a forge that is
//     down never delays a rollout).
//
// The way of one status:
//
//	reconcile: Settle(ledger, Deliverer.Results) -> Want(...) -> Prune -> status write
//	           -> Deliverer.Enqueue(ledger) -> requeue after Next(ledger, now)
//	worker:    Settle what this process already knows -> Due? -> read the forge once
//	           where the truth is not known -> Post -> Results, Notify -> reconcile
//
// The package imports no Kubernetes code. The ledger and the text take the time
// as an argument; only the Deliverer and the HTTP clients have a clock, and that
// one can be replaced.
package commitstatus
