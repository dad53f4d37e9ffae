package addonrollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// stateOf is the state of a cluster's record.
func (s *scene) stateOf(cluster string) rollout.State {
	s.t.Helper()
	records, err := rollout.Records(s.rollout().Status.Ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range records {
		if r.Cluster == cluster {
			return r.State
		}
	}
	return ""
}

// TestSoakOfAClusterWhoseClockIsAhead: if the managed cluster dates a change of availability in the
// future, the soak starts again once, when the change is first seen. It does not start again when the operator
// restarts, nor when its clock gets there.
func TestSoakOfAClusterWhoseClockIsAhead(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"by more than the soak": 2 * time.Hour, "by less": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) { soakAhead(t, ahead) })
	}
}

func soakAhead(t *testing.T, ahead time.Duration) {
	t.Helper()
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.soaking(10*time.Minute, "30m")
	s.target("v1")
	s.turns(2)
	c1 := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "c1"}, c1); err != nil {
		t.Fatal(err)
	}
	c1.Status.Conditions[0].LastTransitionTime = metav1.NewTime(s.clock.Now().Add(ahead))
	s.update(c1)
	s.report()
	s.turns(2)
	version := s.rollout().ResourceVersion
	for range 9 {
		s.advance(time.Minute)
		s.restart()
		s.turn()
	}
	if ro := s.rollout(); ro.ResourceVersion != version || s.stateOf("c1") != rollout.Soaking {
		t.Fatalf("while c1 soaks nothing is written: it is %s: %s", s.stateOf("c1"), ro.Status.Message)
	}
	s.advance(2 * time.Minute)
	s.turns(2)
	if got := s.stateOf("c1"); got != rollout.Done {
		t.Errorf("c1 is %s after the declared soak: %s", got, s.rollout().Status.Message)
	}
}

// TestSoaksAfterARevertEnded: a revert to proven content has no soak. After that rollout ended,
// clusters soak again, also if only the policy changes.
func TestSoaksAfterARevertEnded(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(2)
	s.target("v1")
	s.advance(time.Minute)
	s.settle()
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || !ro.Status.Reverting {
		t.Fatalf("the revert ended %s", ro.Status.Phase)
	}
	s.soaking(10*time.Minute, "30m")
	ro := s.rollout()
	ro.Generation++ // as the API server does
	s.update(ro)
	w := s.works()["c2"]
	s.delete(w)
	s.turns(3)
	s.report()
	s.turns(2)
	if got := s.stateOf("c2"); got != rollout.Soaking {
		t.Errorf("c2, which is given the content anew, is %s: %s", got, s.rollout().Status.Message)
	}
}
