package rollout

import (
	"slices"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Order is an order of a user: another attempt for failed clusters (retry), or the end of the soaks of a stage
// (promote).
type Order struct {
	// Verb is retry or promote. Other orders change the target and no record.
	Verb v1alpha1.OrderVerb
	// Stage to promote.
	Stage string
	// Clusters to retry; none: every cluster that failed.
	Clusters []string
}

// Affects reports whether the order changes the record, if target is the target.
func (o Order) Affects(r Record, target string) bool {
	switch {
	case r.Revision != target:
		return false
	case o.Verb == v1alpha1.OrderPromote:
		return r.State == Soaking && r.Stage == o.Stage
	case o.Verb == v1alpha1.OrderRetry:
		return r.failed() && (len(o.Clusters) == 0 || slices.Contains(o.Clusters, r.Cluster))
	}
	return false
}

// retry clears failures, and returns the clusters that had failed. A cluster whose works are written is in flight
// again: at once, or when it is available again. Any other cluster waits to be admitted.
func (p *planner) retry() []*unit {
	var tried []*unit
	for u := range p.recorded() {
		for _, o := range p.in.Orders {
			if o.Verb == v1alpha1.OrderRetry && o.Affects(*u.record, p.target) {
				again := *u.record
				again.Failed = false
				if failure(again.State) { // a cluster in flight keeps its slot; a parked one gets a slot when it returns
					again.State, again.Admitted = Left, p.second
					tried = append(tried, u)
				}
				u.record = &again
			}
		}
	}
	return tried
}

// restage makes retried clusters that wait for their admission count in the stages that select them now. So the
// stages in which they failed do not wait for them.
func (p *planner) restage(tried []*unit) {
	for _, u := range tried {
		if u.step != nil && u.record.State == Left && !p.at(u.c, u.record.Revision) {
			moved := *u.record
			moved.Stage, u.record = u.step.name, &moved
		}
	}
}

// promoted reports whether an order ends the soak of a cluster.
func (p *planner) promoted(r *Record) bool {
	return slices.ContainsFunc(p.in.Orders, func(o Order) bool {
		return o.Verb == v1alpha1.OrderPromote && o.Affects(*r, p.target)
	})
}
