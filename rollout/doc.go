// Package rollout decides which clusters of an add-on may have which content now.
//
//	observed placements, works, health ─┐
//	policy (AddOnRollout.spec)  ────────┼─ New ─> Plan ─> ledger (compare-and-swap) ─> works
//	ledger (AddOnRollout.status), now ──┘            └─> phase, counts, words ─> commit status
//
// It is a function of its input: no client, no clock, no log, no goroutine, no
// randomness. Time is Input.Now. The caller reads, calls New, and writes Plan.Ledger
// with the resource version it read. After the API server accepted that write, the caller
// carries out Plan.Actions. If the write is refused, the caller drops the plan and never
// retries it.
//
// The ledger holds one record per cluster: {revision, stage, state, failed, admitted, since} and
// flags (see Record). A plan knows from these records only what a cluster was admitted to and how
// that ended. The input says what is past of the rollout itself: its stable revision, since when it
// has its target, whether that reverts or has ended, and the verdicts of gates. The steps of a plan:
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
// An observation changes a record in next only, an admission in grant only. Besides these, adopt
// makes records, an order to retry clears failures (orders.go), new content that renders the same
// works takes over the record (carryOver), and records are dropped: of reverted or quarantined content
// that the cluster never got (relinquish), and at the end of a rollout (records in ledger.go). A step is a set of clusters with a pace. A track is a sequence of steps
// worked in order; tracks run in parallel (steps.go). Every strategy becomes tracks of steps.
//
// Times in the ledger have the precision of a second and are rounded up, so that a
// soak or deadline may be a second longer than declared and is never shorter.
package rollout
