package addonrollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// large is the add-on at a tag in two works, with a CustomResourceDefinition of a version; "": without.
func (s *scene) large(tag, version string) render.Content {
	s.t.Helper()
	content := s.defining(tag, version)
	path := []string{"agentSpec", "workload", "manifests"}
	manifests, _, err := unstructured.NestedSlice(content.Templates[0].Spec, path...)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		manifests = append(manifests, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "agents"},
			"data": map[string]any{"x": strings.Repeat(tag[len(tag)-1:], 300*1024)},
		})
	}
	if err := unstructured.SetNestedSlice(content.Templates[0].Spec, manifests, path...); err != nil {
		s.t.Fatal(err)
	}
	return content
}

// parts are all works.
func (s *scene) parts() []workv1.ManifestWork {
	s.t.Helper()
	var list workv1.ManifestWorkList
	if err := s.hub.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// defined are the clusters whose works have a CustomResourceDefinition.
func (s *scene) defined() []string {
	s.t.Helper()
	var on []string
	for _, w := range s.parts() {
		for _, m := range w.Spec.Workload.Manifests {
			if strings.Contains(string(m.Raw), "CustomResourceDefinition") && !slices.Contains(on, w.Namespace) {
				on = append(on, w.Namespace)
			}
		}
	}
	return on
}

// unmark takes an annotation off the works of a cluster.
func (s *scene) unmark(cluster string, marks ...string) {
	s.t.Helper()
	w := s.works()[cluster]
	for _, mark := range marks {
		delete(w.Annotations, mark)
	}
	s.update(w)
}

// A rollout fails because the hub refuses one of the works of its first cluster; the other one brought a
// CustomResourceDefinition. No rollback takes it off.
func TestRollback_KeepsTheDefinitionsOfAHalfWrittenCluster(t *testing.T) {
	target := ""
	s := newScene(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if w, ok := o.(*workv1.ManifestWork); ok && w.Annotations[v1alpha1.RevisionAnnotation] == target && strings.HasSuffix(w.Name, "-1") {
			return denied()
		}
		return c.Update(ctx, o, opts...)
	}}, "c1", "c2")
	s.within(0, "1m")
	s.declare(rollsBack)
	s.targetOf(s.large("v1", ""), "v1")
	for range 10 {
		s.turn()
		for _, w := range s.parts() {
			w.Status = runningStatus(&w)
			if err := s.hub.Status().Update(t.Context(), &w); err != nil {
				t.Fatal(err)
			}
		}
	}
	if phase := s.rollout().Status.Phase; phase != v1alpha1.PhaseSucceeded || len(s.parts()) != 4 {
		t.Fatalf("v1 is %s in %d works", phase, len(s.parts()))
	}
	content := s.large("v2", "v1")
	var err error
	if target, err = content.Digest(); err != nil {
		t.Fatal(err)
	}
	v2 := s.targetOf(content, "v2")
	s.turns(3)
	if got := s.defined(); !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("%v have the definition, want c1", got)
	}
	s.ticks(40, 20*time.Second)
	ro := s.rollout()
	if _, quarantined := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); quarantined || len(s.defined()) != 1 {
		t.Errorf("quarantined %t, %v have the definition", quarantined, s.defined())
	}
	if want := "not rolled back: it would remove CustomResourceDefinition things.example.com of c1"; !strings.Contains(ro.Status.Message, want) {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
}

// Whatever AddonFlow's marks on the works say, no rollback removes a CustomResourceDefinition from them, and no
// rollback changes one without permission.
func TestRollback_JudgesADefinitionByTheWorks(t *testing.T) {
	revision, digest := v1alpha1.RevisionAnnotation, v1alpha1.DigestAnnotation
	for lost, marks := range map[string][]string{"Revision": {revision}, "Digest": {digest}, "Both": {revision, digest}} {
		for kind, before := range map[string]string{"Removed": "", "Changed": "v1"} {
			t.Run(lost+kind, func(t *testing.T) {
				s := newScene(t, interceptor.Funcs{}, "c1")
				v1 := s.targetOf(s.defining("v1", before), "v1")
				s.settle()
				s.advance(time.Minute)
				v2 := s.targetOf(s.defining("v2", "v2"), "v2")
				s.settle()
				s.unmark("c1", marks...)
				verb := map[string]string{"Removed": "remove", "Changed": "change"}[kind]
				key := s.order(v1alpha1.OrderRollback, v2, nil)
				s.ticks(4, time.Second)
				if got := s.answered(key); !strings.HasPrefix(got, "Refused: it would "+verb+" CustomResourceDefinition things.example.com of c1") {
					t.Errorf("the rollback order is %s", got)
				}
				s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
					spec.Blocked = []v1alpha1.BlockedContent{{Digest: v2, Reason: "leaks memory"}}
				})
				s.ticks(12, time.Second, "c1")
				if got := s.holding(v1); len(got) > 0 || len(s.defined()) != 1 {
					t.Errorf("%v went back, %v have a definition: %s", got, s.defined(), s.rollout().Status.Message)
				}
			})
		}
	}
}

// A definition that is equal in the works and in the stable content does not prevent the rollback, whatever the marks
// of the works.
func TestRollback_PassesADefinitionThatStays(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	v1 := s.targetOf(s.defining("v1", "v1"), "v1")
	s.settle()
	s.advance(time.Minute)
	v2 := s.targetOf(s.defining("v2", "v1"), "v2")
	s.settle()
	s.unmark("c1", v1alpha1.RevisionAnnotation)
	s.order(v1alpha1.OrderRollback, v2, nil)
	s.ticks(14, time.Second, "c1", "c2")
	s.runs(v1, "c1", "c2")
}

// A cluster whose revision is missing does not prevent the rollback of the others. The CustomResourceDefinitions that
// it would lose are read from its works.
func TestRollback_IsNotKeptByAMissingRevisionOfOneCluster(t *testing.T) {
	for kind, definition := range map[string]string{"Follows": "", "Keeps": "v0"} {
		t.Run(kind, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.within(0, "1m")
			s.declare(rollsBack)
			v0 := s.targetOf(s.defining("v0", definition), "v0")
			s.settle()
			s.hold("c3", "true")
			s.advance(time.Minute)
			v1 := s.commit("v1")
			s.settle()
			s.runs(v0, "c3")
			s.delete(s.revision(v0))
			v2 := s.commit("v2")
			s.turns(3)
			s.advance(time.Minute)
			s.hold("c3", "")
			s.turn()
			if _, quarantined := v1alpha1.ReadQuarantine(s.revision(v2).Annotations); !quarantined {
				t.Fatalf("v2 is not taken back: %s", s.rollout().Status.Message)
			}
			s.ticks(14, time.Second, "c1", "c2", "c3")
			s.noneHolds(v2)
			s.runs(v1, "c1", "c2")
			ro := s.rollout()
			if kind == "Follows" {
				s.runs(v1, "c3")
				return
			}
			s.runs(v0, "c3")
			if want := ", 1 held by a CRD (c3)"; ro.Status.Phase != v1alpha1.PhaseRolledBack || !strings.Contains(ro.Status.Message, want) {
				t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
			}
		})
	}
}

// A work that lost OCM's label is not watched. Once it is found, it keeps its definition.
func TestRollback_TakesNoDefinitionOffAWorkThatWasHidden(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	v1 := s.targetOf(s.defining("v1", ""), "v1")
	s.settle()
	s.advance(time.Minute)
	v2 := s.targetOf(s.defining("v2", "v1"), "v2")
	s.settle()
	s.restart()
	for _, name := range []string{"c1", "c2"} {
		w := s.works()[name]
		delete(w.Labels, addOnNameLabel)
		s.update(w)
	}
	s.order(v1alpha1.OrderRollback, v2, nil)
	s.ticks(20, time.Minute, "c1", "c2")
	if got := s.defined(); len(got) != 2 || len(s.holding(v1)) > 0 {
		t.Errorf("%v have the definition, %v run v1; %s", got, s.holding(v1), s.rollout().Status.Message)
	}
}

// A CustomResourceDefinition that the agent leaves on the cluster (helm.sh/resource-policy: keep) does not prevent a
// rollback once the agent has applied the works with that setting.
func TestRollback_PassesADefinitionThatTheAgentKeeps(t *testing.T) {
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("Applied=%t", applied), func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1")
			v1 := s.targetOf(contentAt("v1"), "v1")
			s.settle()
			s.advance(time.Minute)
			content := s.defining("v2", "v1")
			manifests, _, err := unstructured.NestedSlice(content.Templates[0].Spec, "agentSpec", "workload", "manifests")
			if err != nil {
				t.Fatal(err)
			}
			definition, _ := manifests[1].(map[string]any)
			if err := unstructured.SetNestedStringMap(definition, map[string]string{addonv1alpha1.DeletionOrphanAnnotationKey: ""}, "metadata", "annotations"); err != nil {
				t.Fatal(err)
			}
			if err := unstructured.SetNestedSlice(content.Templates[0].Spec, manifests, "agentSpec", "workload", "manifests"); err != nil {
				t.Fatal(err)
			}
			v2 := s.targetOf(content, "v2")
			s.settle()
			if !applied {
				s.ticks(1, 0)
			}
			key := s.order(v1alpha1.OrderRollback, v2, nil)
			s.turns(4)
			if got := s.answered(key); strings.HasPrefix(got, "CarriedOut") != applied {
				t.Errorf("the rollback order is %s", got)
			}
			if got := s.holding(v1); len(got) == 1 != applied {
				t.Errorf("%v run v1", got)
			}
		})
	}
}

// What a definition is on a cluster may depend on a configuration that the ManagedClusterAddOn names.
func TestRollback_JudgesADefinitionWithTheClustersOwnConfiguration(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	reference := addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}
	flavoured := func(tag string) render.Content {
		content := s.defining(tag, "v1")
		content.Supported = []addonv1alpha1.ConfigGroupResource{reference}
		manifests, _, err := unstructured.NestedSlice(content.Templates[0].Spec, "agentSpec", "workload", "manifests")
		if err != nil {
			t.Fatal(err)
		}
		definition, _ := manifests[1].(map[string]any)
		if err := unstructured.SetNestedField(definition, "{{FLAVOUR}}", "metadata", "labels", "flavour"); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedSlice(content.Templates[0].Spec, manifests, "agentSpec", "workload", "manifests"); err != nil {
			t.Fatal(err)
		}
		used := unusedConfig("config", "one", false)
		content.Configs, content.Defaults = used.Configs, append(used.Defaults[:1:1], content.Defaults...)
		content.Configs[0].Body["spec"] = map[string]any{
			"agentInstallNamespace": "agents", "customizedVariables": []any{map[string]any{"name": "FLAVOUR", "value": "plain"}},
		}
		return content
	}
	s.create(&addonv1alpha1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "own"},
		Spec: addonv1alpha1.AddOnDeploymentConfigSpec{
			AgentInstallNamespace: "agents", CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "FLAVOUR", Value: "own"}},
		},
	})
	v1 := s.targetOf(flavoured("v1"), "v1")
	s.settle()
	addOn := s.addOn("c1")
	addOn.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: reference, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "team", Name: "own"}}}
	s.update(addOn)
	s.ticks(8, time.Minute, "c1", "c2")
	if !slices.ContainsFunc(s.works()["c1"].Spec.Workload.Manifests, func(m workv1.Manifest) bool {
		return strings.Contains(string(m.Raw), `"flavour":"own"`)
	}) {
		t.Fatal("c1 does not use its own configuration")
	}
	v2 := s.targetOf(flavoured("v2"), "v2")
	s.settle()
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Digest: v2, Reason: "leaks memory"}}
	})
	s.ticks(14, time.Second, "c1", "c2")
	s.runs(v1, "c1", "c2")
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseRolledBack {
		t.Errorf("%s: %s", ro.Status.Phase, ro.Status.Message)
	}
}
