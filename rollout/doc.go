// Package rollout decides which clusters of an add-on may have which content now.
//
//	observed placements, works, health ─┐
//	policy (AddOnRollout.spec)  ────────┼─ New ─> Plan ─> ledger (compare-and-swap) ─> works
//	ledger (AddOnRollout.status), now ──┘            └─> phase, counts, words ─> commit status
//
// It is a function of its input: no client, no clock, no log, no goroutine, no
// randomness. Time is Input.Now. The caller reads, calls New, writes Plan.Ledger
// with the resource version it read, and only when that write was accepted carries
// out Plan.Actions. A lost write means that the plan is dropped, never retried.
//
// How a plan comes about, a file each:
//
//	roles     who is in question: members, leavers, strangers          (fleet.go)
//	ledger    admissions so far -> an entry per cluster                (ledger.go, positions.go)
//	policy    strategy, stages or placements -> tracks of steps        (policy.go, groups.go, rolling.go)
//	settle    entry + observation -> state, never a sticky condition   (classify.go, whole.go)
//	admit     free slots -> retargets, failed, the others, joiners     (admit.go, steps.go)
//	remove    leavers within their budget                              (removal.go)
//	fit       the ledger within its limit, as much as it has room for  (fit.go, encode.go)
//	report    phase, counts, stages and a reason for every cluster     (report.go, verdict.go, words.go)
//
// A track is a sequence of steps worked in order, and tracks run in parallel; a
// step is a set of clusters with a pace. Every strategy is one of those shapes.
//
// Times in the ledger have the precision of a second and are rounded up, so that a
// soak or deadline may be a second longer than declared and is never shorter.
package rollout
