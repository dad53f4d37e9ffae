package e2e

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// recording keeps every status every rollout ever had, because a limit that was
// broken for a moment was broken.
type recording struct {
	mu       sync.Mutex
	statuses map[string][]v1alpha1.AddOnRolloutStatus
}

// record watches until ctx ends.
func record(ctx context.Context, c client.WithWatch) (*recording, error) {
	events, err := c.Watch(ctx, &v1alpha1.AddOnRolloutList{})
	if err != nil {
		return nil, err
	}
	r := &recording{statuses: map[string][]v1alpha1.AddOnRolloutStatus{}}
	go func() {
		for e := range events.ResultChan() {
			if ro, ok := e.Object.(*v1alpha1.AddOnRollout); ok {
				r.note(ro)
			}
		}
	}()
	return r, nil
}

func (r *recording) note(ro *v1alpha1.AddOnRollout) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses[ro.Name] = append(r.statuses[ro.Name], ro.Status)
}

// of returns every status of one rollout so far.
func (r *recording) of(addOn string) []v1alpha1.AddOnRolloutStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]v1alpha1.AddOnRolloutStatus(nil), r.statuses[addOn]...)
}

// said are all messages of a rollout and of its conditions so far: what holds for an
// instant only is not to be missed.
func (r *recording) said(addOn string) []string {
	var all []string
	for _, s := range r.of(addOn) {
		all = append(all, s.Message)
		for _, c := range s.Conditions {
			all = append(all, c.Message)
		}
	}
	return all
}

// mostInFlight is the highest number of clusters that ever held a slot at once.
func (r *recording) mostInFlight(addOn string) int32 {
	most := int32(0)
	for _, s := range r.of(addOn) {
		most = max(most, s.Counts.InFlight)
	}
	return most
}
