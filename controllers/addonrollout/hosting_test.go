package addonrollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
)

// answered is a work of the add-on hello to which an agent answered for its generation.
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
			m := &member{name: "c1", hosting: addonstatus.Hosting{Hosted: true, Name: "h", Cluster: availableCluster("h")}}
			m.works = []*workv1.ManifestWork{
				answered("c1", "addon-hello-deploy-0", tc.own), answered("h", render.HostingWorkName("hello", "c1", 0), tc.hosting),
			}
			mv := addonstatus.Move{Hosting: m.hosting, Rendered: rendered}
			mv.Refused, mv.HostingRefused = m.worksRefused("hello")
			status, _ := addonstatus.Next(&addonv1alpha1.ManagedClusterAddOn{}, mv, metav1.Now())
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
