package plan

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/clock"
)

// clockTolerance is how much the wall clock may differ from the monotonic clock between two turns before it counts as
// set. A clock that is slewed differs by less.
const clockTolerance = 2 * time.Second

// Look is a moment on two clocks. The times of the wall clock can be stored across processes. The monotonic clock is
// never set.
type Look struct {
	Wall    time.Time
	Elapsed time.Duration
}

// lastLook is the moment of the last turn and the ledger that was stored then.
type lastLook struct {
	Look
	ledger v1alpha1.Ledger
}

// step is by how much the wall clock was set between two moments; 0 within the tolerance.
func step(from, to Look) time.Duration {
	step := to.Wall.Round(0).Sub(from.Wall.Round(0)) - (to.Elapsed - from.Elapsed)
	if step.Abs() <= clockTolerance {
		return 0
	}
	return step
}

// retiming says how the times of a status change before a plan uses it. Times that this process stored move with its
// clock, by step. After a restart, the status is of another process, whose clock may have been ahead: a time later
// than latest is replaced by latest. latest is zero for a status of this process.
type retiming struct {
	step   time.Duration
	latest time.Time
}

// Stored reports whether this process stored the ledger in the last turn.
func (m Memory) Stored(ledger v1alpha1.Ledger) bool {
	return m.last != nil && equality.Semantic.DeepEqual(m.last.ledger, ledger)
}

// retiming returns how the times of a status with this ledger change.
func (m Memory) retiming(ledger v1alpha1.Ledger, now Look) retiming {
	if !m.Stored(ledger) {
		return retiming{latest: now.Wall}
	}
	return retiming{step: step(m.last.Look, now)}
}

// ledger changes the times of a ledger.
func (r retiming) ledger(l v1alpha1.Ledger) v1alpha1.Ledger {
	switch {
	case !r.latest.IsZero():
		return rollout.Clamp(l, r.latest)
	case r.step != 0:
		return rollout.Shift(l, r.step)
	}
	return l
}

// time changes one time; nil stays nil.
func (r retiming) time(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	at := t.Add(r.step)
	if !r.latest.IsZero() {
		at = clock.Earlier(at, r.latest)
	}
	moved := metav1.NewTime(at).Rfc3339Copy()
	return &moved
}

// stages moves the times of the verdicts of gates. Times of another process are limited per gate instead
// (storedVerdict).
func (r retiming) stages(stages []v1alpha1.StageStatus) []v1alpha1.StageStatus {
	if r.step == 0 {
		return stages
	}
	stages = slices.Clone(stages)
	for i := range stages {
		stages[i].Gates = slices.Clone(stages[i].Gates)
		for k := range stages[i].Gates {
			g := &stages[i].Gates[k]
			g.Since, g.BeganAt, g.EvaluatedAt = r.time(g.Since), r.time(g.BeganAt), r.time(g.EvaluatedAt)
		}
	}
	return stages
}
