package addonrollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// greetingAt is contentAt with a variable of the configuration team/greeting, its default.
func greetingAt(t *testing.T, tag, greeting string) (render.Content, *addonv1alpha1.AddOnDeploymentConfig) {
	t.Helper()
	adc := &addonv1alpha1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "greeting"},
		Spec: addonv1alpha1.AddOnDeploymentConfigSpec{
			AgentInstallNamespace: "agents", CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "GREETING", Value: greeting}},
		},
	}
	reference := render.ConfigReference{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs", Namespace: "team", Name: "greeting"}
	c := contentAt(tag + "-{{GREETING}}")
	c.Supported = []addonv1alpha1.ConfigGroupResource{{Group: reference.Group, Resource: reference.Resource}}
	c.Defaults = append([]render.ConfigReference{reference}, c.Defaults...)
	c.Configs = []render.Config{{
		ConfigReference: reference, APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "AddOnDeploymentConfig", SpecHash: "hash-" + greeting,
		Body: map[string]any{"spec": map[string]any{"agentInstallNamespace": "agents", "customizedVariables": []any{map[string]any{"name": "GREETING", "value": greeting}}}},
	}}
	return c, adc
}

// names makes the ManagedClusterAddOn of a cluster name team/greeting itself.
func (s *scene) names(cluster string) {
	s.t.Helper()
	addOn := s.addOn(cluster)
	addOn.Spec.Configs = []addonv1alpha1.AddOnConfig{{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"},
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: "team", Name: "greeting"},
	}}
	s.update(addOn)
}

// canary makes the rollout begin with these clusters.
func (s *scene) canary(clusters ...string) {
	s.t.Helper()
	s.place("canary", clusters...)
	s.oneByOne()
	ro := s.rollout()
	stage := ro.Spec.Stages[0]
	stage.Name, stage.Placement.Name = "canary", "canary"
	ro.Spec.Stages = append([]v1alpha1.Stage{stage}, ro.Spec.Stages...)
	ro.Spec.Stages[1].MaxConcurrency = new(intstr.FromInt32(3))
	s.update(ro)
}

// TestDeletedWorkOfAWaitingClusterComesBackInItsTurn: a configuration that a cluster names on the hub
// changes before the cluster's turn. If the work of the cluster is deleted meanwhile, the cluster
// does not get the new configuration ahead of the canary.
func TestDeletedWorkOfAWaitingClusterComesBackInItsTurn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.canary("c1")
	first, adc := greetingAt(t, "v1", "g1")
	s.create(adc)
	s.targetOf(first, "v1")
	s.settle()
	s.names("c3")
	s.settle()
	second, changed := greetingAt(t, "v1", "g2")
	adc.Spec = changed.Spec
	s.update(adc)
	v2 := s.targetOf(second, "v2")
	s.turns(2) // c1 is in flight
	s.delete(s.works()["c3"])
	s.delete(s.works()["c2"])
	s.turns(4)
	if s.works()["c2"] == nil {
		t.Error("c2, of which it is known what it ran, starts with that again")
	}
	if w := s.works()["c3"]; w != nil {
		t.Errorf("c3 was given what it was not admitted to:\n%s", w.Spec.Workload.Manifests[0].Raw)
	}
	plan := s.plan()
	if c3, _ := plan.Why("c3"); c3.State != rollout.Waiting || c3.Reason != "waits for canary to complete" {
		t.Errorf("c3 waits for its turn: got %s: %s", c3.State, c3.Reason)
	}
	s.settle()
	for cluster, w := range s.works() {
		if w.Annotations[v1alpha1.RevisionAnnotation] != v2 {
			t.Errorf("%s is at %s", cluster, w.Annotations[v1alpha1.RevisionAnnotation])
		}
	}
	before := s.works()["c3"]
	if before == nil {
		t.Fatal("c3 has its work again in its turn")
	}
	s.delete(before)
	s.turns(2)
	if w := s.works()["c3"]; w == nil || !equality.Semantic.DeepEqual(w.Spec, before.Spec) {
		t.Errorf("at rest what was deleted is restored: %v", w)
	}
}
