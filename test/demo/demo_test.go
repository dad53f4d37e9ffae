package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestHelloTree(t *testing.T) {
	tree, err := HelloTree("v2", 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tree); n != 4 {
		t.Errorf("%d files, want the 4 of examples/hello", n)
	}
	if !strings.Contains(tree[templateFile], "image: registry.example.com/hello:v2\n") {
		t.Errorf("the template does not ask for v2:\n%s", tree[templateFile])
	}
	if !strings.Contains(tree[addOnDir+"/addonrollout.yaml"], "minSuccessTime: 3s\n") {
		t.Errorf("the soak is not 3s:\n%s", tree[addOnDir+"/addonrollout.yaml"])
	}
}

func TestBreakTemplate(t *testing.T) {
	broken, line, err := BreakTemplate("a\nb: {{GREETING}}\n")
	if err != nil || line != 2 || broken != "a\nb: {{GRETING}}\n" {
		t.Errorf("got %q, line %d, error %v", broken, line, err)
	}
	if _, _, err := BreakTemplate("nothing to break"); err == nil {
		t.Error("a template without the variable was broken")
	}
}

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		in     Options
		wrong  bool
	}{
		"Usual":      {"what make demo runs", Options{Clusters: 24, Speed: 1}, false},
		"Fewest":     {"two canaries and two waves", Options{Clusters: 4, Speed: 0.5}, false},
		"TooFew":     {"no clusters to move in waves", Options{Clusters: 3, Speed: 1}, true},
		"Standing":   {"no time passes", Options{Clusters: 24}, true},
		"Backwards":  {"time runs backwards", Options{Clusters: 24, Speed: -1}, true},
		"NoClusters": {"an empty fleet", Options{Speed: 1}, true},
		"Fast":       {"the soak stays a soak", Options{Clusters: 24, Speed: 1000}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.in.validate(); errors.Is(err, ErrOptions) != c.wrong {
				t.Errorf("%s: got %v", c.reason, err)
			}
			if !c.wrong && c.in.soak() <= 0 {
				t.Errorf("%s: no soak at all", c.reason)
			}
		})
	}
	if err := Run(t.Context(), Options{Out: io.Discard}); !errors.Is(err, ErrOptions) {
		t.Errorf("an empty show ran: %v", err)
	}
}

func TestClusterNames(t *testing.T) {
	if diff := cmp.Diff([]string{"eu-01", "us-01", "ap-01", "eu-02"}, clusterNames(4)); diff != "" {
		t.Error(diff)
	}
}

func TestMoved(t *testing.T) {
	work := func(cluster string) types.NamespacedName { return types.NamespacedName{Namespace: cluster, Name: "w"} }
	before := map[types.NamespacedName]int64{work("a"): 1, work("b"): 1, work("c"): 1}
	after := map[types.NamespacedName]int64{work("a"): 1, work("c"): 2, work("d"): 1}
	if diff := cmp.Diff([]string{"b", "c", "d"}, Moved(before, after)); diff != "" {
		t.Error(diff)
	}
}

// second is a time in the recordings of these tests.
func second(n int) metav1.Time {
	return metav1.NewTime(time.Date(2026, time.January, 1, 0, 0, n, 0, time.UTC))
}

// ledger is a status in which the canary was verified after a second, and the others admitted later.
func ledger(admitted int) []v1alpha1.AddOnRolloutStatus {
	return []v1alpha1.AddOnRolloutStatus{{
		Phase: v1alpha1.PhaseSucceeded, Target: &v1alpha1.Target{Digest: "new"},
		Ledger: v1alpha1.Ledger{Records: []v1alpha1.RecordGroup{
			{RecordKey: v1alpha1.RecordKey{Revision: "new", Stage: "canary", State: v1alpha1.ClusterSoaking}, Times: []v1alpha1.RecordTimes{{Admitted: second(0), Since: second(1)}}},
			{RecordKey: v1alpha1.RecordKey{Revision: "new", Stage: "everyone", State: v1alpha1.ClusterUpdating}, Times: []v1alpha1.RecordTimes{{Admitted: second(admitted), Since: second(admitted)}}},
			{RecordKey: v1alpha1.RecordKey{Revision: "old", Stage: "everyone", State: v1alpha1.ClusterDone}, Times: []v1alpha1.RecordTimes{{Admitted: second(0), Since: second(0)}}},
		}},
	}}
}

func TestWaves(t *testing.T) {
	asked := func(cluster string) Change { return Change{Cluster: cluster, Name: "w", Revision: "new"} }
	ready := func(cluster string) Change {
		return Change{Cluster: cluster, Name: "w", Revision: "new", Verified: true}
	}
	want := waves{digest: "new", canaries: []string{"a", "b"}, others: 3, limit: 1, soak: 5 * time.Second}
	for name, c := range map[string]struct {
		reason   string
		works    []Change
		statuses []v1alpha1.AddOnRolloutStatus
		wrong    string
	}{
		"InOrder": {
			"canaries, then one at a time",
			[]Change{asked("a"), asked("b"), ready("b"), asked("a"), ready("a"), asked("c"), ready("c"), asked("d"), ready("d"), asked("e"), ready("e")},
			ledger(6), "",
		},
		"OldRevision": {
			"what is no move to the target counts for nothing",
			[]Change{{Cluster: "d", Revision: "old"}, asked("a"), asked("b"), ready("a"), ready("b"), asked("c"), {Cluster: "d", Revision: "old"}},
			ledger(6), "",
		},
		"BeforeTheCanary": {
			"a canary was not verified yet",
			[]Change{asked("a"), asked("b"), ready("a"), asked("c")},
			ledger(6), "cluster c moved before canary b",
		},
		"TooMany": {
			"two at once where one is allowed",
			[]Change{asked("a"), asked("b"), ready("a"), ready("b"), asked("c"), asked("d")},
			ledger(6), "2 clusters moved at once when d did",
		},
		"NoSoak": {
			"admitted as soon as the canary was verified",
			[]Change{asked("a"), asked("b"), ready("a"), ready("b"), asked("c")},
			ledger(2), "before its soak",
		},
		"NoLedger": {"nothing proves the soak", nil, nil, "never named both stages"},
	} {
		t.Run(name, func(t *testing.T) {
			err := want.check(Recording{Works: c.works, Statuses: c.statuses})
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.wrong)
			}
		})
	}
	complete := Recording{Works: []Change{ready("a"), ready("b"), ready("c"), ready("d"), ready("e")}, Statuses: ledger(6)}
	if !want.finished(complete) {
		t.Error("a complete recording is not seen as finished")
	}
	complete.Works = append(complete.Works, asked("e"))
	if want.finished(complete) {
		t.Error("a recording is seen as finished while a cluster moves")
	}
}

// An operator that cannot run is reported as ended, and Stop returns no error.
func TestOperatorThatEnds(t *testing.T) {
	o, err := StartOperator(OperatorOptions{Binary: "false", LogFile: t.TempDir() + "/log"})
	if err != nil {
		t.Fatal(err)
	}
	<-o.Done()
	if o.Err() == nil {
		t.Error("the operator ended without an error")
	}
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
}

// Stop ends a running operator, and its last output is kept.
func TestOperatorThatRuns(t *testing.T) {
	dir := t.TempDir()
	binary := dir + "/operator"
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho one; echo $1\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := StartOperator(OperatorOptions{Binary: binary, LogFile: dir + "/log"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Stop(); err != nil {
		t.Error(err)
	}
	<-o.Done()
	if err := o.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
	if err := os.WriteFile(dir+"/log", []byte("one\ntwo\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("two\nthree", o.Tail(2)); diff != "" {
		t.Error(diff)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	r := &Recorder{changed: make(chan struct{})}
	if _, err := r.Await(ctx, r.Mark(), func(Recording) bool { return false }); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
	r.fail(errors.New("gap"))
	if _, err := r.Await(t.Context(), r.Mark(), func(Recording) bool { return false }); err == nil {
		t.Error("a recording with a gap was taken for whole")
	}
}
