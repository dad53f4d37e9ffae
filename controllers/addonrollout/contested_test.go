package addonrollout

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// list makes the ClusterManagementAddOn list configuration kinds, fenced off.
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

// onTheWay is a scene with c1 in flight to v2, and the others waiting for it at v1.
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

// named checks that the status, the commit and why all name the one conflict.
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
	if got := s.told(); !strings.HasPrefix(got, "failure: ownership conflict: ") {
		s.t.Errorf("so does the commit: got %q", got)
	}
}

// TestAddOnTemplatesListedAgainHoldTheRollout: while OCM's template manager may be running
// nobody is admitted; who is in flight goes on, and the rollout with it when it is over.
func TestAddOnTemplatesListedAgainHoldTheRollout(t *testing.T) {
	s, v1, v2 := onTheWay(t)
	s.list("addondeploymentconfigs", "addontemplates")
	s.turn()
	s.report()
	s.turns(3)
	s.named("lists addontemplates on ClusterManagementAddOn hello")
	if ro := s.rollout(); ro.Status.Counts.Updated != 1 || ro.Status.Counts.Waiting != 2 {
		t.Errorf("c1 gets to its end, nobody follows: %+v", ro.Status.Counts)
	}
	for cluster, want := range map[string]string{"c1": v2, "c2": v1, "c3": v1} {
		if got := s.works()[cluster].Annotations[v1alpha1.RevisionAnnotation]; got != want {
			t.Errorf("%s is at %s, want %s", cluster, got, want)
		}
	}
	s.list("addondeploymentconfigs")
	s.settle()
}

// TestWhoListsAddOnTemplates: what we list ourselves, in replace mode, is no conflict, nor is
// what stands on an add-on that we did not fence off.
func TestWhoListsAddOnTemplates(t *testing.T) {
	entry := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:supportedConfigs":{"k:{\"resource\":\"addontemplates\"}":{}}}}`)}
	}
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		change  func(*observation)
		names   string
	}{
		"Foreign":   {reason: "it is named", entries: []metav1.ManagedFieldsEntry{entry("evil", "")}, names: `"evil"`},
		"Nobody":    {reason: "a writer that left no trace is one all the same", names: `"unknown"`},
		"Status":    {reason: "who writes a status lists nothing", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, "status"), entry("evil", "")}, names: `"evil"`},
		"Replace":   {reason: "our own word, whoever shares it", entries: []metav1.ManagedFieldsEntry{entry("evil", ""), entry(v1alpha1.FieldManager, "")}},
		"Unfenced":  {reason: "it is about to be taken over", change: func(o *observation) { o.owner.Annotations = nil }},
		"NotListed": {reason: "nothing is listed", change: func(o *observation) { o.owner.Spec.SupportedConfigs = nil }},
		"Leaving":   {reason: "an add-on that is to go gets nothing new", change: func(o *observation) { o.rollout.Spec.Removal = &v1alpha1.Removal{} }},
		"Gone":      {reason: "there is none", change: func(o *observation) { o.owner = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &observation{rollout: &v1alpha1.AddOnRollout{}, owner: &addonv1alpha1.ClusterManagementAddOn{}}
			o.rollout.Spec.Target = &v1alpha1.Target{Source: "fleet"}
			o.owner.Annotations, o.owner.ManagedFields = map[string]string{v1alpha1.LifecycleAnnotation: v1alpha1.LifecycleValue}, tc.entries
			o.owner.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"}}}
			if tc.change != nil {
				tc.change(o)
			}
			got := said(o.fenceDown())
			if (got == "") != (tc.names == "") || !strings.Contains(got, tc.names) {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

// TestOwnershipConflictIsWhatEverybodyWaitsFor: another owner stops every write, and is what
// the status and why name, not a slot that nobody gets.
func TestOwnershipConflictIsWhatEverybodyWaitsFor(t *testing.T) {
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

// TestWhyNamesTheConflictThatTheOperatorSees: who took a field of ours only the operator
// remembers.
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
