package rollout

import "github.com/addonflow/addonflow/api/v1alpha1"

// Progression is the progress of one install placement, in OCM's terms.
type Progression struct {
	Placement v1alpha1.PlacementReference
	// Selected counts the clusters that the placement selects. Configured counts the members
	// that belong to it; a member belongs to the last placement that selects it.
	Selected, Configured int
	// InFlight counts clusters with a slot. Done counts clusters that run the target, verified and soaked, and
	// clusters that the target does not change.
	InFlight, Done int
	// Failed counts clusters that failed with the target, TimedOut those past their deadline.
	Failed, TimedOut int
}

// Completed reports whether every cluster of the placement runs the target.
func (p Progression) Completed() bool { return p.Configured > 0 && p.Done == p.Configured }

// progressions counts the clusters of each install placement, in declared order.
func (p *planner) progressions() []Progression {
	if len(p.install) == 0 {
		return nil
	}
	all := make([]Progression, len(p.install))
	for i, pl := range p.install {
		all[i].Placement = v1alpha1.PlacementReference{Namespace: pl.Namespace, Name: pl.Name}
		for _, g := range pl.Groups {
			all[i].Selected += len(g.Clusters)
		}
	}
	for i := range p.units {
		u := &p.units[i]
		if !u.member || u.placement < 0 {
			continue
		}
		c := &all[u.placement]
		c.Configured++
		switch {
		case u.state.InFlight():
			c.InFlight++
		case u.state == Done || u.state == Unchanged:
			c.Done++
		case u.state == Failed:
			c.Failed++
		case u.state == TimedOut:
			c.TimedOut++
		}
	}
	return all
}
