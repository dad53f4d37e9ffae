package addonrollout

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// placedAt is content whose placement "all" assigns a template of its own, at the tag; the default
// template is at the tag "default".
func placedAt(tag string) render.Content {
	content := contentAt("default")
	own := contentAt(tag).Templates[0]
	own.Name = "hello-placed"
	content.Templates = append(content.Templates, own)
	reference := content.Defaults[0]
	reference.Name = own.Name
	content.Placements = []render.PlacementConfigs{{
		PlacementReference: v1alpha1.PlacementReference{Namespace: "team", Name: "all"},
		Configs:            []render.ConfigReference{reference},
	}}
	return content
}

// selects replaces the decision of the placement.
func (s *scene) selects(clusters ...string) {
	s.t.Helper()
	var decision clusterv1beta1.PlacementDecision
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "all-1"}, &decision); err != nil {
		s.t.Fatal(err)
	}
	decision.Status.Decisions = nil
	for _, name := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
	}
	s.update(&decision)
	var placement clusterv1beta1.Placement
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "all"}, &placement); err != nil {
		s.t.Fatal(err)
	}
	placement.Status.NumberOfSelectedClusters = int32(len(clusters)) //nolint:gosec // a handful
	s.update(&placement)
}

// TestDecisionWithoutAManagedClusterIsWrittenNowhere: the name in a decision is the namespace of what is written for the
// cluster. It counts only if a ManagedCluster has it, so that it leads to no namespace of others.
func TestDecisionWithoutAManagedClusterIsWrittenNowhere(t *testing.T) {
	written := map[string]bool{}
	note := func(obj client.Object) { written[obj.GetNamespace()] = true }
	s := newScene(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			note(obj)
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			note(obj)
			return c.Patch(ctx, obj, patch, opts...)
		},
	}, "c1")
	s.target("v1")
	s.selects("c1", "../c2", "..", "team/c2", "c1/../kube-system", "kube-system", "addonflow-system", "")
	clear(written)
	s.settle()
	if len(s.works()) != 1 || !written["c1"] {
		t.Errorf("works on %d clusters, want c1", len(s.works()))
	}
	for namespace := range written {
		if namespace != "c1" && namespace != "team" && namespace != "" { // a ClusterManagementAddOn has no namespace
			t.Errorf("namespace %q is written", namespace)
		}
	}
}

// TestLeavingClusterKeepsWhatItHad: until it is removed, a cluster that left its placement is
// repaired to the configurations of that placement, never to the defaults. A cluster that left
// in its soak does not count as a cluster with new content.
func TestLeavingClusterKeepsWhatItHad(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.targetOf(placedAt("v1"), "v1")
	s.settle()
	work := func() string { return string(s.works()["c2"].Spec.Workload.Manifests[0].Raw) }
	if !strings.Contains(work(), "hello:v1") {
		t.Fatalf("c2 has what its placement gives: %s", work())
	}
	before := work()
	s.selects("c1")
	s.turns(2)
	if p, _ := s.plan().Why("c2"); p.State != rollout.Removing {
		t.Fatalf("c2 is leaving, got %+v", p)
	}
	if work() != before {
		t.Errorf("c2 was rendered anew: %s", work())
	}
	w := s.works()["c2"]
	w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(before, "hello:v1", "hello:hacked", 1))
	s.update(w)
	s.turns(2)
	if work() != before {
		t.Errorf("c2 was not repaired to what it had: %s", work())
	}
	s.advance(5 * time.Minute)
	s.turns(2)
	var addOns metav1.PartialObjectMetadataList
	addOns.SetGroupVersionKind(ownerKind().GroupVersion().WithKind("ManagedClusterAddOnList"))
	if err := s.hub.List(t.Context(), &addOns); err != nil || len(addOns.Items) != 1 || addOns.Items[0].Namespace != "c1" {
		t.Errorf("after the grace period c1 alone has it: %v, %v", addOns.Items, err)
	}
	s.turns(2)
	if !slices.ContainsFunc(s.rollout().Status.Journal, func(e v1alpha1.JournalEntry) bool {
		return e.Decision == "Removed" && e.Reason == "c2: removed: it left the install set"
	}) {
		t.Errorf("the journal does not say why c2 was removed: %v", s.rollout().Status.Journal)
	}
}

// TestLabelsMakeMembers: a ManagedCluster that the label selector matches is a member without a
// placement. An invalid selector selects no cluster.
func TestLabelsMakeMembers(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	for _, name := range []string{"c1", "c2"} {
		var cluster clusterv1.ManagedCluster
		if err := s.hub.Get(t.Context(), client.ObjectKey{Name: name}, &cluster); err != nil {
			t.Fatal(err)
		}
		cluster.Labels = map[string]string{"site": map[string]string{"c1": "edge", "c2": "core"}[name]}
		s.update(&cluster)
	}
	ro := s.rollout()
	ro.Spec.Install = &v1alpha1.Install{Type: "Manual"}
	ro.Spec.ClusterLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"site": "edge"}}
	s.update(ro)
	s.target("v1")
	s.settle()
	if works := s.works(); works["c1"] == nil || works["c2"] != nil {
		t.Errorf("c1 has the labels, c2 has not: %v", works)
	}
	ro = s.rollout()
	ro.Spec.ClusterLabelSelector.MatchLabels["site"] = "no label"
	if s := labelSelector(ro); s.Matches(labels.Set{"site": "edge"}) || s.Matches(labels.Set{}) {
		t.Errorf("a selector that cannot be read selects no cluster, got %v", s)
	}
}
