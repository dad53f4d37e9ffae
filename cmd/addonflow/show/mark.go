package show

import (
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// mark is the icon of a state and its colour; the word stands beside it.
type mark struct {
	icon   string
	colour colour
}

// phaseMark is the mark of a rollout's phase.
func phaseMark(p v1alpha1.Phase) mark {
	switch p {
	case v1alpha1.PhaseProgressing:
		return mark{"⟳", blue}
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseRemoved:
		return mark{"✔", green}
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRolledBack:
		return mark{"✗", red}
	case v1alpha1.PhaseRollingBack:
		return mark{"⟲", red}
	case v1alpha1.PhaseHeld, v1alpha1.PhaseSuspended:
		return mark{"‖", yellow}
	case v1alpha1.PhaseRemoving:
		return mark{"⟳", yellow}
	}
	return mark{"○", dim}
}

// stageMark is the mark of a stage's phase, which is a word of StageStatus.Phase.
func stageMark(phase string) mark {
	switch phase {
	case "Complete", "NothingToDo":
		return mark{"✔", green}
	case "Progressing":
		return mark{"⟳", blue}
	case "Soaking":
		return mark{"◌", blue}
	case "Failed":
		return mark{"✗", red}
	case "Held":
		return mark{"‖", yellow}
	}
	return mark{"○", dim}
}

// gateMark is the mark of a gate's verdict.
func gateMark(state v1alpha1.GateState) mark {
	switch state {
	case v1alpha1.GatePassed:
		return mark{"✔", green}
	case v1alpha1.GateFailed:
		return mark{"✗", red}
	case v1alpha1.GateError:
		return mark{"!", yellow}
	case v1alpha1.GateWaiting:
	}
	return mark{"‖", yellow}
}

// finished reports whether a stage needs nothing more.
func finished(phase string) bool { return phase == "Complete" || phase == "NothingToDo" }
