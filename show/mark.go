package show

import (
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Mark is the icon of a state and its colour. The word is printed beside it.
type Mark struct {
	Icon   string
	colour colour
}

// Tone is the colour as a class of style sheets: good, bad, moving, held or idle.
func (m Mark) Tone() string {
	switch m.colour {
	case green:
		return "good"
	case red:
		return "bad"
	case blue:
		return "moving"
	case yellow:
		return "held"
	default:
		return "idle"
	}
}

// PhaseMark is the mark of a rollout's phase.
func PhaseMark(p v1alpha1.Phase) Mark {
	switch p {
	case v1alpha1.PhaseProgressing:
		return Mark{"⟳", blue}
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseRemoved:
		return Mark{"✔", green}
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRolledBack:
		return Mark{"✗", red}
	case v1alpha1.PhaseRollingBack:
		return Mark{"⟲", red}
	case v1alpha1.PhaseHeld, v1alpha1.PhaseSuspended:
		return Mark{"‖", yellow}
	case v1alpha1.PhaseRemoving:
		return Mark{"⟳", yellow}
	}
	return Mark{"○", dim}
}

// StageMark is the mark of a stage's phase, which is a word of StageStatus.Phase.
func StageMark(phase string) Mark {
	switch phase {
	case "Complete", "NothingToDo":
		return Mark{"✔", green}
	case "Progressing":
		return Mark{"⟳", blue}
	case "Soaking":
		return Mark{"◌", blue}
	case "Failed":
		return Mark{"✗", red}
	case "Held":
		return Mark{"‖", yellow}
	}
	return Mark{"○", dim}
}

// GateMark is the mark of a gate's verdict.
func GateMark(state v1alpha1.GateState) Mark {
	switch state {
	case v1alpha1.GatePassed:
		return Mark{"✔", green}
	case v1alpha1.GateFailed:
		return Mark{"✗", red}
	case v1alpha1.GateError:
		return Mark{"!", yellow}
	case v1alpha1.GateWaiting:
	}
	return Mark{"‖", yellow}
}

// ClusterMark is the mark of a cluster's state.
func ClusterMark(state v1alpha1.ClusterState) Mark {
	switch state {
	case v1alpha1.ClusterDone, v1alpha1.ClusterUnchanged:
		return Mark{"✔", green}
	case v1alpha1.ClusterAdmitted, v1alpha1.ClusterUpdating:
		return Mark{"⟳", blue}
	case v1alpha1.ClusterSoaking:
		return Mark{"◌", blue}
	case v1alpha1.ClusterFailed, v1alpha1.ClusterTimedOut, v1alpha1.ClusterNotWritten, v1alpha1.ClusterLeftFailed:
		return Mark{"✗", red}
	case v1alpha1.ClusterLost, v1alpha1.ClusterParked:
		return Mark{"?", yellow}
	case v1alpha1.ClusterHeld, v1alpha1.ClusterRemoving:
		return Mark{"‖", yellow}
	default:
		return Mark{"○", dim}
	}
}

// finished reports whether a stage has ended.
func finished(phase string) bool { return phase == "Complete" || phase == "NothingToDo" }
