package addonrollout

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// zonedAt is contentAt with a variable that only clusters with a label have.
func zonedAt(tag string) render.Content { return contentAt(tag + "-{{CLUSTER_LABEL_zone}}") }

// zone labels a cluster.
func (s *scene) zone(name string) {
	s.t.Helper()
	c := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		s.t.Fatal(err)
	}
	c.Labels = map[string]string{"zone": "eu"}
	s.update(c)
}

// TestContentWithoutAValueOnTheCanaryHaltsTheRollout: a commit that needs a value which a cluster does
// not have is halted by its canary like any other bad commit, and names the value.
func TestContentWithoutAValueOnTheCanaryHaltsTheRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.zone("c2")
	s.oneByOne()
	s.target("v1")
	s.turns(20)
	s.settle()
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded {
		t.Fatalf("v1 is everywhere, got %s", got)
	}
	before := s.versions()
	s.targetOf(zonedAt("v2"), "v2")
	s.turns(3)
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || !strings.HasPrefix(ro.Status.Message, "halted in everyone: 1 failed (c1: no value for CLUSTER_LABEL_zone (AddOnTemplate/hello: ") {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if !maps.Equal(before, s.versions()) {
		t.Error("a work was written although the canary cannot have the content")
	}
	s.target("v1")
	s.turns(3)
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded || !maps.Equal(before, s.versions()) {
		t.Errorf("going back moves no cluster: %s", got)
	}
}

// TestClusterWithoutAValueForTheFirstContentFails: nothing that ran before needed the value, so that the commit is the
// cause. A success would say that the fleet has the content. The other clusters get it, and the cluster does so too
// once it has the value.
func TestClusterWithoutAValueForTheFirstContentFails(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.zone("c2")
	s.targetOf(zonedAt("v1"), "v1")
	for range 6 {
		s.settleOnce()
	}
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || ro.Status.Counts.Updated != 1 || !strings.HasPrefix(ro.Status.Message, "failed in all: 1 failed (c1: no value for CLUSTER_LABEL_zone (") {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if got := s.reported(); !strings.HasPrefix(got, "failure: failed in all: 1 failed (c1: no value for CLUSTER_LABEL_zone") {
		t.Errorf("the commit says %q", got)
	}
	s.zone("c1")
	s.settle()
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Counts.Updated != 2 {
		t.Errorf("c1 has the label, got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

// TestFirstContentThatNoClusterCanHaveFails: the commit is red at once, instead of pending for as long as no
// cluster has the label.
func TestFirstContentThatNoClusterCanHaveFails(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	s.targetOf(zonedAt("v1"), "v1")
	s.turns(3)
	want := "halted in everyone: 1 failed (c1: no value for CLUSTER_LABEL_zone ("
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseFailed || !strings.HasPrefix(ro.Status.Message, want) {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if got := s.reported(); !strings.HasPrefix(got, "failure: "+want) {
		t.Errorf("the commit says %q", got)
	}
}

// TestClusterThatFailedWithinTheBudgetOfAFirstInstallStaysFailed: the success of the others makes the content stable, and
// the failure of the cluster stays one. Commits with the same content say so as well.
func TestClusterThatFailedWithinTheBudgetOfAFirstInstallStaysFailed(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.zone("c2")
	s.zone("c3")
	s.within(1, "10m")
	s.targetOf(zonedAt("v1"), "v1")
	for range 12 {
		s.settleOnce()
	}
	if st := s.rollout().Status; st.Phase != v1alpha1.PhaseSucceeded || st.Counts.Failed != 1 || st.Counts.Parked != 0 {
		t.Errorf("got %s, %d failed, %d parked: %s", st.Phase, st.Counts.Failed, st.Counts.Parked, st.Message)
	}
}

// parkedForItsLabel is a scene in which c2 and c3 run v1, and c1 joined without the label that v1 needs.
func parkedForItsLabel(t *testing.T) (s *scene, v1 string) {
	t.Helper()
	s = newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.zone("c2")
	s.zone("c3")
	s.within(0, "10m")
	s.selects("c2", "c3")
	v1 = s.targetOf(zonedAt("v1"), "v1")
	s.settle()
	s.selects("c1", "c2", "c3")
	s.settle()
	return s, v1
}

// TestClusterWithoutAValueIsParkedByContentThatSucceededBeforeTheRemoval: content that succeeded here is not the cause,
// also if nothing of it was left.
func TestClusterWithoutAValueIsParkedByContentThatSucceededBeforeTheRemoval(t *testing.T) {
	s, _ := parkedForItsLabel(t)
	s.removed()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { spec.Removal = nil })
	for range 8 {
		s.settleOnce()
	}
	if st := s.rollout().Status; st.Phase != v1alpha1.PhaseSucceeded || st.Counts.Updated != 2 || st.Counts.Parked != 1 {
		t.Errorf("got %s: %s", st.Phase, st.Message)
	}
}

// TestParkedClusterDoesNotHaltTheFixOfBlockedContent: the cluster never had a value that the content needs. The content is
// blocked, and no other succeeded: the fix that needs the value as well is not the cause.
func TestParkedClusterDoesNotHaltTheFixOfBlockedContent(t *testing.T) {
	s, v1 := parkedForItsLabel(t)
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Digest: v1, Reason: "leaks"}}
	})
	v2 := s.targetOf(zonedAt("v2"), "v2")
	for range 12 {
		s.settleOnce()
	}
	st := s.rollout().Status
	if got := s.holding(v2); !slices.Equal(got, []string{"c2", "c3"}) || st.Phase != v1alpha1.PhaseSucceeded || st.Counts.Parked != 1 {
		t.Errorf("%v have the fix, %s: %s", got, st.Phase, st.Message)
	}
}

// TestClusterWithoutAValueForTheStableContentGetsTheFix: the cluster does not start at the stable revision, which
// cannot be rendered for it, and holds no slot for it. It is admitted to the fix like any other cluster.
func TestClusterWithoutAValueForTheStableContentGetsTheFix(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.zone("c1")
	s.zone("c2")
	s.within(0, "10m")
	s.selects("c1", "c2")
	s.targetOf(zonedAt("v1"), "v1")
	s.settle()
	s.selects("c1", "c2", "c3")
	s.settle()
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Counts.Parked != 1 {
		t.Fatalf("v1 is everywhere but on c3, got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	v2 := s.target("v2")
	s.turn()
	plan := s.plan()
	if c3, _ := plan.Why("c3"); c3.State != rollout.Waiting || c3.Reason != "waits for a free slot in everyone: 1 of 1 in flight" {
		t.Errorf("c3 waits like any other cluster: got %s: %s", c3.State, c3.Reason)
	}
	for range 20 {
		s.settleOnce()
		plan := s.plan()
		if c3, _ := plan.Why("c3"); c3.State.InFlight() && c3.Revision != v2 {
			t.Fatalf("c3 is admitted to %s: %s", c3.Revision, c3.Reason)
		}
	}
	if got := s.holding(v2); len(got) != 3 {
		t.Errorf("only %v have the fix: %s", got, s.rollout().Status.Message)
	}
}

// TestClusterThatJoinsAtContentWhichCannotBeRenderedAnyMoreKeepsNoSlot: its works were written, and then it lost a value
// that the stable content needs. It fails like a cluster whose works the hub refuses, and waits for the target.
func TestClusterThatJoinsAtContentWhichCannotBeRenderedAnyMoreKeepsNoSlot(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.selects("c1", "c2")
	for _, name := range []string{"c1", "c2", "c3"} {
		s.zone(name)
	}
	s.canary("c1")
	s.targetOf(zonedAt("v1"), "v1")
	s.settle()
	s.target("v2")
	s.turns(2) // c1 is in flight, and never reports
	s.selects("c1", "c2", "c3")
	s.turns(2)
	if got := s.stateOf("c3"); !got.InFlight() || s.works()["c3"] == nil {
		t.Fatalf("c3 joins first, got %s", got)
	}
	c := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "c3"}, c); err != nil {
		t.Fatal(err)
	}
	c.Labels = nil
	s.update(c)
	for range 13 {
		s.turn()
		s.advance(time.Minute)
	}
	plan := s.plan()
	if c3, _ := plan.Why("c3"); s.stateOf("c3") != rollout.Failed || c3.State != rollout.Waiting {
		t.Errorf("c3 is %s with v1, and %s: %s", s.stateOf("c3"), c3.State, c3.Reason)
	}
}

// within makes the rollout move one cluster at a time, with failures allowed and a
// deadline.
func (s *scene) within(failures int32, deadline string) {
	s.t.Helper()
	s.oneByOne()
	allowed := intstr.FromInt32(failures)
	ro := s.rollout()
	ro.Spec.Stages[0].MaxFailures, ro.Spec.Stages[0].ProgressDeadline = &allowed, deadline
	s.update(ro)
}

// failedForItsLabel is a scene in which c1 runs v1 and does not have the label that v2 needs.
func failedForItsLabel(t *testing.T, failures int32) (s *scene, v1 string) {
	t.Helper()
	s = newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.zone("c2")
	s.zone("c3")
	s.within(failures, "10m")
	v1 = s.target("v1")
	s.settle()
	s.targetOf(zonedAt("v2"), "v2")
	for range 6 {
		s.settleOnce()
	}
	return s, v1
}

// TestDeadlineBeginsWhenContentCanBeRendered: a cluster that gets the label long after its deadline
// does not time out: it is in flight and judged by its reports.
func TestDeadlineBeginsWhenContentCanBeRendered(t *testing.T) {
	s, _ := failedForItsLabel(t, 0)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseFailed {
		t.Fatalf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	s.advance(time.Hour)
	s.turn()
	version := s.rollout().ResourceVersion
	s.advance(time.Hour)
	s.turns(2)
	if got := s.rollout().ResourceVersion; got != version {
		t.Error("a failed cluster costs a write while nothing happens")
	}
	s.zone("c1")
	s.turn()
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseProgressing || ro.Status.Counts.Failed != 0 || ro.Status.Counts.InFlight != 1 {
		t.Errorf("it has ten minutes from now: got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	s.advance(9 * time.Minute)
	s.turn()
	if got := s.rollout().Status; got.Counts.Failed != 0 {
		t.Errorf("nor is it late nine minutes later: %s", got.Message)
	}
	s.settle()
}

// TestClusterThatFailedWithinTheBudgetStaysFailed: after the success the target is stable, but the
// cluster still runs other content.
func TestClusterThatFailedWithinTheBudgetStaysFailed(t *testing.T) {
	s, v1 := failedForItsLabel(t, 1)
	for range 3 {
		ro := s.rollout()
		if ro.Status.Phase != v1alpha1.PhaseSucceeded || !strings.Contains(ro.Status.Message, "1 failed (c1: no value for CLUSTER_LABEL_zone") {
			t.Fatalf("got %s: %s", ro.Status.Phase, ro.Status.Message)
		}
		plan := s.plan()
		if c1, _ := plan.Why("c1"); c1.State != rollout.Failed || c1.Revision != v1 {
			t.Errorf("c1 failed and runs v1: %+v", c1)
		}
		s.settleOnce()
	}
	s.targetOf(zonedAt("v3"), "v3")
	for range 6 {
		s.settleOnce()
	}
	if ro := s.rollout(); ro.Status.Counts.Failed != 1 || ro.Status.Counts.Updated != 2 {
		t.Errorf("the next commit asks for what it lacks as well: %s", ro.Status.Message)
	}
}

// TestWorkOfAFailedClusterIsRestored: a cluster for which the target cannot be rendered keeps its
// content, even if another writer changes or deletes its works.
func TestWorkOfAFailedClusterIsRestored(t *testing.T) {
	for failures, when := range []string{"halted", "within the budget"} {
		t.Run(when, func(t *testing.T) {
			s, v1 := failedForItsLabel(t, int32(failures)) //nolint:gosec // 0 and 1
			before := s.works()["c1"]
			changed := before.DeepCopy()
			changed.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"y"}}`)
			s.update(changed)
			s.turns(2)
			if got := s.works()["c1"]; !equality.Semantic.DeepEqual(got.Spec, before.Spec) {
				t.Errorf("what was changed is restored: %s", got.Spec.Workload.Manifests[0].Raw)
			}
			if failures > 0 {
				return // after its works are deleted, its content is not known any more
			}
			s.delete(s.works()["c1"])
			s.turns(2)
			got := s.works()["c1"]
			if got == nil || got.Annotations[v1alpha1.RevisionAnnotation] != v1 || !equality.Semantic.DeepEqual(got.Spec, before.Spec) {
				t.Fatalf("what was deleted is restored: %+v", got)
			}
			c := meta.FindStatusCondition(s.addOn("c1").Status.Conditions, "Configured")
			if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "CLUSTER_LABEL_zone") {
				t.Errorf("and it still says what it lacks: %+v", c)
			}
			versions, rest := s.versions(), s.addOn("c1").ResourceVersion
			s.turns(2)
			if !maps.Equal(versions, s.versions()) || s.addOn("c1").ResourceVersion != rest {
				t.Error("nothing is written at rest")
			}
		})
	}
}
