package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// clockTolerance is how far the wall clock may differ from the monotonic clock between two looks before
// it counts as set. A clock that is slewed differs by less.
const clockTolerance = 2 * time.Second

// Look is a moment on two clocks: the wall clock, whose times can be stored across processes,
// and a monotonic clock, which is never set.
type Look struct {
	Wall    time.Time
	Elapsed time.Duration
}

// lastLook is a look and the ledger that was stored then.
type lastLook struct {
	Look
	ledger v1alpha1.Ledger
}

// step is by how much the wall clock was set between two looks; 0 within the tolerance.
func step(from, to Look) time.Duration {
	step := to.Wall.Round(0).Sub(from.Wall.Round(0)) - (to.Elapsed - from.Elapsed)
	if step.Abs() <= clockTolerance {
		return 0
	}
	return step
}

// corrected returns the ledger to plan with, and by how much the clock was set. The times of a
// ledger that this process stored move with its clock. In a ledger of another process, such as
// after a restart, a time in the future is replaced by now: no decision is later than now.
func (m Memory) corrected(ledger v1alpha1.Ledger, now Look) (v1alpha1.Ledger, time.Duration) {
	if m.last == nil || !equality.Semantic.DeepEqual(m.last.ledger, ledger) {
		return rollout.Clamp(ledger, now.Wall), 0
	}
	step := step(m.last.Look, now)
	if step == 0 {
		return ledger, 0
	}
	return rollout.Shift(ledger, step), step
}
