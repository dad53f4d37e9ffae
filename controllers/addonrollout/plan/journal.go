package plan

import (
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// Decisions of one turn, about clusters and about stages.
type Decisions struct {
	Clusters, Steps []journal.Decision
}

// decisions returns the changes of the turn: of records, stages and the phase. step is by how much the operator's
// clock was set since the last turn; ordered are the decisions of orders.
func (p *Plan) decisions(step time.Duration, ordered []journal.Decision) Decisions {
	ro, next := p.Observed.Rollout, &p.Next
	var d Decisions
	if p.Input != nil { // a pace that cannot work also changes records
		// Both ledgers must have times of the present clock.
		before, after := standings(rollout.Shift(ro.Status.Ledger, step)), standings(next.Ledger)
		for i := range after {
			if c, ok := p.Planned.Why(after[i].Cluster); ok && c.State != rollout.Waiting { // the record did not change because of what the cluster waits for
				after[i].Reason = c.Reason
			}
		}
		d.Clusters = journal.Clusters(before, after)
		var stages map[string]int
		if !p.Input.Ended {
			stages = sizes(next.Stages)
		}
		if len(d.Clusters) > 0 {
			p.joinStages(d.Clusters, before)
			p.joinStages(d.Clusters, after)
		}
		d.Steps = journal.Steps(d.Clusters, before, after, stages)
	}
	var about []journal.Decision
	if next.Target != nil { // otherwise nothing was planned yet, and an event says why
		about = slices.Concat(journal.GatesRemoved(ro.Status, *next, ro.Spec), journal.Rollout(ro.Status, *next))
	}
	if step != 0 {
		about = append(about, journal.Decision{Kind: journal.ClockStepped, Reason: "by " + step.Round(time.Millisecond).String() + "; the times of what is under way moved with it"})
	}
	for i := range about {
		if gone := ro.Spec.Removal; gone != nil && (about[i].Kind == journal.RemovalStarted || about[i].Kind == journal.RemovalEnded) {
			about[i].Commit, about[i].Revision = gone.Commit, ""
		}
	}
	d.Steps = journal.InOrder(slices.Concat(ordered, about, d.Steps), next.Stages)
	NameCommits(d.Clusters, next)
	NameCommits(d.Steps, next)
	return d
}

// joinStages counts each cluster that no decision is about in its current stage. The record of a cluster names the
// stage that admitted it, which may be another one.
func (p *Plan) joinStages(decided []journal.Decision, all []journal.Standing) {
	about := make(map[string]bool, len(decided))
	for i := range decided {
		about[decided[i].Cluster] = true
	}
	for i := range all {
		if c, ok := p.Planned.Why(all[i].Cluster); ok && c.Stage != "" && !about[c.Name] {
			all[i].Stage = c.Stage
		}
	}
}

// standings returns the records of a ledger. If the ledger cannot be read, there are none, and the planner reports
// the error.
func standings(ledger v1alpha1.Ledger) []journal.Standing {
	records, err := rollout.Records(ledger)
	if err != nil {
		return nil
	}
	found := make([]journal.Standing, len(records))
	for i, r := range records {
		found[i] = journal.Standing{Cluster: r.Cluster, Revision: r.Revision, Stage: r.Stage, State: r.State, Since: r.Since}
	}
	return found
}

// sizes is the number of clusters per stage.
func sizes(stages []v1alpha1.StageStatus) map[string]int {
	sizes := make(map[string]int, len(stages))
	for _, s := range stages {
		sizes[s.Name] = int(s.Counts.Total)
	}
	return sizes
}

// NameCommits sets the commit of each decision to that of its revision. A cluster that returns may run content that
// was superseded.
func NameCommits(all []journal.Decision, status *v1alpha1.AddOnRolloutStatus) {
	for i := range all {
		d := &all[i]
		switch {
		case d.Commit != "":
		case status.Target != nil && (d.Revision == status.Target.Digest || d.Revision == ""):
			d.Commit = status.Target.Commit
		case status.Stable != nil && d.Revision == status.Stable.Digest:
			d.Commit = status.Stable.Commit
		default:
			if i := slices.IndexFunc(status.History, func(h v1alpha1.HistoryEntry) bool { return h.Target.Digest == d.Revision }); i >= 0 {
				d.Commit = status.History[i].Target.Commit
			}
		}
	}
}
