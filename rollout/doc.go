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
// The ledger holds one record per cluster: {revision, stage, state, admitted, since}.
// What a plan needs to know of the past it reads there. How a plan comes about:
//
//	attach    ledger -> a record per cluster                           (settle.go, records.go)
//	roles     which clusters are in the install set                    (fleet.go)
//	policy    strategy, stages or placements -> tracks of steps        (policy.go, groups.go, rolling.go)
//	remove    clusters that leave, within their budget                 (remove.go, package removal)
//	adopt     content without a record is in flight from now           (settle.go)
//	settle    next(record, observation, pace, now) -> record, reason   (next.go, settle.go)
//	admit     free slots -> retargets, failed, the others, joiners     (admit.go)
//	fit       the ledger within its limit, as much as it has room for  (ledger.go)
//	report    phase, counts, stages and a reason for every cluster     (report.go, verdict.go, words.go)
//
// A record changes in two places only: in next, by what was observed, and in grant, by an
// admission. A track is a sequence of steps worked in order, and tracks run in parallel; a
// step is a set of clusters with a pace (steps.go). Every strategy is one of those shapes.
//
// Times in the ledger have the precision of a second and are rounded up, so that a
// soak or deadline may be a second longer than declared and is never shorter.
package rollout
