package fleet

import (
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/test/fleet/spoke"
)

// turn is one visit of an agent to one work, under the member's lock.
//
//	without latency   apply, step to the end, one report
//	with latency      apply, report Applied | report, step | report, step | ...
//
// Reporting before stepping is what makes feedback lag.
type turn struct {
	*member
	*duty
	work    *workv1.ManifestWork
	now     time.Time
	latency time.Duration
	opts    Options
}

// take returns the status to report and when to come back.
func (t turn) take() (*workv1.ManifestWorkStatus, time.Duration) {
	status, reported := t.status.DeepCopy(), t.now.Add(t.mood.skew)
	first := !t.applied
	if first {
		t.results, t.applied = t.apply(), true
	}
	spoke.ReportApplied(status, t.work.Generation, t.results, reported)
	if first && t.latency > 0 {
		return status, t.jittered(t.latency)
	}
	t.passDeadline()
	if t.latency == 0 {
		t.settle()
	}
	if err := t.spoke.ReportAvailable(status, t.work, t.view(), reported); err != nil {
		// A model that cannot show its own objects has a bug, which must become visible.
		t.results = t.spoke.Identify(t.work, err)
		spoke.ReportApplied(status, t.work.Generation, t.results, reported)
	}
	return status, t.next()
}

// apply applies the work, refuses it or lies, as the mood says.
func (t turn) apply() []spoke.Result {
	switch {
	case t.mood.failing:
		return t.spoke.Identify(t.work, errors.New(t.mood.refusal))
	case t.mood.lying:
		return t.spoke.Identify(t.work, nil)
	}
	return t.spoke.Apply(t.work)
}

// still reports whether the model must not move.
func (t turn) still() bool { return t.mood.held || t.mood.lying }

func (t turn) settle() {
	if t.still() {
		return
	}
	for t.spoke.Step(t.work.Name) {
	}
	if t.opts.DeadlineAfter == 0 && t.spoke.Stuck(t.work.Name) {
		t.spoke.GiveUp(t.work.Name)
		t.gaveUp = true
	}
}

func (t turn) passDeadline() {
	if t.still() || t.gaveUp || t.stuckSince.IsZero() || t.now.Sub(t.stuckSince) < t.opts.DeadlineAfter {
		return
	}
	t.spoke.GiveUp(t.work.Name)
	t.gaveUp = true
}

// next moves the model on after a report and returns when to come back.
func (t turn) next() time.Duration {
	switch {
	case t.mood.flapping:
		return t.opts.FlapEvery
	case !t.mood.failing && slices.ContainsFunc(t.results, refused):
		t.applied = false
		return retryAfter
	case t.still():
		return idle
	case t.spoke.Step(t.work.Name):
		t.stuckSince = time.Time{}
		return t.jittered(t.latency)
	case t.gaveUp || !t.spoke.Stuck(t.work.Name):
		return idle
	}
	if t.stuckSince.IsZero() {
		t.stuckSince = t.now
	}
	return max(t.jittered(t.latency), t.opts.DeadlineAfter-t.now.Sub(t.stuckSince))
}

func refused(r spoke.Result) bool { return r.Err != nil }

// view is how this report sees the cluster.
func (t turn) view() spoke.View {
	view := t.spoke.Truth()
	if t.mood.lying {
		view = t.spoke.Pretend(t.work)
	}
	if !t.mood.flapping {
		return view
	}
	t.flapped = !t.flapped
	if !t.flapped {
		return view
	}
	return func(m workv1.ManifestResourceMeta) (*unstructured.Unstructured, error) {
		if m.Ordinal == 0 {
			return nil, nil
		}
		return view(m)
	}
}
