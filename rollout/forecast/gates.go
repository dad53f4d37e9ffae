package forecast

import (
	"fmt"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// passed are the verdicts of a simulation: every gate lets its stage continue at once. How long
// people and measurements take is not known, and windows depend on the day; the waits name
// them.
func passed(policy v1alpha1.AddOnRolloutSpec, start time.Time) []rollout.Gate {
	var verdicts []rollout.Gate
	pass := func(stage string, when v1alpha1.GateMoment, gates []v1alpha1.Gate) {
		for _, g := range gates {
			verdicts = append(verdicts, rollout.Gate{
				Stage: stage, Name: g.Name, When: when, State: v1alpha1.GatePassed,
				Since: start, EvaluatedAt: start.Add(2 * horizon), // after every soak
			})
		}
	}
	for _, st := range policy.Stages {
		if st.Gates != nil {
			pass(st.Name, v1alpha1.GateBefore, st.Gates.Before)
			pass(st.Name, v1alpha1.GateDuring, st.Gates.During)
		}
	}
	return verdicts
}

// waitsOf says what a declared stage waits for besides its clusters, such as "after approval
// release" and "in window office-hours". What is measured during the stage takes no time of its
// own.
func waitsOf(st v1alpha1.Stage) []string {
	if st.Gates == nil {
		return nil
	}
	var waits []string
	for _, g := range st.Gates.Before {
		word := "after"
		if g.Type == v1alpha1.GateWindow {
			word = "in"
		}
		waits = append(waits, fmt.Sprintf("%s %s %s", word, g.Type, g.Name))
	}
	return waits
}
