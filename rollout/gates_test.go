package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// before and during give a stage, 0 for canary and 1 for everyone, a gate.
func before(stage int, g v1alpha1.Gate) change {
	return func(in *rollout.Input) {
		st := &in.Spec.Stages[stage]
		if st.Gates == nil {
			st.Gates = &v1alpha1.Gates{}
		}
		st.Gates.Before = append(st.Gates.Before, g)
	}
}

func during(stage int, g v1alpha1.Gate) change {
	return func(in *rollout.Input) {
		st := &in.Spec.Stages[stage]
		if st.Gates == nil {
			st.Gates = &v1alpha1.Gates{}
		}
		st.Gates.During = append(st.Gates.During, g)
	}
}

// says is the verdict of the gate of that name, wherever it is, of a minute ago.
func says(name string, state v1alpha1.GateState, reason string, more ...func(*rollout.Gate)) change {
	return func(in *rollout.Input) {
		v := rollout.Gate{Name: name, State: state, Reason: reason, Since: now().Add(-time.Minute), EvaluatedAt: now().Add(-time.Minute)}
		for _, st := range in.Spec.Stages {
			if st.Gates == nil {
				continue
			}
			for _, g := range st.Gates.Before {
				if g.Name == name {
					v.Stage, v.When = st.Name, v1alpha1.GateBefore
				}
			}
			for _, g := range st.Gates.During {
				if g.Name == name {
					v.Stage, v.When = st.Name, v1alpha1.GateDuring
				}
			}
		}
		for _, change := range more {
			change(&v)
		}
		in.Gates = append(in.Gates, v)
	}
}

// evaluated and since are when a verdict was made, and when the gate got into its state.
func evaluated(ago time.Duration) func(*rollout.Gate) {
	return func(v *rollout.Gate) { v.EvaluatedAt = now().Add(-ago) }
}

func since(ago time.Duration) func(*rollout.Gate) {
	return func(v *rollout.Gate) { v.Since = now().Add(-ago) }
}

func holdingReverts(g v1alpha1.Gate) v1alpha1.Gate {
	g.Window.HoldsReverts = true
	return g
}

func TestGates(t *testing.T) {
	waiting, passed, failed, errored := v1alpha1.GateWaiting, v1alpha1.GatePassed, v1alpha1.GateFailed, v1alpha1.GateError
	inCanary := each(inSoak("v2", 15*time.Minute, 5*time.Minute, c1), on(c1, verified("v2")))
	for name, tc := range map[string]momentCase{
		"an approval that was not given": {
			reason: "the stage could start, and admits no cluster",
			change: []change{canaryDone, before(1, approvalGate("qa")), says("qa", waiting, "0 of 1 approvals")},
			want:   map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending,
			says: "everyone 0/4, waits for approval qa: 0 of 1 approvals (addonflow approve hello everyone)",
		},
		"a gate without a verdict": {
			reason: "it is Waiting",
			change: []change{canaryDone, before(1, approvalGate("qa"))},
			want:   map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseHeld,
		},
		"an approval": {
			reason: "the stage starts",
			change: []change{canaryDone, before(1, approvalGate("qa")), says("qa", passed, "approved by ann")},
			want:   map[string]string{c3: "Admitted v2", c4: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"one of two gates passed": {
			reason: "every gate has to",
			change: []change{canaryDone, before(1, approvalGate("qa")), before(1, openWindow("office")), says("qa", passed, ""), says("office", waiting, "opens Mon 09:00 UTC")},
			want:   map[string]string{c3: "Waiting v1"}, says: "everyone 0/4, waits for window office: opens Mon 09:00 UTC",
		},
		"a rejection": {
			reason: "people halt the rollout as a spent budget does",
			change: []change{canaryDone, before(1, approvalGate("qa")), says("qa", failed, "rejected by bob: too risky")},
			want:   map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
			says: "halted in everyone: approval qa: rejected by bob: too risky, 4 untouched",
		},
		"a rejection of a later stage": {
			reason: "the canary admits no further cluster either",
			change: []change{inCanary, inSoak("v2", 15*time.Minute, 10*time.Minute, c1), before(1, approvalGate("qa")), says("qa", failed, "rejected by bob")},
			want:   map[string]string{c1: "Done v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"a measurement that failed before the stage": {
			reason: "it is made again, and halts nothing",
			change: []change{canaryDone, before(1, measuredGate("slo")), says("slo", failed, "0.3 is above 0.1")},
			want:   map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
			says: "waits for webhook slo, which failed: 0.3 is above 0.1",
		},
		"a measurement that could not be made": {
			reason: "an Error is not Passed",
			change: []change{canaryDone, before(1, measuredGate("slo")), says("slo", errored, "no route to host")},
			want:   map[string]string{c3: "Waiting v1"}, says: "waits for webhook slo, which cannot be evaluated: no route to host",
		},
		"a window, and a measurement that could not be made": {
			reason: "an Error is named also if another gate holds the stage",
			change: []change{canaryDone, before(1, openWindow("office")), before(1, measuredGate("slo")), says("office", waiting, "opens Mon 09:00 UTC"), says("slo", errored, "no route to host")},
			want:   map[string]string{c3: "Waiting v1"}, says: "waits for window office: opens Mon 09:00 UTC, and for webhook slo (Error)",
		},
		"a window that closed while clusters are in flight": {
			reason: "they continue, and no other is admitted",
			change: []change{canaryDone, admitted("v2", time.Minute, c3), inStage("everyone"), before(1, openWindow("office")), says("office", waiting, "opens Mon 09:00 UTC")},
			want:   map[string]string{c3: "Admitted v2", c4: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "1 in flight, waits for window office: opens Mon 09:00 UTC",
		},
		"a cluster in flight with other content behind a gate": {
			reason: "it is not moved to the target either",
			change: []change{finished(c2), updating("v0", time.Minute, c1), on(c1, runs("v0", rollout.HealthProgressing)), before(0, approvalGate("qa"))},
			want:   map[string]string{c1: "Updating v0"},
		},
		"a joiner": {
			reason: "it starts at the stable revision, which asks no gate",
			change: []change{on(c3, nothing), before(1, approvalGate("qa"))},
			want:   map[string]string{c3: "Admitted v1"},
		},
		"a joiner in flight while an approval is open": {
			reason: "the content waits for a person, whatever joins at the stable revision",
			change: []change{canaryDone, on(c3, nothing), before(1, approvalGate("qa"))},
			want:   map[string]string{c3: "Admitted v1", c4: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending,
			says: "1 in flight, waits for approval qa",
		},
		"a first install": {
			reason: "gates apply",
			change: []change{func(in *rollout.Input) { in.Stable = "" }, before(0, approvalGate("qa"))},
			want:   map[string]string{c1: "Waiting v1"}, phase: v1alpha1.PhaseHeld,
		},
		"a stage with nothing to do": {
			reason: "it asks no gate, and the next stage starts",
			change: []change{on(c1, upToDate), on(c2, upToDate), before(0, approvalGate("qa")), during(0, measuredGate("slo"))},
			want:   map[string]string{c1: "Unchanged v1", c3: "Admitted v2"},
		},
		"a revert": {
			reason: "it passes gates by, also those that hold other rollouts",
			change: []change{revert, before(0, approvalGate("qa")), before(0, openWindow("office")), says("office", waiting, ""), during(0, measuredGate("slo")), says("slo", failed, "")},
			want:   map[string]string{c1: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"a revert outside of a window that holds reverts": {
			reason: "it waits",
			change: []change{revert, before(0, holdingReverts(openWindow("office"))), says("office", waiting, "opens Mon 09:00 UTC")},
			want:   map[string]string{c1: "Waiting v1"}, says: "waits for window office",
		},
		"a revert that finds a cluster in flight outside of a window that holds reverts": {
			reason: "the cluster is not moved back behind a stage that is not complete either",
			change: []change{revert, inStage("everyone"), updating("v0", time.Minute, c3), on(c3, runs("v0", rollout.HealthProgressing)), before(1, holdingReverts(openWindow("office")))},
			want:   map[string]string{c3: "Updating v0"},
		},
		"content that succeeded before": {
			reason: "no gate judges it again",
			change: []change{ended, before(0, approvalGate("qa")), during(0, measuredGate("slo"))},
			want:   map[string]string{c1: "Admitted v2"},
		},
		"content that succeeded before, outside of a window": {
			reason: "a window judges the time of every admission",
			change: []change{ended, before(0, openWindow("office"))},
			want:   map[string]string{c1: "Waiting v1"}, says: "6 to update",
		},
		"the soaks are over and the gate was not evaluated since": {
			reason: "the evaluation in the soak proves nothing about its end",
			change: []change{canaryDone, during(0, measuredGate("slo")), says("slo", passed, "0.05", evaluated(time.Hour))},
			want:   map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "canary 2/2, waits for webhook slo to be evaluated after the soak, from 11:30 UTC on",
		},
		"the gate passed after the soaks": {
			reason: "the stage is complete",
			change: []change{canaryDone, during(0, measuredGate("slo")), says("slo", passed, "0.05", evaluated(0))},
			want:   map[string]string{c3: "Admitted v2"},
		},
		"a measurement that failed during the stage": {
			reason: "it halts as a spent budget does",
			change: []change{inCanary, during(0, measuredGate("slo")), says("slo", failed, "0.3 is above 0.1")},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
			says: "halted in canary: webhook slo failed: 0.3 is above 0.1, 1 in flight, 5 untouched",
		},
		"no measurement for a while": {
			reason: "errors shorter than errorAfter hold nothing",
			change: []change{canaryDone, admitted("v2", time.Minute, c3), inStage("everyone"), twoAtATime, during(1, measuredGate("slo")), says("slo", errored, "", since(9*time.Minute))},
			want:   map[string]string{c4: "Admitted v2"}, says: "webhook slo cannot be evaluated: no reason is known",
		},
		"no measurement for longer than errorAfter": {
			reason: "the stage pauses, and does not fail",
			change: []change{canaryDone, admitted("v2", time.Minute, c3), inStage("everyone"), twoAtATime, during(1, measuredGate("slo")), says("slo", errored, "no route to host", since(10*time.Minute))},
			want:   map[string]string{c3: "Admitted v2", c4: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "1 in flight, waits for webhook slo, which cannot be evaluated: no route to host",
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// each is one change after the other.
func each(changes ...change) change {
	return func(in *rollout.Input) {
		for _, do := range changes {
			do(in)
		}
	}
}

func twoAtATime(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(2)) }

// TestGatesAreAskedWhenTheirVerdictMatters: a measurement costs a request, and a window a turn
// when it changes.
func TestGatesAreAskedWhenTheirVerdictMatters(t *testing.T) {
	qa := rollout.Ask{Stage: "everyone", Name: "qa", When: v1alpha1.GateBefore}
	slo := rollout.Ask{Stage: "canary", Name: "slo", When: v1alpha1.GateDuring}
	sloAfter := slo
	sloAfter.After = now().Add(-30 * time.Minute)
	inCanary := each(inSoak("v2", 15*time.Minute, 5*time.Minute, c1), on(c1, verified("v2")))
	closes := func(v *rollout.Gate) { v.ChangesAt = now().Add(20 * time.Minute) }
	for name, tc := range map[string]struct {
		change []change
		want   []rollout.Ask
		again  time.Duration
	}{
		"before the stage could start":          {change: []change{inCanary, before(1, measuredGate("qa"))}, again: 5 * time.Minute},
		"when the stage could start":            {change: []change{canaryDone, before(1, measuredGate("qa"))}, want: []rollout.Ask{qa}},
		"after it passed":                       {change: []change{canaryDone, before(1, measuredGate("qa")), says("qa", v1alpha1.GatePassed, "")}},
		"a window, at every admission":          {change: []change{canaryDone, before(1, openWindow("qa")), says("qa", v1alpha1.GatePassed, "", closes)}, want: []rollout.Ask{qa}, again: 20 * time.Minute},
		"suspended":                             {change: []change{canaryDone, before(1, measuredGate("qa")), func(in *rollout.Input) { in.Suspended = true }}},
		"during, before the first admission":    {change: []change{canaryDone, during(1, measuredGate("slo")), before(1, approvalGate("qa"))}, want: []rollout.Ask{qa}},
		"during, from the admission on":         {change: []change{during(0, measuredGate("slo"))}, want: []rollout.Ask{slo}},
		"during, after it passed in the soak":   {change: []change{inCanary, during(0, measuredGate("slo")), says("slo", v1alpha1.GatePassed, "")}, want: []rollout.Ask{slo}, again: 5 * time.Minute},
		"during, after the last soak":           {change: []change{canaryDone, during(0, measuredGate("slo")), says("slo", v1alpha1.GatePassed, "", evaluated(time.Hour))}, want: []rollout.Ask{sloAfter}},
		"during, after it passed once for all":  {change: []change{canaryDone, before(1, approvalGate("qa")), during(0, measuredGate("slo")), says("slo", v1alpha1.GatePassed, "", evaluated(0))}, want: []rollout.Ask{qa}},
		"during, after it failed":               {change: []change{inCanary, during(0, measuredGate("slo")), says("slo", v1alpha1.GateFailed, "")}, again: 5 * time.Minute},
		"during, until an error pauses a stage": {change: []change{inCanary, twoCanaries, during(0, measuredGate("slo")), says("slo", v1alpha1.GateError, "", since(7*time.Minute))}, want: []rollout.Ask{slo}, again: 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, rolling(6), tc.change...)
			if diff := cmp.Diff(tc.want, plan.Asks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.again != 0 && !plan.RecheckAt.Equal(now().Add(tc.again)) {
				t.Errorf("plans again at %s, want %s", plan.RecheckAt, now().Add(tc.again))
			}
		})
	}
}

func twoCanaries(in *rollout.Input) { in.Spec.Stages[0].MaxConcurrency = new(number(2)) }

// TestAMeasuredStageSoaksUntilTheGatePassed: its clusters are decided, and it is not complete.
func TestAMeasuredStageSoaksUntilTheGatePassed(t *testing.T) {
	plan := planned(t, rolling(6), canaryDone, during(0, measuredGate("slo")))
	if got := plan.Stages[0].Phase; got != rollout.StageSoaking {
		t.Errorf("got phase %s of the canary, want Soaking: %s", got, plan.Stages[0].Message)
	}
	if c, _ := plan.Why(c3); c.Reason != "waits for canary to complete, which waits for webhook slo to be evaluated after the soak, from 11:30 UTC on" {
		t.Errorf("the next stage says %q", c.Reason)
	}
	plan = planned(t, rolling(6), canaryDone, during(0, measuredGate("slo")), says("slo", v1alpha1.GateError, "connection refused"))
	if c, _ := plan.Why(c3); c.Reason != "waits for canary to complete, which waits for webhook slo, which cannot be evaluated: connection refused" {
		t.Errorf("the next stage says %q", c.Reason)
	}
}

// TestAnAbortedStageIsHeldAndMeasuresNothing: its clusters are decided, and no verdict can continue the rollout.
func TestAnAbortedStageIsHeldAndMeasuresNothing(t *testing.T) {
	aborted := func(in *rollout.Input) { in.Aborted = "aborted by ann" }
	plan := planned(t, rolling(6), canaryDone, during(0, measuredGate("slo")), aborted)
	if got := plan.Stages[0]; got.Phase != rollout.StageHeld || !strings.HasSuffix(got.Message, ", aborted by ann") || len(plan.Asks) > 0 {
		t.Errorf("the canary is %s: %s; asks %v", got.Phase, got.Message, plan.Asks)
	}
}

// gated is the fleet of canaryFirst with gates.
func gated(g ...change) *rollouttest.Fleet {
	f := staged("v1", 6)
	for _, change := range g {
		change(&f.Policy)
	}
	return f
}

// judge is a verdict of a gate at that time.
func judge(stage, name string, when v1alpha1.GateMoment, state v1alpha1.GateState, reason string) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) {
		f.Judge(rollout.Gate{Stage: stage, Name: name, When: when, State: state, Reason: reason})
	}
}

// gateScenarios are rollouts through gates, one for each rule.
func gateScenarios() map[string]func() rollouttest.Scenario {
	const asked, watched = v1alpha1.GateBefore, v1alpha1.GateDuring
	return map[string]func() rollouttest.Scenario{
		"gate-approval-between-canary-and-fleet": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: gated(before(1, approvalGate("qa"))), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(time.Hour, "one of two approves", judge("everyone", "qa", asked, v1alpha1.GateWaiting, "1 of 2 approvals")),
				at(2*time.Hour, "the second approves", judge("everyone", "qa", asked, v1alpha1.GatePassed, "approved by ann, bob")),
			}}
		},
		"gate-rejected-and-reverted": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: gated(before(1, approvalGate("qa"))), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(time.Hour, "bob rejects", judge("everyone", "qa", asked, v1alpha1.GateFailed, "rejected by bob: too risky")),
				at(2*time.Hour, "git revert to v1, which asks no gate", commit("v1")),
			}}
		},
		"gate-window-closes-between-admissions": func() rollouttest.Scenario {
			f := gated(before(1, openWindow("office")))
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", both(commit("v2"), judge("everyone", "office", asked, v1alpha1.GatePassed, "open"))),
				at(22*time.Minute+30*time.Second, "the window closes", judge("everyone", "office", asked, v1alpha1.GateWaiting, "opens Tue 09:00 UTC")),
				at(18*time.Hour, "the window opens", judge("everyone", "office", asked, v1alpha1.GatePassed, "open")),
			}}
		},
		"gate-measures-the-canary": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: gated(during(0, measuredGate("slo"))), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(5*time.Minute, "the gate passes in the first soak", judge("canary", "slo", watched, v1alpha1.GatePassed, "0.01")),
				at(time.Hour, "the gate passes after the last soak", judge("canary", "slo", watched, v1alpha1.GatePassed, "0.01")),
			}}
		},
		"gate-finds-the-canary-bad": func() rollouttest.Scenario {
			return rollouttest.Scenario{Fleet: gated(during(0, measuredGate("slo"))), Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(5*time.Minute, "the gate fails in the soak", judge("canary", "slo", watched, v1alpha1.GateFailed, "0.3 is above 0.1")),
				at(2*time.Hour, "git revert to v1", commit("v1")),
			}}
		},
		"gate-cannot-be-measured": func() rollouttest.Scenario {
			f := gated(during(1, measuredGate("slo")))
			f.Policy.Spec.Stages[1].MinSuccessTime.Duration = 6 * time.Minute
			return rollouttest.Scenario{Fleet: f, Until: day, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(22*time.Minute+30*time.Second, "the server is down", judge("everyone", "slo", watched, v1alpha1.GateError, "no route to host")),
				at(2*time.Hour, "the server is back", judge("everyone", "slo", watched, v1alpha1.GatePassed, "0.01")),
				at(4*time.Hour, "the gate is evaluated again", judge("everyone", "slo", watched, v1alpha1.GatePassed, "0.01")),
			}}
		},
	}
}

// TestGateErrorAfterIsTheGates: a stage pauses after the time that its gate declares.
func TestGateErrorAfterIsTheGates(t *testing.T) {
	g := measuredGate("slo")
	g.ErrorAfter = &metav1.Duration{Duration: time.Minute}
	plan := planned(t, rolling(6), each(inSoak("v2", 15*time.Minute, 5*time.Minute, c1), on(c1, verified("v2"))), twoCanaries,
		during(0, g), says("slo", v1alpha1.GateError, "", since(time.Minute)))
	if c, _ := plan.Why(c2); c.State != rollout.Waiting {
		t.Errorf("cluster-02 is %s: %s", c.State, c.Reason)
	}
}

// TestGateAboutMovedClustersSaysWhatToDoOnceNoneIsLeft: it would wait for ever. Another cluster in the placement of the
// stage gets the content and is measured.
func TestGateAboutMovedClustersSaysWhatToDoOnceNoneIsLeft(t *testing.T) {
	slo := v1alpha1.Gate{Name: "slo", Type: v1alpha1.GatePrometheus, Prometheus: &v1alpha1.PrometheusGate{
		Address: "https://prometheus.example.com", Query: "sum(errors{$moved})", Max: new(0.1),
	}}
	gone := func(in *rollout.Input) {
		in.Clusters = slices.DeleteFunc(in.Clusters, func(c rollout.Cluster) bool { return c.Name == c1 || c.Name == c2 })
	}
	const advice = "let the placement of stage canary select another one"
	for name, tc := range map[string]struct {
		changes []change
		advised bool
	}{
		"a canary is there":       {[]change{canaryDone, during(0, slo)}, false},
		"the canaries are gone":   {[]change{canaryDone, during(0, slo), gone}, true},
		"a gate about no cluster": {[]change{canaryDone, during(0, measuredGate("slo")), gone}, false},
		"another canary waits":    {[]change{canaryDone, during(0, slo), gone, rotated(c3)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, rolling(6), append(tc.changes, says("slo", v1alpha1.GateWaiting, "no cluster is Soaking or Done with the content"))...)
			c, _ := plan.Why(c4)
			if got := strings.Contains(c.Reason, advice); got != tc.advised {
				t.Errorf("c4 waits: %q", c.Reason)
			}
			if c, _ := plan.Why(c3); name == "another canary waits" && c.State != rollout.Admitted {
				t.Errorf("the next canary is %s: %s", c.State, c.Reason)
			}
		})
	}
}
