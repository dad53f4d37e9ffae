package plan

import (
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Dependency is an add-on that the rollout depends on, as its own planner sees it.
type Dependency struct {
	v1alpha1.Dependency
	// Stopped says why the dependency is verified on no cluster now; "": Verified says where it is verified.
	// Absent: it is stopped because the add-on does not exist.
	Stopped string
	Absent  bool
	// Verified has every cluster that has the add-on or is to have it. The value is true if the content is verified
	// there.
	Verified map[string]bool
}

// AbsentDependency is an add-on that does not exist, with the reason in words.
func AbsentDependency(d v1alpha1.Dependency, why string) Dependency {
	return Dependency{Dependency: d, Stopped: why, Absent: true}
}

// DependencyOf plans the rollout of a dependency as the operator would now. It returns the facts that the dependent
// add-ons need, and the memory for the next turn. A cluster is verified if its record is Done, or if the content does
// not change it. reported is a conflict that the observation does not show; nil: none.
func DependencyOf(d v1alpha1.Dependency, o *Observation, reported error) (Dependency, Memory, error) {
	found := Dependency{Dependency: d, Verified: map[string]bool{}}
	p, err := Preview(o, reported)
	if err != nil {
		if _, known := verdictOf(err); !known {
			return found, o.Memory, err
		}
		found.Stopped = "which is stalled"
		return found, o.Memory, nil
	}
	switch phase := p.Planned.Phase; {
	case p.Input.Contested != "": // the content of its clusters is not known, or another owner's
		found.Stopped = "which has an ownership conflict"
	case phase == v1alpha1.PhaseFailed || o.stranded() != "":
		found.Stopped = "which is " + string(v1alpha1.PhaseFailed)
	case o.Override.Returns() && phase != v1alpha1.PhaseSucceeded: // even while it is held or suspended
		found.Stopped = "which is " + string(v1alpha1.PhaseRollingBack)
	}
	for _, c := range p.Planned.Clusters {
		switch c.State {
		case rollout.Ignored, rollout.Gone, rollout.Removing:
		default:
			found.Verified[c.Name] = c.State == rollout.Done || c.State == rollout.Unchanged
		}
	}
	return found, p.Memory, nil
}

// waits names the add-on for which a cluster waits; "": none.
func (o *Observation) waits(cluster string) string {
	if len(o.Cycle) > 0 {
		return "waits for add-on " + o.Cycle[1] + ", which waits for it: " + cycleText(o.Cycle)
	}
	for i := range o.Dependencies {
		d := &o.Dependencies[i]
		verified, member := d.Verified[cluster]
		switch {
		case d.Optional && (d.Absent || d.Stopped == "" && !member):
		case d.Stopped != "":
			return "waits for add-on " + d.AddOn + ", " + d.Stopped
		case !member:
			return "waits for add-on " + d.AddOn + ", which is not to be installed here"
		case !verified:
			return "waits for add-on " + d.AddOn + " to be verified here"
		}
	}
	return ""
}

// cycleMessage says which add-ons wait for each other, and how to end it.
func (o *Observation) cycleMessage() string {
	return "dependsOn is a cycle: " + cycleText(o.Cycle) + "; remove one of them from it in Git"
}

// cycleText is "agent -> base -> agent".
func cycleText(cycle []string) string { return strings.Join(cycle, " -> ") }
