package forecast

import (
	"fmt"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/clock"
)

// passed are the verdicts of a simulation: each gate except a window passes at once. It is not known how long people
// and measurements take; the waits name them.
func passed(policy v1alpha1.AddOnRolloutSpec, start time.Time) []rollout.Gate {
	var verdicts []rollout.Gate
	pass := func(stage string, when v1alpha1.GateMoment, gates []v1alpha1.Gate) {
		for _, g := range gates {
			verdicts = append(verdicts, rollout.Gate{
				Stage: stage, Name: g.Name, When: when, State: v1alpha1.GatePassed,
				Since: start, EvaluatedAt: start.Add(2 * horizon), // after every soak
			})
		}
	}
	for _, st := range policy.Stages {
		if st.Gates != nil {
			pass(st.Name, v1alpha1.GateBefore, st.Gates.Before)
			pass(st.Name, v1alpha1.GateDuring, st.Gates.During)
		}
	}
	return verdicts
}

// waitsOf lists the waits of a declared stage besides those for its clusters, such as "after approval release" and
// "in window office-hours". A measurement during the stage takes no time of its own.
func waitsOf(st v1alpha1.Stage) []string {
	if st.Gates == nil {
		return nil
	}
	var waits []string
	for _, g := range st.Gates.Before {
		word := "after"
		if g.Type == v1alpha1.GateWindow {
			word = "in"
		}
		waits = append(waits, fmt.Sprintf("%s %s %s", word, g.Type, g.Name))
	}
	return waits
}

// window is a window before a stage.
type window struct {
	v1alpha1.WindowGate
	// gate is its position in in.Gates.
	gate int
	// until is when the verdict changes. known: the verdict changes within a year.
	until time.Time
	known bool
}

// windowsOf are the windows of the gates of a policy.
func windowsOf(policy v1alpha1.AddOnRolloutSpec, verdicts []rollout.Gate) []window {
	var found []window
	for i, v := range verdicts {
		for _, st := range policy.Stages {
			if st.Name != v.Stage || v.When != v1alpha1.GateBefore {
				continue
			}
			for _, g := range st.Gates.Before {
				if g.Name == v.Name && g.Window != nil {
					found = append(found, window{WindowGate: *g.Window, gate: i})
				}
			}
		}
	}
	return found
}

// lookAtWindows gives windows their verdicts at the simulated time plus the time of the batches that were counted
// without simulation (skipped). One sum for the whole rollout is enough, because only a policy without stages has
// several tracks, and such a policy has no gates. The planner does not get the times at which verdicts change: the
// function opens decides which changes matter.
func (r *run) lookAtWindows() {
	now := r.in.Now.Add(r.skipped[""])
	for i := range r.windows {
		w := &r.windows[i]
		v := &r.in.Gates[w.gate]
		if !w.known || !w.until.IsZero() && !w.until.After(now) {
			open := false
			open, w.until = r.at(w.WindowGate, now)
			w.known, v.State, v.Reason = true, v1alpha1.GateWaiting, "closed"
			if open {
				v.State, v.Reason = v1alpha1.GatePassed, ""
			}
		}
	}
}

// opens is when the next window opens that clusters wait for; zero: none opens. A stage is full if it has as many
// clusters in flight as in the last plan in which clusters of it waited although its windows were open. While a
// stage is full, no window matters to it.
func (r *run) opens(plan rollout.Plan) (next time.Time) {
	for _, ask := range plan.Asks {
		for _, w := range r.windows {
			v := r.in.Gates[w.gate]
			if v.Stage != ask.Stage || v.Name != ask.Name || v.State == v1alpha1.GatePassed || w.until.IsZero() || r.every != everyBatch && r.course(v.Stage).full() {
				continue
			}
			next = clock.First(next, w.until.Add(-r.skipped[""]))
		}
	}
	return next
}

// shut reports whether a window of the stage is closed.
func (r *run) shut(stage string) bool {
	return slices.ContainsFunc(r.windows, func(w window) bool {
		return r.in.Gates[w.gate].Stage == stage && r.in.Gates[w.gate].State != v1alpha1.GatePassed
	})
}

// admits is how many batches of a stage, one after the other, are admitted after now before a window closes. It is at
// most n.
func (r *run) admits(stage string, period time.Duration, n int) int {
	for _, w := range r.windows {
		if r.in.Gates[w.gate].Stage == stage && !w.until.IsZero() {
			n = min(n, int((w.until.Add(-r.skipped[""]).Sub(r.in.Now)-1)/period))
		}
	}
	return n
}

// windowed reports whether a window is before the stage.
func (r *run) windowed(stage string) bool {
	return slices.ContainsFunc(r.windows, func(w window) bool { return r.in.Gates[w.gate].Stage == stage })
}
