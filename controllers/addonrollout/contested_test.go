package addonrollout

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
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
	s.named("lists addontemplates of add-on hello")
	if got := s.reported(); !strings.HasSuffix(got, ": stop that writer; addonflow reconcile source fleet -n team --force") {
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

// TestWriterThatWasFencedOffIsNoFailure: what another writer wrote while the fence was down holds the rollout
// until that writer is at rest. It is no failure, and the rollout continues at that moment.
func TestWriterThatWasFencedOffIsNoFailure(t *testing.T) {
	var taken *metav1.Time
	s := newScene(t, interceptor.Funcs{
		List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := hub.List(ctx, list, opts...)
			if addOns, is := list.(*addonv1alpha1.ManagedClusterAddOnList); is && taken != nil {
				for i := range addOns.Items { // the hub in memory keeps none
					ours := createdBy(v1alpha1.FieldManager, `{"f:status":{"f:conditions":{"k:{\"type\":\"Progressing\"}":{".":{},"f:type":{}}}}}`)
					other := createdBy("ocm", `{"f:status":{"f:conditions":{"k:{\"type\":\"Progressing\"}":{"f:reason":{},"f:status":{}}}}}`)
					ours.Subresource, other.Subresource, other.Time = "status", "status", taken
					addOns.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{ours, other}
				}
			}
			return err
		},
	}, "c1", "c2")
	s.reporting()
	s.list("addondeploymentconfigs")
	s.target("v1")
	s.settle()
	s.target("v2")
	owner := &addonv1alpha1.ClusterManagementAddOn{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "hello"}, owner); err != nil {
		t.Fatal(err)
	}
	now := s.clock.Now()
	owner.Annotations[v1alpha1.FencedAtAnnotation] = now.UTC().Format(time.RFC3339)
	s.update(owner)
	taken = &metav1.Time{Time: now.Add(-time.Second)}
	addOn := s.addOn("c2")
	apimeta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Upgrading", Message: "by ocm"})
	if err := s.hub.Status().Update(t.Context(), addOn); err != nil {
		t.Fatal(err)
	}
	s.turn()
	ro := s.rollout()
	if got := s.reported(); !strings.HasPrefix(got, "pending: ownership conflict: settling until ") {
		t.Errorf("the commit says %q", got)
	}
	if got := show.OutcomeOf(ro); got != show.Running {
		t.Errorf("it ends by itself, and is %s: %s", got, ro.Status.Message)
	}
	turn := reserved{rollout: ro, Plan: &plan.Plan{
		Observed: &plan.Observation{Look: plan.Look{Wall: now}}, Claims: plan.Claims{AcceptsAt: now.Add(20 * time.Second)}, Err: plan.ErrOwnership,
	}}
	if after := s.reconciler.again(turn, applied{}); after != 20*time.Second {
		t.Errorf("it is looked at again after %s", after)
	}
	s.advance(30 * time.Second)
	s.settle()
}

// TestWhyNamesTheConflictThatTheOperatorSees: only the operator remembers which writer took over a
// field. The conflict with a writer that was fenced off is not Stalled, because it ends by itself.
func TestWhyNamesTheConflictThatTheOperatorSees(t *testing.T) {
	s, _, _ := onTheWay(t)
	for conflict, mark := range map[string]func(to conditions.Setter, reason, format string, args ...any){
		`ownership conflict: c2 was written by "evil"`:                            conditions.MarkStalled,
		`ownership conflict: settling until 03:04:35 UTC: "ocm" wrote the add-on`: conditions.MarkReconciling,
	} {
		ro := s.rollout()
		mark(ro, v1alpha1.OwnershipConflictReason, "%s", conflict)
		if err := s.hub.Status().Update(t.Context(), ro); err != nil {
			t.Fatal(err)
		}
		plan := s.plan()
		if c3, _ := plan.Why("c3"); c3.Reason != "held: "+conflict {
			t.Errorf("got %q, want %q", c3.Reason, conflict)
		}
	}
}
