package addonrollout

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
)

var deletedAt = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func availableCluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}},
	}
}

// answered is a work of the add-on hello with a status of its current generation.
func answered(namespace, name string, applied metav1.ConditionStatus) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Generation: 2,
		Labels: map[string]string{addonv1alpha1.AddonLabelKey: "hello", addonv1alpha1.AddonNamespaceLabelKey: "c1"},
	}}
	w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: applied, ObservedGeneration: 2}}
	return w
}

// TestHostingManifestApplied: each of the two conditions is about the works of its own
// cluster.
func TestHostingManifestApplied(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	renderer, err := render.NewRenderer(hostedAt(t, "v1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := renderer.Render(render.Cluster{Name: "c1", Hosting: "h"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ own, hosting metav1.ConditionStatus }{
		"BothApply": {yes, yes}, "HostingRefuses": {yes, no}, "OwnRefuses": {no, yes}, "BothRefuse": {no, no},
	} {
		t.Run(name, func(t *testing.T) {
			m := &plan.Member{Name: "c1", Hosting: addonstatus.Hosting{Hosted: true, Name: "h", Cluster: availableCluster("h")}}
			m.Health.Digest = rendered.Digest
			m.Works = []*workv1.ManifestWork{
				answered("c1", "addon-hello-deploy-0", tc.own), answered("h", render.HostingWorkName("hello", "c1", 0), tc.hosting),
			}
			p := plan.Plan{Observed: &plan.Observation{Rollout: &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}}}
			p.Observed.Rollout.Spec.Target = &v1alpha1.Target{}
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			mv := p.Move(&plan.Cluster{Judged: plan.Judged{Member: m}}, addOn, renderer, rendered)
			status, _ := addonstatus.Next(addOn, mv, metav1.Now())
			for kind, want := range map[string]metav1.ConditionStatus{
				addonv1alpha1.ManagedClusterAddOnManifestApplied: tc.own, addonv1alpha1.ManagedClusterAddOnHostingManifestApplied: tc.hosting,
			} {
				if c := meta.FindStatusCondition(status.Conditions, kind); c == nil || c.Status != want {
					t.Errorf("%s is %+v, the agent says %s", kind, c, want)
				}
			}
		})
	}
	status, _ := addonstatus.Next(&addonv1alpha1.ManagedClusterAddOn{}, addonstatus.Move{}, metav1.Now())
	if c := meta.FindStatusCondition(status.Conditions, addonv1alpha1.ManagedClusterAddOnHostingManifestApplied); c != nil {
		t.Errorf("the default mode has no such condition: %v", c)
	}
}

func TestHostingClusterValidity(t *testing.T) {
	h := availableCluster("h")
	annotated := func(value string) *plan.Member {
		return &plan.Member{Name: "c1", AddOn: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{addonv1alpha1.HostingClusterNameAnnotationKey: value},
		}}}
	}
	clusters := map[string]*clusterv1.ManagedCluster{"h": h}
	cases := map[string]struct {
		reason, problem, condition string
		member                     *plan.Member
	}{
		"default":  {"", "", "", &plan.Member{Name: "c1", AddOn: &addonv1alpha1.ManagedClusterAddOn{}}},
		"valid":    {"", "", "True HostingClusterValid: hosting cluster h is a managed cluster of the hub", annotated("h")},
		"typo":     {"", "hosting cluster hh is not a managed cluster of the hub", "False HostingClusterInvalid: hosting cluster hh is not a managed cluster of the hub", annotated("hh")},
		"empty":    {"is a name, too", "hosting cluster  is not a managed cluster of the hub", "False HostingClusterInvalid: hosting cluster  is not a managed cluster of the hub", annotated("")},
		"by label": {"the cluster's annotation is copied at install", "", "True HostingClusterValid: hosting cluster h is a managed cluster of the hub", &plan.Member{Name: "c1", Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{addonv1alpha1.HostingClusterNameAnnotationKey: "h"}}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			where := hostingOf(c.member, clusters)
			if got := where.Problem(); got != c.problem {
				t.Errorf("%s: problem %q", c.reason, got)
			}
			said := ""
			if condition := where.Condition(); condition != nil {
				said = string(condition.Status) + " " + condition.Reason + ": " + condition.Message
			}
			if said != c.condition {
				t.Errorf("%s: %q", c.reason, said)
			}
		})
	}
	h.DeletionTimestamp = &deletedAt
	if got := hostingOf(annotated("h"), clusters).Problem(); got != "hosting cluster h is being deleted" {
		t.Errorf("a hosting cluster that leaves: %q", got)
	}
}
