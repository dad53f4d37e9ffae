package addonrollout

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// list writes configuration kinds into the fenced-off ClusterManagementAddOn.
func (s *scene) list(resources ...string) {
	s.t.Helper()
	owner := &addonv1alpha1.ClusterManagementAddOn{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: "hello"}, owner); err != nil {
		s.t.Fatal(err)
	}
	owner.Annotations = map[string]string{v1alpha1.LifecycleAnnotation: v1alpha1.LifecycleValue, v1alpha1.SourceAnnotation: "team/fleet"}
	owner.Spec.SupportedConfigs = nil
	for _, r := range resources {
		owner.Spec.SupportedConfigs = append(owner.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: r},
		})
	}
	s.update(owner)
}

// onTheWay is a scene with c1 in flight to v2 and the others waiting at v1.
func onTheWay(t *testing.T) (s *scene, v1, v2 string) {
	t.Helper()
	s = newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.oneByOne()
	s.list("addondeploymentconfigs")
	v1 = s.target("v1")
	s.settle()
	v2 = s.target("v2")
	s.turns(2)
	return s, v1, v2
}

// named checks that the status, the commit and why name the same conflict.
func (s *scene) named(conflict string) {
	s.t.Helper()
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseHeld || !strings.HasPrefix(ro.Status.Message, "held: ownership conflict: ") || !strings.Contains(ro.Status.Message, conflict) {
		s.t.Errorf("the status names it: got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if c := conditions.Get(ro, meta.StalledCondition); c == nil || c.Reason != v1alpha1.OwnershipConflictReason || !strings.Contains(c.Message, conflict) {
		s.t.Errorf("so does Stalled: got %+v", c)
	}
	plan := s.plan()
	if c3, _ := plan.Why("c3"); c3.State != rollout.Waiting || !strings.HasPrefix(c3.Reason, "held: ownership conflict: ") || !strings.Contains(c3.Reason, conflict) {
		s.t.Errorf("so does why: got %s: %s", c3.State, c3.Reason)
	}
	if got := s.reported(); !strings.HasPrefix(got, "failure: ownership conflict: ") {
		s.t.Errorf("so does the commit: got %q", got)
	}
}

// TestAddOnTemplatesListedAgainHoldTheRollout: while OCM's template manager may run, no cluster is
// admitted and clusters in flight continue. The rollout continues when addontemplates is empty again.
func TestAddOnTemplatesListedAgainHoldTheRollout(t *testing.T) {
	s, v1, v2 := onTheWay(t)
	s.list("addondeploymentconfigs", "addontemplates")
	s.turn()
	s.report()
	s.turns(3)
	s.named("lists addontemplates on ClusterManagementAddOn hello")
	if got := s.reported(); !strings.HasSuffix(got, ": stop it; addonflow reconcile source fleet --force") {
		t.Errorf("the commit names no way out: %q", got)
	}
	if ro := s.rollout(); ro.Status.Counts.Updated != 1 || ro.Status.Counts.Waiting != 2 {
		t.Errorf("c1 gets to its end, no cluster follows: %+v", ro.Status.Counts)
	}
	for cluster, want := range map[string]string{"c1": v2, "c2": v1, "c3": v1} {
		if got := s.works()[cluster].Annotations[v1alpha1.RevisionAnnotation]; got != want {
			t.Errorf("%s is at %s, want %s", cluster, got, want)
		}
	}
	s.list("addondeploymentconfigs")
	s.settle()
}

// TestOwnershipConflictIsTheReasonOfEveryCluster: another owner stops every write. The status and
// why name that owner and not a missing slot.
func TestOwnershipConflictIsTheReasonOfEveryCluster(t *testing.T) {
	s, _, _ := onTheWay(t)
	owner := &addonv1alpha1.ClusterManagementAddOn{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "hello"}, owner); err != nil {
		t.Fatal(err)
	}
	owner.Annotations[v1alpha1.SourceAnnotation] = "team/other"
	s.update(owner)
	s.report()
	versions := s.versions()
	s.turns(3)
	s.named("add-on hello belongs to source team/other")
	if ro := s.rollout(); ro.Status.Counts.Updated != 1 {
		t.Errorf("what is in flight is seen to get to its end: %+v", ro.Status.Counts)
	}
	for cluster, version := range s.versions() {
		if version != versions[cluster] {
			t.Errorf("the work of %s was written", cluster)
		}
	}
	owner.Annotations[v1alpha1.SourceAnnotation] = "team/fleet"
	s.update(owner)
	s.settle()
}

// TestWhyNamesTheConflictThatTheOperatorSees: only the operator remembers which writer took over a
// field.
func TestWhyNamesTheConflictThatTheOperatorSees(t *testing.T) {
	s, _, _ := onTheWay(t)
	ro := s.rollout()
	conditions.MarkStalled(ro, v1alpha1.OwnershipConflictReason, "ownership conflict: c2 was written by %q", "evil")
	if err := s.hub.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	plan := s.plan()
	if c3, _ := plan.Why("c3"); c3.Reason != `held: ownership conflict: c2 was written by "evil"` {
		t.Errorf("got %q", c3.Reason)
	}
}
