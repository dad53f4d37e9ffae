// Package rollout decides which clusters of an add-on may have which content now.
//
//	observed placements, works, health ─┐
//	policy (AddOnRollout.spec)  ────────┼─ New ─> Plan ─> ledger (compare-and-swap) ─> works
//	ledger (AddOnRollout.status), now ──┘            └─> phase, counts, words ─> commit status
//
// New is a function of its input: no client, no clock, no log, no goroutine, no randomness. Time is Input.Now. The
// caller reads, calls New, and writes Plan.Ledger with the resource version that it read. After the API server
// accepted that write, the caller carries out Plan.Actions. If the write is refused, the caller drops the plan and
// never retries it.
//
// The ledger holds one record per cluster: {revision, stage, state, failed, admitted, since} and flags (see Record).
// A record says which content a cluster was admitted to, and how that ended. The input has the history of the
// rollout: its stable revision, since when it has its target, whether it reverts or has ended, and the verdicts of
// gates. The steps of a plan:
//
//	attach    ledger -> a record per cluster                           (observe.go, records.go)
//	roles     which clusters are in the install set                    (fleet.go)
//	policy    strategy, stages or placements -> tracks of steps        (policy.go, groups.go, rolling.go)
//	adopt     clusters that run content without a record get one       (observe.go)
//	complete  in a revert, the members that no step selects; limits    (policy.go)
//	remove    clusters that leave, within their budget                 (remove.go, package removal)
//	observe   next(record, observation, pace, now) -> record, reason   (next.go, observe.go)
//	admit     free slots -> retargets, failed, the others, joiners     (admit.go, gates.go)
//	fit       as many admissions as fit into the ledger's limit        (ledger.go)
//	report    phase, counts, stages and a reason for every cluster     (report.go, verdict.go, words.go)
//
// Only next changes a record because of an observation, and only grant because of an admission. Five other functions
// change records:
//
//	adopt       makes a record for a cluster that runs content without one  (observe.go)
//	retry       clears failures, by order                                   (orders.go)
//	carryOver   gives a record to new content that renders the same works   (observe.go)
//	relinquish  drops a record of reverted or quarantined content that the  (observe.go)
//	            cluster never got
//	records     drops records at the end of a rollout                       (ledger.go)
//
// A step is a set of clusters with a pace. A track is a sequence of steps that are worked in order; tracks run in
// parallel (steps.go). Every strategy becomes tracks of steps.
//
// Times in the ledger are rounded up, so that a soak or deadline is never shorter than declared. Usually the
// precision is a second. Records without a slot have a precision of a minute. If the ledger is almost full, times are
// coarser, up to a day (grains in ledger.go).
package rollout
