package addonrollout

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Bounds of an entry of status.history.
const (
	failingKept = 10
	stagesKept  = 16
)

// detail writes into the entry of the present rollout what a reader asks for afterwards: why
// it is where it is, which clusters failed, and when its stages began and ended.
func detail(h *v1alpha1.HistoryEntry, s v1alpha1.AddOnRolloutStatus, now metav1.Time) {
	h.Reason = s.Message
	h.Failing = slices.Clone(s.Failing[:min(len(s.Failing), failingKept)])
	h.Stages = stageTimes(h.Stages, s.Stages, now)
}

// stageTimes returns the times of the stages that began.
func stageTimes(known []v1alpha1.StageTimes, stages []v1alpha1.StageStatus, now metav1.Time) []v1alpha1.StageTimes {
	times := slices.Clone(known)
	for _, stage := range stages {
		i := slices.IndexFunc(times, func(t v1alpha1.StageTimes) bool { return t.Name == stage.Name })
		ended := stage.Phase == rollout.StageComplete || stage.Phase == rollout.StageFailed
		begun := ended || stage.Phase == rollout.StageProgressing || stage.Phase == rollout.StageSoaking
		switch {
		case i < 0 && !begun:
			continue
		case i < 0:
			times = append(times, v1alpha1.StageTimes{Name: stage.Name, Started: now})
			i = len(times) - 1
		}
		t := &times[i]
		t.Phase = stage.Phase
		switch {
		case !ended && stage.Phase != rollout.StageNothingToDo:
			t.Finished = nil
		case t.Finished == nil:
			t.Finished = now.DeepCopy()
		}
	}
	return times[max(0, len(times)-stagesKept):]
}
