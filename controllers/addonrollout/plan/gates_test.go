package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/rollout"
)

// TestMeasurementsMakeVerdicts: each is one result, and what is stored about a gate that is
// evaluated before or during a stage.
func TestMeasurementsMakeVerdicts(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(minute int) *metav1.Time {
		stamp := metav1.NewTime(start.Add(time.Duration(minute) * time.Minute))
		return &stamp
	}
	const before, during = v1alpha1.GateBefore, v1alpha1.GateDuring
	passed, failed, waiting, errored := v1alpha1.GatePassed, v1alpha1.GateFailed, v1alpha1.GateWaiting, v1alpha1.GateError
	measured := func(state v1alpha1.GateState, minute int) *gates.Measured {
		return &gates.Measured{
			Stage: "canary", Gate: "slo", Digest: "d", Attempt: 2, Verdict: gates.Verdict{State: state, Reason: "0.3"},
			Began: at(minute).Add(300 * time.Millisecond),
		}
	}
	for name, tc := range map[string]struct {
		when     v1alpha1.GateMoment
		failures int32
		stored   v1alpha1.GateStatus
		result   *gates.Measured
		want     v1alpha1.GateStatus
	}{
		"the first result":                    {when: during, stored: v1alpha1.GateStatus{State: waiting, Since: at(0)}, result: measured(passed, 1), want: v1alpha1.GateStatus{State: passed, Reason: "0.3", Since: at(9), EvaluatedAt: at(1)}},
		"a later one with the same state":     {when: during, stored: v1alpha1.GateStatus{State: passed, Since: at(0), EvaluatedAt: at(1)}, result: measured(passed, 2), want: v1alpha1.GateStatus{State: passed, Reason: "0.3", Since: at(0), EvaluatedAt: at(2)}},
		"the same one again":                  {when: during, failures: 3, stored: v1alpha1.GateStatus{State: waiting, Since: at(0), EvaluatedAt: at(1), FailedInARow: 1}, result: measured(failed, 1), want: v1alpha1.GateStatus{State: waiting, Since: at(0), EvaluatedAt: at(1), FailedInARow: 1}},
		"one failure of three":                {when: during, failures: 3, stored: v1alpha1.GateStatus{State: passed, Since: at(0), EvaluatedAt: at(1)}, result: measured(failed, 2), want: v1alpha1.GateStatus{State: waiting, Reason: "failed 1 times in a row, 3 halt the stage: 0.3", Since: at(9), EvaluatedAt: at(2), FailedInARow: 1}},
		"the third failure of three":          {when: during, failures: 3, stored: v1alpha1.GateStatus{State: waiting, Since: at(0), EvaluatedAt: at(1), FailedInARow: 2}, result: measured(failed, 2), want: v1alpha1.GateStatus{State: failed, Reason: "0.3", Since: at(9), EvaluatedAt: at(2), FailedInARow: 3}},
		"a failure, if one is enough":         {when: during, stored: v1alpha1.GateStatus{State: passed, Since: at(0), EvaluatedAt: at(1)}, result: measured(failed, 2), want: v1alpha1.GateStatus{State: failed, Reason: "0.3", Since: at(9), EvaluatedAt: at(2), FailedInARow: 1}},
		"a success between failures":          {when: during, failures: 3, stored: v1alpha1.GateStatus{State: waiting, Since: at(0), EvaluatedAt: at(1), FailedInARow: 2}, result: measured(passed, 2), want: v1alpha1.GateStatus{State: passed, Reason: "0.3", Since: at(9), EvaluatedAt: at(2)}},
		"an error between failures":           {when: during, failures: 3, stored: v1alpha1.GateStatus{State: waiting, Since: at(0), EvaluatedAt: at(1), FailedInARow: 2}, result: measured(errored, 2), want: v1alpha1.GateStatus{State: errored, Reason: "0.3", Since: at(9), EvaluatedAt: at(1), FailedInARow: 2}},
		"an error that lasts":                 {when: during, stored: v1alpha1.GateStatus{State: errored, Since: at(0)}, result: measured(errored, 2), want: v1alpha1.GateStatus{State: errored, Reason: "0.3", Since: at(0)}},
		"after it failed during the stage":    {when: during, stored: v1alpha1.GateStatus{State: failed, Since: at(0), EvaluatedAt: at(1)}, result: measured(passed, 2), want: v1alpha1.GateStatus{State: failed, Since: at(0), EvaluatedAt: at(1)}},
		"after it failed before the stage":    {when: before, stored: v1alpha1.GateStatus{State: failed, Since: at(0), EvaluatedAt: at(1), FailedInARow: 1}, result: measured(passed, 2), want: v1alpha1.GateStatus{State: passed, Reason: "0.3", Since: at(9), EvaluatedAt: at(2)}},
		"after it passed before the stage":    {when: before, stored: v1alpha1.GateStatus{State: passed, Since: at(0), EvaluatedAt: at(1)}, result: measured(failed, 2), want: v1alpha1.GateStatus{State: passed, Since: at(0), EvaluatedAt: at(1)}},
		"of another attempt":                  {when: during, stored: v1alpha1.GateStatus{State: waiting}, result: &gates.Measured{Stage: "canary", Gate: "slo", Digest: "d", Attempt: 1, Verdict: gates.Verdict{State: passed}, Began: start}, want: v1alpha1.GateStatus{State: waiting}},
		"of other content":                    {when: during, stored: v1alpha1.GateStatus{State: waiting}, result: &gates.Measured{Stage: "canary", Gate: "slo", Digest: "e", Attempt: 2, Verdict: gates.Verdict{State: passed}, Began: start}, want: v1alpha1.GateStatus{State: waiting}},
		"of the future":                       {when: during, stored: v1alpha1.GateStatus{State: waiting}, result: measured(passed, 10), want: v1alpha1.GateStatus{State: waiting}},
		"a stored verdict of the future":      {when: during, stored: v1alpha1.GateStatus{State: passed, Since: at(20), EvaluatedAt: at(20)}, want: v1alpha1.GateStatus{State: passed, Since: at(9)}},
		"a stored verdict of another type":    {when: during, stored: v1alpha1.GateStatus{Type: v1alpha1.GatePrometheus, State: failed, Since: at(0)}, want: v1alpha1.GateStatus{State: waiting}},
		"a stored verdict of another moment":  {when: during, stored: v1alpha1.GateStatus{When: before, State: failed, Since: at(0)}, want: v1alpha1.GateStatus{State: waiting}},
		"nothing was stored, nothing came in": {when: during, want: v1alpha1.GateStatus{State: waiting}},
	} {
		t.Run(name, func(t *testing.T) {
			declared := v1alpha1.Gate{Name: "slo", Type: v1alpha1.GateWebhook, Webhook: &v1alpha1.WebhookGate{}}
			if tc.failures > 0 {
				declared.Failures = &tc.failures
			}
			stages := []v1alpha1.Stage{{Name: "canary", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{declared}}}}
			if tc.when == during {
				stages[0].Gates = &v1alpha1.Gates{During: []v1alpha1.Gate{declared}}
			}
			o := &Observation{Look: Look{Wall: at(9).Time}, Rollout: &v1alpha1.AddOnRollout{
				Spec: v1alpha1.AddOnRolloutSpec{Stages: stages, Target: &v1alpha1.Target{Digest: "d"}},
			}, Choice: Choice{Target: v1alpha1.Target{Digest: "d"}}}
			turn := &turn{Observation: o, stored: v1alpha1.AddOnRolloutStatus{Attempt: 2}}
			named := func(g v1alpha1.GateStatus) v1alpha1.GateStatus {
				g.Name = "slo"
				if g.Type == "" {
					g.Type = v1alpha1.GateWebhook
				}
				if g.When == "" {
					g.When = tc.when
				}
				return g
			}
			if tc.stored.State != "" {
				turn.stored.Stages = []v1alpha1.StageStatus{{Name: "canary", Gates: []v1alpha1.GateStatus{named(tc.stored)}}}
			}
			if tc.result != nil {
				tc.result.When = tc.when
				turn.measured = []gates.Measured{*tc.result}
			}
			if diff := cmp.Diff(named(tc.want), turn.judgeGates()[0].status); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheLastCommentThatCountedStaysKnownAfterItsApprovalIsWithdrawn: otherwise the comment would be entered
// again.
func TestTheLastCommentThatCountedStaysKnownAfterItsApprovalIsWithdrawn(t *testing.T) {
	declared := v1alpha1.Gate{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{}}}
	by := func(comment int64) v1alpha1.AddOnApproval {
		return v1alpha1.AddOnApproval{Spec: v1alpha1.AddOnApprovalSpec{
			Stage: "canary", Gate: "qa", Digest: "d", Attempt: 1, Decision: v1alpha1.Approve,
			Forge: &v1alpha1.ForgeAuthor{Host: "gitea.example", Login: "bob", CommentID: comment},
		}}
	}
	stored, now := v1alpha1.AddOnRolloutStatus{Attempt: 1}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	began := now.Add(time.Minute)
	for _, step := range []struct {
		entered []v1alpha1.AddOnApproval
		state   v1alpha1.GateState
		used    int64
	}{
		{nil, v1alpha1.GateWaiting, 0},
		{[]v1alpha1.AddOnApproval{by(7), by(5)}, v1alpha1.GatePassed, 7},
		{nil, v1alpha1.GateWaiting, 7},
	} {
		turn := &turn{Observation: &Observation{Rollout: &v1alpha1.AddOnRollout{}, Choice: Choice{Target: v1alpha1.Target{Digest: "d"}}}, stored: stored}
		turn.Rollout.Spec.Stages = []v1alpha1.Stage{{Name: "canary", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{declared}}}}
		turn.Approvals = Approvals{Read: true, Counted: step.entered}
		now = now.Add(time.Minute)
		turn.Look.Wall = now
		g := turn.judgeGates()[0]
		g.ask(true, now)
		got := g.status
		if !got.BeganAt.Time.Equal(began) || !got.Since.Time.Equal(now) {
			t.Errorf("began at %s and is %s since %s, want %s and %s", got.BeganAt, got.State, got.Since, began, now)
		}
		if got.State != step.state || got.LastComment != step.used {
			t.Errorf("after %d decisions: %+v, want %s and comment %d", len(step.entered), got, step.state, step.used)
		}
		stored.Stages = []v1alpha1.StageStatus{{Name: "canary", Gates: []v1alpha1.GateStatus{got}}}
	}
}

// TestVerdictsMoveWithTheOperatorsClock: otherwise an old evaluation would count as one after the
// soak.
func TestVerdictsMoveWithTheOperatorsClock(t *testing.T) {
	start := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	stages := []v1alpha1.StageStatus{{Name: "canary", Gates: []v1alpha1.GateStatus{{Name: "slo", Since: &start, BeganAt: &start, EvaluatedAt: &start}, {Name: "new"}}}}
	got := retiming{step: -time.Hour}.stages(stages)[0].Gates
	if want := start.Add(-time.Hour); !got[0].EvaluatedAt.Time.Equal(want) || !got[0].Since.Time.Equal(want) || !got[0].BeganAt.Time.Equal(want) || got[1].Since != nil {
		t.Errorf("got %+v", got)
	}
	if !stages[0].Gates[0].EvaluatedAt.Equal(&start) {
		t.Error("the stored status was changed")
	}
}

// TestAtMostTwoHundredClustersAreCompared, and which ones does not change when others come.
func TestAtMostTwoHundredClustersAreCompared(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-%04d", i)
	}
	some := chosen(slices.Clone(names[:900]))
	all := chosen(slices.Clone(names))
	if len(some) != namesPerSide || len(all) != namesPerSide || !slices.IsSorted(all) {
		t.Fatalf("got %d and %d names", len(some), len(all))
	}
	kept := 0
	for _, name := range some {
		if slices.Contains(all, name) {
			kept++
		}
	}
	if kept < 150 || slices.Equal(all, names[:namesPerSide]) {
		t.Errorf("%d of the names are chosen again, and the choice is not one by name: %v", kept, all[:3])
	}
}

// TestWhichClustersAreCompared: $moved are those that soak or are done with the content. $control are available, run
// the stable revision, and are not in flight.
func TestWhichClustersAreCompared(t *testing.T) {
	reachable := func(status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		c := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: status}}
		return c
	}
	cluster := func(name string, state rollout.State, revision string, available metav1.ConditionStatus, atStable bool) Cluster {
		return Cluster{Judged: Judged{Member: &Member{Name: name, Cluster: reachable(available)}, AtStable: atStable}, Planned: rollout.ClusterPlan{Name: name, State: state, Revision: revision}}
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	d := Decided{
		Input: &rollout.Input{Stable: "v1", Spec: v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{Digest: "v2"}}},
		Clusters: []Cluster{
			cluster("done", rollout.Done, "v2", yes, false), cluster("soaking", rollout.Soaking, "v2", yes, false),
			cluster("soaking with the stable one", rollout.Soaking, "v1", yes, true), cluster("updating", rollout.Updating, "v2", yes, false),
			cluster("failed", rollout.Failed, "v2", yes, false), cluster("waiting", rollout.Waiting, "v1", yes, true),
			cluster("lost", rollout.Waiting, "v1", no, true), cluster("older", rollout.Waiting, "v0", yes, false),
			cluster("held", rollout.Held, "v1", yes, true), cluster("in no stage", rollout.Unstaged, "v1", yes, true),
		},
	}
	o := &Observation{Rollout: &v1alpha1.AddOnRollout{}, Choice: Choice{Target: v1alpha1.Target{Digest: "v2"}}}
	q := d.question(o, &gate{}, 1)
	if want := []string{"done", "soaking"}; !slices.Equal(q.Moved, want) {
		t.Errorf("moved are %q", q.Moved)
	}
	if want := []string{"waiting", "held", "in no stage"}; !slices.Equal(q.Control, want) {
		t.Errorf("control are %q", q.Control)
	}
	d.Input.Stable = ""
	if q := d.question(o, &gate{}, 1); len(q.Control) != 0 {
		t.Errorf("without a stable revision, control are %q", q.Control)
	}
}

// A stage that is complete, as after a retry of another stage, waits for no gate. A gate of it that was asked for keeps its
// verdict, and so does a gate of a stage that has not begun.
func TestCompleteStageHasNoGateThatWasNotAskedFor(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	verdict := func(name string, state v1alpha1.GateState, since *metav1.Time) v1alpha1.GateStatus {
		return v1alpha1.GateStatus{Name: name, Type: v1alpha1.GateApproval, When: v1alpha1.GateBefore, State: state, Since: since}
	}
	unasked, passed := verdict("go", v1alpha1.GateWaiting, nil), verdict("qa", v1alpha1.GatePassed, &since)
	var all []gate
	for _, stage := range []string{"canary", "everyone", "nothing"} {
		all = append(all, gate{stage: stage, status: unasked}, gate{stage: stage, status: passed})
	}
	got := withVerdicts([]v1alpha1.StageStatus{
		{Name: "canary", Phase: rollout.StageComplete}, {Name: "everyone", Phase: rollout.StageWaiting}, {Name: "nothing", Phase: rollout.StageNothingToDo},
	}, all)
	for i, want := range [][]v1alpha1.GateStatus{{passed}, {unasked, passed}, {passed}} {
		if diff := cmp.Diff(want, got[i].Gates); diff != "" {
			t.Errorf("stage %s: %s", got[i].Name, diff)
		}
	}
}

// windowed is an observation of a rollout whose stages have windows that are open in each of these hours, by stage.
func windowed(now time.Time, hours ...string) *Observation {
	target := v1alpha1.Target{Digest: "d", Revision: "hello-d"}
	o := &Observation{
		Look: Look{Wall: now}, Choice: Choice{Target: target},
		Rollout: &v1alpha1.AddOnRollout{Spec: v1alpha1.AddOnRolloutSpec{Target: &target}},
		Owner:   &addonv1alpha1.ClusterManagementAddOn{},
	}
	for i, open := range hours {
		o.Rollout.Spec.Stages = append(o.Rollout.Spec.Stages, v1alpha1.Stage{Name: fmt.Sprintf("s%d", i), Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{{
			Name: "hours", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{TimeZone: "UTC", Allow: []v1alpha1.TimeRange{{Hours: open}}},
		}}}})
	}
	return o
}

// TestWindowsAreReadOnceADay: reading a window may take a tenth of a second, and a rollout may have 155 windows and a
// turn each second.
func TestWindowsAreReadOnceADay(t *testing.T) {
	const day = 24 * time.Hour
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	memory := Memory{}
	for _, step := range []struct {
		name  string
		after time.Duration
		hours []string
		want  int
	}{
		{"the first turn", 0, []string{"09:00-17:00", "10:00-17:00"}, 2},
		{"a second later", time.Second, []string{"09:00-17:00", "10:00-17:00"}, 0},
		{"after one opened", 6 * time.Hour, []string{"09:00-17:00", "10:00-17:00"}, 0},
		{"a day later", day, []string{"09:00-17:00", "10:00-17:00"}, 2},
		{"edited", day, []string{"09:00-17:00", "11:00-17:00"}, 1},
		{"the clock was set forward", 31 * day, []string{"09:00-17:00", "11:00-17:00"}, 2},
		{"the clock was set back", 2 * day, []string{"09:00-17:00", "11:00-17:00"}, 2},
		{"set back to before one was read", 2*day - time.Second, []string{"09:00-17:00"}, 1},
		{"none is declared", 2 * day, nil, 0},
	} {
		now, readings := start.Add(step.after), 0
		o := windowed(now, step.hours...)
		o.Memory = memory
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(p.Memory.windows); got != len(step.hours) {
			t.Errorf("%s: %d windows are remembered, want %d", step.name, got, len(step.hours))
		}
		for key, w := range p.Memory.windows {
			if !reflect.DeepEqual(memory.windows[key].Openings, w.Openings) {
				readings++
			}
		}
		if readings != step.want {
			t.Errorf("%s: %d are read, want %d", step.name, readings, step.want)
		}
		for i, got := range p.Input.Gates {
			if want, changes := gates.Window(*p.gates[i].Window, now); got.State != want.State || got.Reason != want.Reason || !got.ChangesAt.Equal(changes) {
				t.Errorf("%s: got %+v, want %v", step.name, got, want)
			}
		}
		memory = p.Memory
	}
}
