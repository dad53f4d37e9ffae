package addonrollout

import (
	"maps"
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// zonedAt is contentAt with a variable that only clusters with a label have.
func zonedAt(tag string) render.Content { return contentAt(tag + "-{{CLUSTER_LABEL_zone}}") }

// zone labels a cluster.
func (s *scene) zone(name, zone string) {
	s.t.Helper()
	c := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		s.t.Fatal(err)
	}
	c.Labels = map[string]string{"zone": zone}
	s.update(c)
}

// TestContentThatAClusterCannotHaveFailsAtItsTurn: a commit that asks for what a cluster
// lacks is halted by its canary like any other bad commit, and says what is lacking.
func TestContentThatAClusterCannotHaveFailsAtItsTurn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.zone("c2", "eu")
	s.oneByOne()
	s.target("v1")
	s.turns(20)
	s.settle()
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded {
		t.Fatalf("v1 is everywhere, got %s", got)
	}
	before := s.versions()
	s.targetOf(zonedAt("v2"), "v2")
	s.turns(3)
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || !strings.HasPrefix(ro.Status.Message, "halted in everyone: 1 failed (c1: no value for CLUSTER_LABEL_zone (AddOnTemplate/hello: ") {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if !maps.Equal(before, s.versions()) {
		t.Error("a work was written although the canary cannot have the content")
	}
	s.target("v1")
	s.turns(3)
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded || !maps.Equal(before, s.versions()) {
		t.Errorf("going back moves nobody: %s", got)
	}
}

// TestFirstContentThatAClusterCannotHaveHoldsItBack: nothing says that it could ever have
// had it, and who can have it gets it.
func TestFirstContentThatAClusterCannotHaveHoldsItBack(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.zone("c2", "eu")
	s.targetOf(zonedAt("v1"), "v1")
	s.settle()
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseSucceeded || !strings.HasPrefix(ro.Status.Message, "1/2 updated, 1 held back (c1: ") {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
}
