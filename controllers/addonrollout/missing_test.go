package addonrollout

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// says is status, reason and message of a condition; "": it does not exist.
func (s *scene) says(kind string) string {
	s.t.Helper()
	c := conditions.Get(s.rollout(), kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// The revision that a fleet at rest runs is deleted, and the source is not read. The rollout names
// the revision, the clusters that it holds and how to restore it. This is so in the same process,
// which decoded the body before, and after a restart. The rollout recovers with the body.
func TestMissingTargetIsReportedWithoutTheSource(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3", "c4")
	digest := s.target("v1")
	s.settle()
	revision := s.revision(digest)
	reports := len(s.rollout().Status.CommitStatuses)
	versions := s.versions()
	s.delete(revision)
	for _, process := range []string{"the same", "the next"} {
		s.turns(2)
		want := "Unknown RevisionMissing: revision " + revision.Name + " is missing: its content stays, without repair, on " +
			"4 clusters (c1, c2, c3 and 1 more), and no cluster is admitted; if source fleet still declares this content, restore it: " +
			"addonflow reconcile source fleet -n team"
		if got := s.says(meta.ReadyCondition); got != want {
			t.Errorf("%s process says\n%s, want\n%s", process, got, want)
		}
		if got := s.says(meta.ReconcilingCondition); !strings.HasPrefix(got, "True RevisionMissing") {
			t.Errorf("%s process: it may pass by itself: %q", process, got)
		}
		if got := s.troubled(); !strings.HasPrefix(got, "RevisionMissing: held 4 clusters: c1: ") {
			t.Errorf("%s process does not name the held cluster: %q", process, got)
		}
		s.restart()
	}
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseSucceeded || len(got.CommitStatuses) != reports {
		t.Errorf("what was judged stays judged: %s, %d reports", got.Phase, len(got.CommitStatuses))
	}
	why, _ := s.plan().Why("c1")
	if want := "runs the target, without repair: revision " + revision.Name + " is missing"; why.State != rollout.Done || why.Reason != want {
		t.Errorf("why says %s %q", why.State, why.Reason)
	}

	revision.ResourceVersion = ""
	s.create(revision)
	s.turns(2)
	if got := s.says(meta.ReadyCondition); !strings.HasPrefix(got, "True "+v1alpha1.RolloutSucceededReason) || s.troubled() != "" {
		t.Errorf("with the body back all is well: %q, %q", got, s.troubled())
	}
	for name, version := range s.versions() {
		if version != versions[name] {
			t.Errorf("the work of %s was written", name)
		}
	}
}

// A revision that cannot be decoded counts as missing. It must be deleted before the operator can
// create it again.
func TestTargetThatCannotBeReadIsReported(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	digest := s.target("v1")
	s.settle()
	revision := s.revision(digest)
	revision.Spec.Body = []byte("broken")
	s.update(revision)
	s.restart()
	s.turn()
	want := "Unknown RevisionMissing: revision " + revision.Name + " cannot be used: "
	if got := s.says(meta.ReadyCondition); !strings.HasPrefix(got, want) || !strings.Contains(got, "(delete it): its content stays, without repair, on 1 cluster (c1)") {
		t.Errorf("got %q, want %q first", got, want)
	}
}

// No cluster is admitted to content that cannot be rendered, and no deadline runs meanwhile. When the
// body is back, the rollout continues.
func TestMissingTargetHoldsTheRolloutAndFailsNoCluster(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	ro := s.rollout()
	ro.Spec.Stages[0].ProgressDeadline = "1m"
	s.update(ro)
	v2 := s.target("v2")
	revision := s.revision(v2)
	s.delete(revision)
	for range 3 {
		s.turn()
		s.advance(time.Minute)
	}
	status := s.rollout().Status
	if status.Phase != v1alpha1.PhaseProgressing || status.Counts.Waiting != 2 || status.Counts.Failed != 0 {
		t.Errorf("no cluster is admitted: %s, %+v", status.Phase, status.Counts)
	}
	if want := "revision " + revision.Name + " is missing"; !strings.HasPrefix(status.Message, want) {
		t.Errorf("the commit status is %q, want %q first", status.Message, want)
	}
	revision.ResourceVersion = ""
	s.create(revision)
	s.settle()
}

// A removal needs no body.
func TestMissingTargetDoesNotBlockRemovals(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	digest := s.target("v1")
	s.settle()
	s.delete(s.revision(digest))
	s.restart()
	s.turn()
	var placement clusterv1beta1.Placement
	var decision clusterv1beta1.PlacementDecision
	for name, o := range map[string]client.Object{"all": &placement, "all-1": &decision} {
		if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, o); err != nil {
			t.Fatal(err)
		}
		s.delete(o)
	}
	s.place("all", "c1")
	s.turn()
	if got := s.says(meta.ReadyCondition); !strings.Contains(got, "is missing") || !strings.Contains(got, "1 cluster to remove: grace period") {
		t.Errorf("both are said: %q", got)
	}
	s.advance(5 * time.Minute)
	s.turns(2)
	if names := s.installed(); len(names) != 1 || names[0] != "c1" {
		t.Errorf("c2 left: the add-on is on %v", names)
	}
}

// A revision is missing, as after the add-on was released and taken over by a source of another name.
// If the target renders the same objects, the cluster is at the target: it is repaired with the
// target, and no revision is reported as missing.
func TestMissingRevisionOfEqualContentIsRepairedWithTheTarget(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	gone := s.revision(s.target("v1"))
	s.settle()
	equal := contentAt("v1")
	equal.Templates[0].SpecHash = "hash-v2"
	if s.targetOf(equal, "v2") == gone.Spec.Digest {
		t.Fatal("the target is another revision")
	}
	s.turns(2)
	s.delete(gone)
	s.restart()
	image := func(work *workv1.ManifestWork) string { return string(work.Spec.Workload.Manifests[0].Raw) }
	drifted := s.works()["c1"]
	if drifted == nil || drifted.Annotations[v1alpha1.RevisionAnnotation] != gone.Spec.Digest {
		t.Fatalf("the target changes nothing here, and nothing is written: %v", drifted)
	}
	whole := image(drifted)
	drifted.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(whole, "hello:v1", "hello:v0"))
	s.update(drifted)
	s.turns(2)
	if got := image(s.works()["c1"]); got != whole {
		t.Errorf("it is repaired, got %s", got)
	}
	if got := s.troubled(); got != "" {
		t.Errorf("nothing is missing: %q", got)
	}
	plan, err := s.explained()
	if why, _ := plan.Why("c1"); err != nil || why.State != rollout.Unchanged || why.Reason != "the target changes nothing here" {
		t.Errorf("why reports a missing revision: %s %q, %v", why.State, why.Reason, err)
	}
}

// TestMissingPlacementIsWaitedFor: a stage whose placement does not exist makes the rollout not
// ready. A stage that the user holds does, too, but nothing is being reconciled.
func TestMissingPlacementIsWaitedFor(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.oneByOne()
	s.target("v1")
	ro := s.rollout()
	ro.Spec.Stages[0].Placement.Name = "typo"
	s.update(ro)
	s.turns(2)
	if got := s.says("Reconciling"); !strings.HasPrefix(got, "True ReferenceNotFound: ") || !strings.Contains(got, "Placement team/typo does not exist") {
		t.Errorf("got %q", got)
	}
	none := intstr.FromInt32(0)
	ro = s.rollout()
	ro.Spec.Stages[0].Placement.Name, ro.Spec.Stages[0].MaxConcurrency = "all", &none
	s.update(ro)
	s.turns(2)
	if got := s.says("Ready"); !strings.HasPrefix(got, "Unknown RolloutHeld: ") || s.says("Reconciling") != "" {
		t.Errorf("got %q", got)
	}
}
