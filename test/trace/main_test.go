package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record runs a rollout of v2 over three clusters, one at a time, and returns its steps.
func record(t *testing.T) []rollouttest.Step {
	t.Helper()
	names := rollouttest.Names(3)
	f := rollouttest.NewFleet("v1", names...)
	all := v1alpha1.PlacementReference{Namespace: "default", Name: "all"}
	one := intstr.FromInt32(1)
	f.Policy.Spec.Install = &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{{PlacementReference: all}}}
	f.Policy.Spec.Stages = []v1alpha1.Stage{{
		Name: "everyone", Placement: all, MaxConcurrency: &one, MinSuccessTime: metav1.Duration{Duration: time.Minute},
	}}
	f.Policy.Placements = []rollout.Placement{{
		Namespace: "default", Name: "all", Settlement: rollout.Settled, Groups: []rollout.Group{{Clusters: names}},
	}}
	f.SetTarget("v2")
	var steps []rollouttest.Step
	for range 20 {
		in := f.Input()
		plan, err := rollout.New(in)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, rollouttest.StepOf(in, plan, nil))
		f.Store(plan)
		f.CarryOut(plan.Actions)
		f.Now = f.Now.Add(30 * time.Second)
	}
	return steps
}

func write(t *testing.T, steps []rollouttest.Step) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.jsonl")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := rollouttest.NewRecorder(out)
	for _, s := range steps {
		if err := r.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func verdict(t *testing.T, steps []rollouttest.Step) (int, string) {
	t.Helper()
	var out strings.Builder
	broken, err := judge(write(t, steps), &out)
	if err != nil {
		t.Fatal(err)
	}
	return broken, out.String()
}

func TestTraceOfARolloutIsAllowed(t *testing.T) {
	if broken, text := verdict(t, record(t)); broken > 0 {
		t.Fatal(text)
	}
}

// TestTraceThatDoesNotFollowIsNotAllowed changes one stored ledger of a trace.
func TestTraceThatDoesNotFollowIsNotAllowed(t *testing.T) {
	steps := record(t)
	at := slices.IndexFunc(steps, func(s rollouttest.Step) bool {
		return len(s.Ledger.Records) > 0 && s.Ledger.Records[0].State == rollout.Soaking
	})
	if at < 0 {
		t.Fatal("no cluster soaks")
	}
	steps[at].Ledger = *steps[at].Ledger.DeepCopy()
	steps[at].Ledger.Records[0].State = rollout.Done
	broken, text := verdict(t, steps)
	if broken == 0 || !strings.Contains(text, "was not verified for the whole soak") {
		t.Fatal(text)
	}
}

// TestTraceOfLedgersAlone: without what was observed, the changes of the records are judged.
func TestTraceOfLedgersAlone(t *testing.T) {
	steps := record(t)
	for i := range steps {
		steps[i].Input, steps[i].Actions = nil, nil
	}
	if broken, text := verdict(t, steps); broken > 0 {
		t.Fatal(text)
	}
	last := len(steps) - 1
	steps[last].Ledger = *steps[last].Ledger.DeepCopy()
	for i := range steps[last].Ledger.Records {
		steps[last].Ledger.Records[i].State = rollout.Updating
	}
	if broken, text := verdict(t, steps); broken != 1 || !strings.Contains(text, "from Done to Updating") {
		t.Fatal(text)
	}
}

// TestTraceThatBeginsInTheMiddleSaysSo: otherwise its first step reads records that no step wrote.
func TestTraceThatBeginsInTheMiddleSaysSo(t *testing.T) {
	steps := record(t)[2:]
	if broken, text := verdict(t, steps); broken != 1 || !strings.Contains(text, "that no step of the history wrote") {
		t.Fatal(text)
	}
	steps[0].Start = true
	if broken, text := verdict(t, steps); broken > 0 || !strings.Contains(text, "1 records believed") {
		t.Fatal(text)
	}
}

// TestRecordThatNoStepWroteIsNotAllowed: the planner read that a cluster is Done, and no ledger before says so.
func TestRecordThatNoStepWroteIsNotAllowed(t *testing.T) {
	steps := record(t)
	for name, change := range map[string]func(*v1alpha1.Ledger){
		"that no step of the history wrote": func(l *v1alpha1.Ledger) { l.Records[0].State = rollout.Done },
		"other times than those that were stored": func(l *v1alpha1.Ledger) {
			l.Records[0].Times[0].Since.Time = l.Records[0].Times[0].Since.Add(-time.Second)
		},
	} {
		later := slices.Clone(steps[:3])
		in := *later[2].Input
		in.Ledger = *in.Ledger.DeepCopy()
		change(&in.Ledger)
		plan, err := rollout.New(in)
		if err != nil {
			t.Fatal(err)
		}
		later[2] = rollouttest.StepOf(in, plan, nil)
		if broken, text := verdict(t, later); broken != 1 || !strings.Contains(text, name) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestClockThatWasSetMovesEveryTime: the operator moves the times of a ledger with its clock, all of them alike, and
// replaces times in the future by now.
func TestClockThatWasSetMovesEveryTime(t *testing.T) {
	steps := record(t)[:3]
	in := *steps[2].Input
	for name, set := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		moved := in
		moved.Now, moved.Ledger = in.Now.Add(set), rollout.Shift(in.Ledger, set)
		restarted := moved
		restarted.Ledger = rollout.Clamp(in.Ledger, moved.Now)
		for _, now := range []rollout.Input{moved, restarted} {
			plan, err := rollout.New(now)
			if err != nil {
				t.Fatal(err)
			}
			if broken, text := verdict(t, append(slices.Clone(steps[:2]), rollouttest.StepOf(now, plan, nil))); broken > 0 {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// TestEmptyFileIsNoTrace: an empty trace proves nothing and is an error.
func TestEmptyFileIsNoTrace(t *testing.T) {
	if _, err := judge(write(t, nil), &strings.Builder{}); err == nil {
		t.Error("a file without a step is a trace")
	}
}
