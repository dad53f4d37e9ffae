package addonrollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

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
	for name, tc := range map[string]struct{ own, hosting metav1.ConditionStatus }{
		"BothApply": {yes, yes}, "HostingRefuses": {yes, no}, "OwnRefuses": {no, yes}, "BothRefuse": {no, no},
	} {
		t.Run(name, func(t *testing.T) {
			m := &member{name: "c1", hosting: hosting{hosted: true, name: "h", cluster: availableCluster("h")}}
			m.works = []*workv1.ManifestWork{
				answered("c1", "addon-hello-deploy-0", tc.own), answered("h", render.HostingWorkName("hello", "c1", 0), tc.hosting),
			}
			own, hosting := m.worksRefused("hello")
			if got := manifestsCondition(render.Rendered{}, own).Status; got != tc.own {
				t.Errorf("ManifestApplied is %s, the cluster's own agent says %s", got, tc.own)
			}
			for _, c := range m.hosting.conditions(manifestsCondition(render.Rendered{}, hosting)) {
				if c.Type == addonv1alpha1.ManagedClusterAddOnHostingManifestApplied && c.Status != tc.hosting {
					t.Errorf("%s is %s, the hosting cluster's agent says %s", c.Type, c.Status, tc.hosting)
				}
			}
		})
	}
	if c := (hosting{}).conditions(metav1.Condition{}); c != nil {
		t.Errorf("the default mode has neither condition: %v", c)
	}
}
