package fleet_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/fleet"
)

// decided lists a placement's decisions as "name group [clusters]", sorted.
func (s *scene) decided(placement string) []string {
	s.Helper()
	list := &clusterv1beta1.PlacementDecisionList{}
	err := s.hub.List(s.Context(), list, client.InNamespace("default"), client.MatchingLabels{clusterv1beta1.PlacementLabel: placement})
	if err != nil {
		s.Fatal(err)
	}
	var lines []string
	for _, d := range list.Items {
		var clusters []string
		for _, c := range d.Status.Decisions {
			clusters = append(clusters, c.ClusterName)
		}
		lines = append(lines, fmt.Sprintf("%s %s/%s %v", d.Name,
			d.Labels[clusterv1beta1.DecisionGroupIndexLabel], d.Labels[clusterv1beta1.DecisionGroupNameLabel], clusters))
	}
	slices.Sort(lines)
	return lines
}

func (s *scene) wantDecided(placement string, want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, s.decided(placement)); diff != "" {
		s.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlacementLife(t *testing.T) {
	s := newScene(t, fleet.Options{})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.fleet.Place(ctx, fleet.Placement{Name: "life", Clusters: []string{"b", "a"}, Groups: []fleet.Group{{Name: "canary", Clusters: []string{"a"}}}}))
	s.wantDecided("life", "life-decision-1 0/canary [a]", "life-decision-2 1/ [b]")

	must(s.fleet.Join(ctx, "", "life", "c"))
	s.wantDecided("life", "life-decision-1 0/canary [a]", "life-decision-2 1/ [b c]")

	must(s.fleet.Leave(ctx, "default", "life", "a"))
	s.wantDecided("life", "life-decision-1 0/ [b c]")
	placement := &clusterv1beta1.Placement{}
	must(s.hub.Get(ctx, client.ObjectKey{Namespace: "default", Name: "life"}, placement))
	if placement.Status.NumberOfSelectedClusters != 2 || !meta.IsStatusConditionTrue(placement.Status.Conditions, "PlacementSatisfied") {
		t.Errorf("%+v", placement.Status)
	}

	must(s.fleet.DeletePlacement(ctx, "default", "life"))
	s.wantDecided("life")
	if err := s.hub.Get(ctx, client.ObjectKeyFromObject(placement), placement); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
	must(s.fleet.RestorePlacement(ctx, "default", "life"))
	s.wantDecided("life", "life-decision-1 0/ [b c]")

	must(s.fleet.Leave(ctx, "default", "life", "b", "c"))
	s.wantDecided("life", "life-decision-1 0/ []")
	if err := s.fleet.Join(ctx, "default", "unheard-of", "a"); !errors.Is(err, fleet.ErrUnknownPlacement) {
		t.Errorf("Join: %v", err)
	}
}

func TestSelectorsFollowLabels(t *testing.T) {
	s := newScene(t, fleet.Options{})
	ctx := t.Context()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "canary"}}
	if err := s.fleet.Place(ctx, fleet.Placement{Name: "labelled", Selector: selector}); err != nil {
		t.Fatal(err)
	}
	s.wantDecided("labelled", "labelled-decision-1 0/ []")
	relabel := func(value string) error {
		return errors.Join(s.fleet.Relabel(ctx, s.cluster, map[string]string{"tier": value}), s.fleet.Refresh(ctx))
	}
	if err := relabel("canary"); err != nil {
		t.Fatal(err)
	}
	s.wantDecided("labelled", "labelled-decision-1 0/ ["+s.cluster+"]")
	if err := relabel(""); err != nil {
		t.Fatal(err)
	}
	s.wantDecided("labelled", "labelled-decision-1 0/ []")
}

func TestRemovedClustersLeavePlacements(t *testing.T) {
	s := newScene(t, fleet.Options{})
	ctx := t.Context()
	everything := &metav1.LabelSelector{MatchLabels: map[string]string{"only": s.cluster}}
	err := errors.Join(
		s.fleet.Relabel(ctx, s.cluster, everything.MatchLabels),
		s.fleet.Place(ctx, fleet.Placement{Name: "by-name", Clusters: []string{s.cluster, "other"}}),
		s.fleet.Place(ctx, fleet.Placement{Name: "by-label", Selector: everything}),
	)
	if err != nil {
		t.Fatal(err)
	}
	s.wantDecided("by-label", "by-label-decision-1 0/ ["+s.cluster+"]")
	if err := s.fleet.RemoveCluster(ctx, s.cluster); err != nil {
		t.Fatal(err)
	}
	s.wantDecided("by-name", "by-name-decision-1 0/ [other]")
	s.wantDecided("by-label", "by-label-decision-1 0/ []")
}
