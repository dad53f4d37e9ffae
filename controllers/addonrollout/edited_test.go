package addonrollout

import (
	"bytes"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// edit changes the image in the work of a cluster, whose marks stay, and its agent reports that the work runs.
func (s *scene) edit(cluster string) {
	s.t.Helper()
	w := s.works()[cluster]
	text := &w.Spec.Workload.Manifests[0].Raw
	changed := bytes.Replace(*text, []byte("example.com/hello:"), []byte("example.com/other:"), 1)
	if bytes.Equal(*text, changed) {
		s.t.Fatalf("the work has no such image: %s", changed)
	}
	*text = changed
	w.Generation++ // as the API server does
	s.update(w)
	s.report(cluster)
}

// TestEditedWorkProvesNothing: a cluster that reports health with another image than the content has proves nothing, although
// the work still names the content. No other cluster follows. The work is repaired, and the cluster proves the content then.
func TestEditedWorkProvesNothing(t *testing.T) {
	for name, restart := range map[string]bool{"WhileTheOperatorRuns": false, "WhileNoOperatorRuns": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.oneByOne()
			v1 := s.target("v1")
			s.settle()
			v2 := s.target("v2")
			s.turns(2)
			s.runs(v2, "c1")
			s.edit("c1")
			if restart {
				s.restart()
			}
			s.turn()
			s.runs(v1, "c2")
			if got := s.stateOf("c1"); got != rollout.Updating && got != rollout.Admitted {
				t.Errorf("c1 is %s: %s", got, s.rollout().Status.Message)
			}
			s.turns(2)
			if text := s.works()["c1"].Spec.Workload.Manifests[0].Raw; bytes.Contains(text, []byte("example.com/other:")) {
				t.Errorf("the work is not repaired: %s", text)
			}
			s.settle()
			s.runs(v2, "c1", "c2")
		})
	}
}

// TestSoakOfAnEditedWorkStartsAnew: part of the soak was that of another image.
func TestSoakOfAnEditedWorkStartsAnew(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.soaking(10*time.Minute, "30m")
	s.target("v1")
	s.turns(2)
	s.report()
	s.turns(2)
	if got := s.stateOf("c1"); got != rollout.Soaking {
		t.Fatalf("c1 is %s", got)
	}
	s.advance(9 * time.Minute)
	s.edit("c1")
	s.turns(3)
	s.report()
	s.advance(2 * time.Minute)
	s.turns(2)
	if got := s.stateOf("c1"); got != rollout.Soaking {
		t.Errorf("c1 is %s 11 minutes after it began to soak: %s", got, s.rollout().Status.Message)
	}
}

// TestEditedWorkIsNoRecovery: a cluster that failed recovers with the content of the commit only.
func TestEditedWorkIsNoRecovery(t *testing.T) {
	s, v1, _ := stopped(t)
	s.edit("c1")
	s.turn()
	if got := s.stateOf("c1"); got == rollout.Done || s.rollout().Status.Phase != v1alpha1.PhaseFailed {
		t.Errorf("c1 is %s with other content, and the rollout %s: %s", got, s.rollout().Status.Phase, s.rollout().Status.Message)
	}
	s.runs(v1, "c2", "c3")
}
