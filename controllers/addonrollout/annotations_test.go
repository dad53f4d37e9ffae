package addonrollout

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// wrote is the managed fields entry of a manager that owns one annotation with the prefix.
func wrote(manager, name string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(
		`{"f:metadata":{"f:annotations":{".":{},"f:` + addOnAnnotationPrefix + name + `":{}}}}`,
	)}
}

func annotated(pairs ...string) map[string]string {
	out := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		out[addOnAnnotationPrefix+pair[0]] = pair[1]
	}
	return out
}

// In contrast, OCM removes every annotation with the prefix that the cluster does not have.
func TestAnnotationsOfTheClusterAreCopiedAndOthersKept(t *testing.T) {
	ours, users := wrote(v1alpha1.FieldManager, "key"), wrote("kubectl", "key")
	cases := map[string]struct {
		reason        string
		cluster, have map[string]string
		managers      []metav1.ManagedFieldsEntry
		want          map[string]string
	}{
		"new on the cluster":      {"copied", annotated("key", "1"), nil, nil, annotated("key", "1")},
		"changed on the cluster":  {"we wrote the old one", annotated("key", "2"), annotated("key", "1"), []metav1.ManagedFieldsEntry{ours}, annotated("key", "2")},
		"removed on the cluster":  {"we wrote it", nil, annotated("key", "1"), []metav1.ManagedFieldsEntry{ours}, map[string]string{}},
		"the user's own":          {"OCM removes it: the cluster does not have it", nil, annotated("key", "1"), []metav1.ManagedFieldsEntry{users}, nil},
		"the user's other value":  {"written on purpose, over the cluster's", annotated("key", "2"), annotated("key", "1"), []metav1.ManagedFieldsEntry{users}, nil},
		"changed by a user since": {"both own it now", annotated("key", "2"), annotated("key", "1"), []metav1.ManagedFieldsEntry{ours, users}, nil},
		"in step":                 {"nothing to write", annotated("key", "1"), annotated("key", "1"), []metav1.ManagedFieldsEntry{ours}, nil},
		"of an unknown writer":    {"fields that cannot be read claim nothing", nil, annotated("key", "1"), []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, FieldsV1: metav1.NewFieldsV1("[]")}}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Annotations: c.have, ManagedFields: c.managers}}
			if diff := cmp.Diff(c.want, annotationsInStep(c.cluster, addOn)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestSwitchOfInstallTypeKeepsAddOns: a change of the install type removes no add-on. The
// annotation with the selection of a cluster costs one write per change and none at rest.
func TestSwitchOfInstallTypeKeepsAddOns(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	install := s.rollout().Spec.Install
	for _, step := range []struct {
		name, mark string
		change     func(*v1alpha1.AddOnRolloutSpec)
	}{
		{"Manual", "Manual", func(spec *v1alpha1.AddOnRolloutSpec) { spec.Install = &v1alpha1.Install{Type: "Manual"} }},
		{"labels that select no cluster", "Manual", func(spec *v1alpha1.AddOnRolloutSpec) {
			spec.ClusterLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"site": "edge"}}
		}},
		{"labels that select every cluster", "ClusterLabelSelector", func(spec *v1alpha1.AddOnRolloutSpec) {
			spec.ClusterLabelSelector = &metav1.LabelSelector{}
		}},
		{"the placement that selects every cluster", "", func(spec *v1alpha1.AddOnRolloutSpec) {
			spec.ClusterLabelSelector, spec.Install = nil, install
		}},
	} {
		ro := s.rollout()
		step.change(&ro.Spec)
		s.update(ro)
		s.turns(2)
		versions := map[string]string{}
		for _, c := range []string{"c1", "c2"} {
			if got := s.addOn(c).Annotations[v1alpha1.SelectedByAnnotation]; got != step.mark {
				t.Errorf("%s: %s is marked %q, want %q", step.name, c, got, step.mark)
			}
			versions[c] = s.addOn(c).ResourceVersion
		}
		for range 3 {
			s.advance(5 * time.Minute)
			s.turn()
		}
		if diff := cmp.Diff([]string{"c1", "c2"}, s.installed()); diff != "" {
			t.Fatalf("%s: clusters with the add-on keep it (-want +got):\n%s", step.name, diff)
		}
		for c, version := range versions {
			if s.addOn(c).ResourceVersion != version {
				t.Errorf("%s: %s was written at rest", step.name, c)
			}
		}
	}
	ro := s.rollout()
	ro.Spec.Install, ro.Spec.ClusterLabelSelector = &v1alpha1.Install{Type: "Manual"}, &metav1.LabelSelector{}
	s.update(ro)
	s.turns(2)
	ro = s.rollout()
	ro.Spec.ClusterLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"site": "edge"}}
	s.update(ro)
	s.turn()
	s.advance(5 * time.Minute)
	s.turns(2)
	if got := s.installed(); len(got) != 1 {
		t.Errorf("by the same type, other labels remove at the budget's pace: the add-on is on %v", got)
	}
}

// TestDeletedByHandUnderManualStaysDeleted: this is how OCM's proposal removes an add-on from some
// clusters. Placements that select the cluster install it again.
func TestDeletedByHandUnderManualStaysDeleted(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	install := s.rollout().Spec.Install
	ro := s.rollout()
	ro.Spec.Install = &v1alpha1.Install{Type: "Manual"}
	s.update(ro)
	s.turns(2)
	s.delete(s.addOn("c1"))
	s.turns(3)
	if diff := cmp.Diff([]string{"c2"}, s.installed()); diff != "" {
		t.Errorf("a user took it away (-want +got):\n%s", diff)
	}
	ro = s.rollout()
	ro.Spec.Install = install
	s.update(ro)
	s.settle()
	if diff := cmp.Diff([]string{"c1", "c2"}, s.installed()); diff != "" {
		t.Errorf("the placement selects both (-want +got):\n%s", diff)
	}
}
