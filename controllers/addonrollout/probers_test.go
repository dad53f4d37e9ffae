package addonrollout

import (
	"strings"
	"testing"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// judgeBy sets the health policy of the rollout.
func (s *scene) judgeBy(h *v1alpha1.Health) {
	s.t.Helper()
	ro := s.rollout()
	ro.Spec.Health = h
	s.update(ro)
}

// stalled is the reason and message of Stalled; "": it does not exist.
func (s *scene) stalled() string {
	c := meta.FindStatusCondition(s.rollout().Status.Conditions, "Stalled")
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func expression(current string) *v1alpha1.Health {
	return &v1alpha1.Health{Prober: v1alpha1.ProberCEL, HealthCheckExprs: []v1alpha1.HealthCheckExpr{
		{APIVersion: "apps/v1", Kind: "Deployment", Current: current},
	}}
}

// With an invalid health policy, edited on the hub, no cluster is moved. With a valid policy the
// rollout continues.
func TestInvalidHealthHoldsTheRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.judgeBy(expression("feedback.x =="))
	s.target("v1")
	ro := s.rollout()
	ro.Annotations = map[string]string{fluxmeta.ReconcileRequestAnnotation: "now"}
	s.update(ro)
	s.turns(3)
	if got := s.rollout().Status.LastHandledReconcileAt; got != "" {
		t.Errorf("the request %q is answered, and nothing was written", got)
	}
	if got := s.stalled(); !strings.HasPrefix(got, "InvalidHealth: health cannot be judged: spec.health.healthCheckExprs[0].current: column 14") {
		t.Errorf("stalled is %q", got)
	}
	if got := len(s.works()); got != 0 {
		t.Errorf("%d works were written", got)
	}
	if _, err := s.explained(); err == nil || !strings.Contains(err.Error(), "column 14") {
		t.Errorf("the user's tool says %v", err)
	}
	s.judgeBy(expression("feedback['addonflow.ready'] >= 1"))
	s.settle()
	if got := s.rollout().Status.LastHandledReconcileAt; got != "now" {
		t.Errorf("the request is done: %q", got)
	}
	if got := s.stalled(); got != "" {
		t.Errorf("still stalled: %s", got)
	}
}

// Health is policy: another prober takes effect with the next turn, moves no cluster and writes no
// work.
func TestHealthIsPolicy(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	before := s.works()["c1"].ResourceVersion
	for _, c := range []struct {
		prober v1alpha1.ProberType
		mode   addonv1alpha1.HealthCheckMode
	}{{v1alpha1.ProberLease, addonv1alpha1.HealthCheckModeLease}, {v1alpha1.ProberNone, addonv1alpha1.HealthCheckModeCustomized}} {
		s.judgeBy(&v1alpha1.Health{Prober: c.prober})
		s.turns(3)
		if got := s.addOn("c1").Status.HealthCheck.Mode; got != c.mode {
			t.Errorf("prober %s: mode %s, want %s", c.prober, got, c.mode)
		}
		if phase := s.rollout().Status.Phase; phase != v1alpha1.PhaseSucceeded {
			t.Errorf("prober %s: what succeeded is %s", c.prober, phase)
		}
		if got := s.works()["c1"].ResourceVersion; got != before {
			t.Errorf("prober %s: the work was written", c.prober)
		}
	}
	version := s.addOn("c1").ResourceVersion
	s.turns(3)
	if got := s.addOn("c1").ResourceVersion; got != version {
		t.Error("written at rest")
	}
}
