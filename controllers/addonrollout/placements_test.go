package addonrollout

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

func TestPlacement_IsSettledOnceItsDecisionsAreComplete(t *testing.T) {
	satisfied := metav1.Condition{Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue}
	empty := metav1.Condition{Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionFalse, Reason: "NoManagedClusterMatched"}
	broken := metav1.Condition{Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionTrue}
	old, seen := empty, empty
	old.ObservedGeneration, seen.ObservedGeneration = 1, 2
	decision := func(name string, clusters ...string) clusterv1beta1.PlacementDecision {
		d := clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, c := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: c})
		}
		return d
	}
	cases := map[string]struct {
		reason     string
		selected   int32
		groups     []clusterv1beta1.DecisionGroupStatus
		conditions []metav1.Condition
		decisions  []clusterv1beta1.PlacementDecision
		want       rollout.Settlement
	}{
		"Restored":       {reason: "without a status OCM has not judged it yet, and it selects no cluster only by default", want: rollout.Undecided},
		"Empty":          {reason: "judged, and it selects no cluster", conditions: []metav1.Condition{empty}, want: rollout.Settled},
		"EmptyOfOldSpec": {reason: "the judgement is about the spec before", conditions: []metav1.Condition{old}, want: rollout.Undecided},
		"EmptyOfSpec":    {reason: "the judgement is about this spec", conditions: []metav1.Condition{seen}, want: rollout.Settled},
		"Misconfigured":  {reason: "a placement that could not be scheduled selects no cluster by accident", conditions: []metav1.Condition{empty, broken}, want: rollout.Undecided},
		"Whole":          {reason: "as many as the status counts", selected: 2, conditions: []metav1.Condition{satisfied}, decisions: []clusterv1beta1.PlacementDecision{decision("d1", "a", "b")}, want: rollout.Settled},
		"Shuffled":       {reason: "a cluster counts once, in whichever decisions it stands", selected: 2, conditions: []metav1.Condition{satisfied}, decisions: []clusterv1beta1.PlacementDecision{decision("d1", "a", "b"), decision("d2", "b")}, want: rollout.Settled},
		"Missing":        {reason: "one is not written yet", selected: 3, conditions: []metav1.Condition{satisfied}, decisions: []clusterv1beta1.PlacementDecision{decision("d1", "a", "b")}, want: rollout.Unsettled},
		"LeftOver":       {reason: "decisions of the placement before", conditions: []metav1.Condition{empty}, decisions: []clusterv1beta1.PlacementDecision{decision("d1", "a")}, want: rollout.Unsettled},
		"GroupMissing": {
			reason: "a decision that a group lists is not there", selected: 1, conditions: []metav1.Condition{satisfied},
			groups: []clusterv1beta1.DecisionGroupStatus{{Decisions: []string{"d1", "d2"}, ClustersCount: 1}}, decisions: []clusterv1beta1.PlacementDecision{decision("d1", "a")}, want: rollout.Unsettled,
		},
		"GroupShort": {
			reason: "a group has fewer than it counts", selected: 1, conditions: []metav1.Condition{satisfied},
			groups: []clusterv1beta1.DecisionGroupStatus{{Decisions: []string{"d1"}, ClustersCount: 2}}, decisions: []clusterv1beta1.PlacementDecision{decision("d1", "a")}, want: rollout.Unsettled,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			p.Status.NumberOfSelectedClusters, p.Status.DecisionGroups, p.Status.Conditions = tc.selected, tc.groups, tc.conditions
			if got := settlement(p, tc.decisions); got != tc.want {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRolloutWaitsForAnUndecidedPlacement: OCM needs a while to decide about a new Placement. Until
// then the rollout is Reconciling; the user need not act.
func TestRolloutWaitsForAnUndecidedPlacement(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	s.create(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "canary"}})
	ro := s.rollout()
	ro.Spec.Stages[0].Placement.Name = "canary"
	s.update(ro)
	s.target("v1")
	s.turns(2)
	reconciling := apimeta.FindStatusCondition(s.rollout().Status.Conditions, meta.ReconcilingCondition)
	if got := s.rollout(); got.Status.Phase != v1alpha1.PhaseHeld || reconciling == nil || reconciling.Reason != v1alpha1.PlacementUndecidedReason {
		t.Fatalf("%s: %s, reconciling %+v", got.Status.Phase, got.Status.Message, reconciling)
	}
	placement := &clusterv1beta1.Placement{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "canary"}, placement); err != nil {
		t.Fatal(err)
	}
	s.delete(placement)
	s.place("canary", "c1", "c2")
	s.turns(2)
	s.report()
	s.settle()
}
