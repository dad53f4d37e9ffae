package addonrollout

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// The operator's defaults of --park-after, --removal-grace-period and --pre-delete-timeout.
const (
	DefaultParkAfter    = 10 * time.Minute
	DefaultRemovalGrace = 5 * time.Minute
	DefaultHookTimeout  = 10 * time.Minute
)

// Explain returns the plan the operator would make of a rollout right now, and
// writes nothing: the same reads and the same planner, with the caller's own
// credentials. c may read uncached. The operator's flags are those that its last
// status names; for a rollout that no operator planned yet, the defaults.
//
// The error is that of reading, one of rollout.New's, or says that the rollout has
// no target yet.
func Explain(ctx context.Context, c client.Client, key client.ObjectKey) (rollout.Plan, error) {
	var ro v1alpha1.AddOnRollout
	if err := c.Get(ctx, key, &ro); err != nil {
		return rollout.Plan{}, fmt.Errorf("cannot read rollout %s: %w", key.Name, err)
	}
	if ro.Spec.Target == nil {
		return rollout.Plan{}, fmt.Errorf("rollout %s has no target yet: its source has not declared the add-on", key.Name)
	}
	r := New(Options{
		Client: c, Live: c, Clock: clock.RealClock{},
		ParkAfter:    published(ro.Status.ParkAfter, DefaultParkAfter),
		RemovalGrace: published(ro.Status.RemovalGracePeriod, DefaultRemovalGrace),
		HookTimeout:  DefaultHookTimeout,
	})
	o, err := r.observe(ctx, &ro)
	if err != nil {
		return rollout.Plan{}, err
	}
	if err := o.conflict(); err != nil {
		return rollout.Plan{}, err
	}
	if o.invalidHealth != nil {
		return rollout.Plan{}, o.invalidHealth
	}
	now := r.Clock.Now()
	status := advance(ro.Status, *ro.Spec.Target, o.succeeded, metav1.NewTime(now))
	in, err := r.input(ctx, o, &status, now)
	if err != nil {
		return rollout.Plan{}, err
	}
	return rollout.New(in)
}

// published is what the operator's status says of a flag, usual where it says nothing.
func published(flag *metav1.Duration, usual time.Duration) time.Duration {
	if flag == nil {
		return usual
	}
	return flag.Duration
}
