package rollout

import "github.com/addonflow/addonflow/api/v1alpha1"

// Progression is where one install placement stands, in OCM's terms.
type Progression struct {
	Placement v1alpha1.PlacementReference
	// Selected counts the clusters that the placement selects; Configured those of the
	// install set that it has, which a later placement may take from it.
	Selected, Configured int
	// InFlight clusters hold a slot, Done ones run the target, verified and soaked.
	InFlight, Done int
	// Failed clusters reported a failure of the target, TimedOut ones are past their
	// deadline.
	Failed, TimedOut int
}

// Completed tells whether everybody the placement has runs the target.
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
