package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestApprovalsAreOfOneAttempt: after a retry the clusters get the content again, and people decide
// again.
func TestApprovalsAreOfOneAttempt(t *testing.T) {
	stage := v1alpha1.Stage{Name: "fleet", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{
		{Name: "qa", Type: v1alpha1.GateApproval, Approval: &v1alpha1.ApprovalGate{}},
	}}}
	ro := &v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello", UID: "1"},
		Spec:       v1alpha1.AddOnRolloutSpec{Stages: []v1alpha1.Stage{stage}, Target: &v1alpha1.Target{Digest: "d"}},
	}
	for _, tc := range []struct {
		given, now int32
		want       v1alpha1.GateState
	}{{1, 1, v1alpha1.GatePassed}, {1, 2, v1alpha1.GateWaiting}, {2, 2, v1alpha1.GatePassed}, {2, 1, v1alpha1.GateWaiting}} {
		approval := v1alpha1.AddOnApproval{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"},
			Spec: v1alpha1.AddOnApprovalSpec{
				RolloutUID: "1", Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: "d", Attempt: tc.given, Decision: v1alpha1.Approve, Approver: "ann",
			},
		}
		o := &Observation{Rollout: ro, Choice: Choice{Target: v1alpha1.Target{Digest: "d"}}, Approvals: Approvals{Read: true, Counted: []v1alpha1.AddOnApproval{approval}}}
		turn := &turn{Observation: o, stored: v1alpha1.AddOnRolloutStatus{Attempt: tc.now}}
		if got := turn.judgeGates()[0].status; got.State != tc.want {
			t.Errorf("approved in attempt %d, in attempt %d it is %s: %s", tc.given, tc.now, got.State, got.Reason)
		}
	}
}
