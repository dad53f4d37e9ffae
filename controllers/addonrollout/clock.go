package addonrollout

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// clockTolerance is by how much the wall clock may part from the monotonic clock between
// two looks before it counts as set: a clock that is slewed parts by less.
const clockTolerance = 2 * time.Second

// watchedEvery is the longest time between two looks at a rollout while time passes for it:
// a timer for its next deadline may be wrong by as much as the clock was set.
const watchedEvery = time.Minute

// look is a moment by both clocks.
type look struct {
	wall    time.Time
	elapsed time.Duration
}

// clocks remembers, for each rollout, when this process looked at it last and the ledger as
// it left it. Stored times are those of the wall clock, which is the only one that outlives
// a process; the monotonic clock says whether the wall clock was set in between.
type clocks struct {
	// elapsed is the time on a clock that is never set.
	elapsed func() time.Duration

	mu   sync.Mutex
	last map[client.ObjectKey]lastLook
}

// lastLook is a look and the ledger that was stored then.
type lastLook struct {
	look
	ledger v1alpha1.Ledger
}

// newClocks returns a memory without looks. A nil clock reads the monotonic reading of the
// times that are looked at.
func newClocks(elapsed func() time.Duration) *clocks {
	return &clocks{elapsed: elapsed, last: map[client.ObjectKey]lastLook{}}
}

// look is now, by both clocks.
func (c *clocks) look(now time.Time) look {
	if c.elapsed == nil {
		return look{wall: now}
	}
	return look{wall: now, elapsed: c.elapsed()}
}

// step is by how much the wall clock was set between two looks; 0 within the tolerance.
func (c *clocks) step(from, to look) time.Duration {
	elapsed := to.elapsed - from.elapsed
	if c.elapsed == nil {
		elapsed = to.wall.Sub(from.wall) // monotonic, if both have such a reading
	}
	step := to.wall.Round(0).Sub(from.wall.Round(0)) - elapsed
	if step.Abs() <= clockTolerance {
		return 0
	}
	return step
}

// corrected returns the ledger to plan with, and by how much the clock was set. The times of
// a ledger that this process left move with its clock. In one that it did not leave, such as
// after a restart, a time in the future is taken for now: nothing was decided later than now.
func (c *clocks) corrected(key client.ObjectKey, ledger v1alpha1.Ledger, now look) (v1alpha1.Ledger, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.last[key]
	if !known || !equality.Semantic.DeepEqual(last.ledger, ledger) {
		return rollout.Clamp(ledger, now.wall), 0
	}
	step := c.step(last.look, now)
	if step == 0 {
		return ledger, 0
	}
	return rollout.Shift(ledger, step), step
}

// looked remembers a look and the ledger that is stored now. It is called when the ledger
// was stored, so that a step that was not stored is found again.
func (c *clocks) looked(key client.ObjectKey, at look, ledger v1alpha1.Ledger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[key] = lastLook{at, ledger}
}

// forget drops a rollout that is gone.
func (c *clocks) forget(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, key)
}

// soonEnough bounds the time to the next look while a cluster is in flight or leaving, or a
// time of the plan is to come.
func soonEnough(ro *v1alpha1.AddOnRollout, plan rollout.Plan, result ctrl.Result) ctrl.Result {
	counts := ro.Status.Counts
	if counts.InFlight > 0 || counts.Removing > 0 || !plan.RecheckAt.IsZero() {
		result.RequeueAfter = sooner(result.RequeueAfter, watchedEvery)
	}
	return result
}
