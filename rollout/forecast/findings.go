package forecast

import (
	"fmt"
	"slices"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// findings are why the rollout did not succeed in the simulation. The texts about what holds a
// stage are those of the planner.
func (r *run) findings() []Finding {
	var found []Finding
	for _, name := range r.order {
		if r.late[name] {
			found = append(found, Finding{
				Field:   r.paceField(name, ".progressDeadline"),
				Message: fmt.Sprintf("clusters of %s time out if they take %s", name, shown(r.took.PerCluster)),
				Hint:    "give them a longer progressDeadline",
			})
		}
	}
	switch {
	case len(found) > 0:
	case r.beyond:
		found = append(found, r.tooLong())
	case r.last.Phase != v1alpha1.PhaseSucceeded:
		found = append(found, r.endless())
	}
	return found
}

// open is the name of the first stage that is not complete; "": there is none.
func (r *run) open() string {
	for _, st := range r.last.Stages {
		if st.Phase != rollout.StageComplete && st.Phase != rollout.StageNothingToDo {
			return st.Name
		}
	}
	return ""
}

// tooLong is the finding about a rollout that reaches the horizon.
func (r *run) tooLong() Finding {
	name := r.open()
	f := Finding{
		Field:   r.paceField(name, ".minSuccessTime"),
		Message: "the rollout takes longer than a year: " + r.course(name).text(),
		Hint:    "shorten minSuccessTime, or raise maxConcurrency",
	}
	if r.windowed(name) {
		f.Field, f.Hint = r.paceField(name, ".gates.before"), f.Hint+", or open the window for longer"
	}
	return f
}

// endless is the finding about a rollout that is at rest and has not succeeded.
func (r *run) endless() Finding {
	f := Finding{Message: "the rollout never ends: " + r.last.Message}
	name, spec := r.open(), r.in.Spec
	i := r.declared(name)
	switch s := spec.Strategy; {
	case spec.Suspend:
		f.Field, f.Hint = "suspend", "remove suspend"
	case r.last.Phase == v1alpha1.PhaseProgressing: // nothing holds it, such as with a full ledger
		f.Field = r.paceField(name, "")
	case i >= 0 && rollout.HoldsStage(spec.Stages[i]):
		f.Field, f.Hint = r.paceField(name, ".maxConcurrency"), "give a number from 1 to start the stage"
	case i >= 0:
		f.Field = r.paceField(name, ".placement")
	case s != nil && s.RollingUpdateWithPlacement != nil:
		f.Field = "strategy.rollingUpdateWithPlacement"
		if r.last.Outcome == rollout.Success {
			f.Hint = "declare stages, or another strategy, to move the rest"
		}
	default: // of a strategy, only a mandatory group can hold a rollout
		f.Field = r.paceField(name, mandatoryField)
	}
	return f
}

// declared is the position of the declared stage of the name; -1: there is none.
func (r *run) declared(name string) int {
	return slices.IndexFunc(r.in.Spec.Stages, func(st v1alpha1.Stage) bool { return st.Name == name })
}

// mandatoryField has the mandatory groups of a strategy.
const mandatoryField = ".mandatoryDecisionGroups"

// paceField is a field of a stage's pace, such as .minSuccessTime; "" is the pace itself.
func (r *run) paceField(stage, last string) string {
	spec := r.in.Spec
	if i := r.declared(stage); i >= 0 {
		return fmt.Sprintf("stages[%d]%s", i, last)
	}
	if s := spec.Strategy; s != nil {
		return "strategy" + field(s.Progressive, s.ProgressivePerGroup, last)
	}
	track := r.trackOf(stage)
	for i, ref := range installedBy(spec) {
		s := spec.Install.Placements[i].RolloutStrategy
		mine := track == ref.Name || track == ref.Namespace+"."+ref.Name
		if last == mandatoryField { // one unknown group holds every track
			mine = len(mandatoryOf(s.Progressive, s.ProgressivePerGroup)) > 0
		}
		if mine {
			return fmt.Sprintf("installStrategy.placements[%d].rolloutStrategy", i) + field(s.Progressive, s.ProgressivePerGroup, last)
		}
	}
	return "installStrategy"
}

// field is a field in the block of a strategy that is used.
func field(p *clusterv1alpha1.RolloutProgressive, g *clusterv1alpha1.RolloutProgressivePerGroup, name string) string {
	switch {
	case p != nil:
		return ".progressive" + name
	case g != nil:
		return ".progressivePerGroup" + name
	}
	return ".all" + name
}
