package rollouttest

import (
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// shut says which gate lets the cluster of the step not be admitted to the target; "": none. A cluster
// that goes back passes by a window that does not hold reverts.
func (j *judgement) shut(i int, name string) string {
	s := j.steps[i]
	for _, v := range s.gatesBefore {
		passed := v.Type == v1alpha1.GateWindow && !v.Window.HoldsReverts && j.movesBack(name)
		if v.said.State != v1alpha1.GatePassed && !passed {
			return v.Name
		}
	}
	for _, v := range s.gatesDuring {
		patience := 10 * time.Minute
		if v.ErrorAfter != nil {
			patience = v.ErrorAfter.Duration
		}
		if v.said.State == v1alpha1.GateError && j.in.Now.Sub(v.said.Since) >= patience {
			return v.Name
		}
	}
	return ""
}

// halts says which gate ends the admissions of the track of a step; "": none. People who reject
// do, and a measurement that fails while the stage is under way.
func (j *judgement) halts(i int) string {
	s := j.steps[i]
	for _, v := range s.gatesBefore {
		if v.Type == v1alpha1.GateApproval && v.said.State == v1alpha1.GateFailed {
			return v.Name
		}
	}
	for _, v := range s.gatesDuring {
		if v.said.State == v1alpha1.GateFailed {
			return v.Name
		}
	}
	return ""
}

// unmeasured reports whether a gate has not passed in an evaluation that began after the last
// cluster of the step was Done. A step in which no cluster was admitted to the target has
// nothing to measure.
func (j *judgement) unmeasured(i int) bool {
	s, begun, soaked := j.steps[i], false, time.Time{}
	for name, r := range j.after {
		if r.Revision != j.target() || j.stepOf(name) != i && r.Stage != s.name {
			continue
		}
		begun = true
		if r.State == rollout.Done && r.Since.After(soaked) {
			soaked = r.Since
		}
	}
	for _, v := range s.gatesDuring {
		if begun && (v.said.State != v1alpha1.GatePassed || v.said.EvaluatedAt.Before(soaked)) {
			return true
		}
	}
	return false
}
