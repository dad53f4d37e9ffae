package addonrollout

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// If the revision to go back to is deleted during a rollback, the clusters do not move to older content without an
// order. They go there when Git blocks the missing content, or an order names the older one.
func TestRollback_ToADeletedRevisionGoesToNoOlderContent(t *testing.T) {
	all := []string{"c1", "c2", "c3"}
	for _, when := range []string{"BeforeTheFailure", "BeforeTheRollback", "Midway", "AfterTheEnd"} {
		t.Run(when, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, all...)
			s.within(0, "1m")
			s.declare(rollsBack)
			of := s.succeed("v0", "v1")
			v2 := s.commit("v2")
			lose := func(at string) {
				if when == at {
					s.delete(s.revision(of[1]))
				}
			}
			s.turns(3)
			lose("BeforeTheFailure")
			s.advance(time.Minute)
			s.turn()
			lose("BeforeTheRollback")
			s.turn()
			lose("Midway")
			if when == "AfterTheEnd" {
				s.rolledBack()
			}
			lose("AfterTheEnd")
			if when == "BeforeTheFailure" {
				s.turns(5) // v2 stays broken
			} else {
				s.ticks(14, time.Second, all...)
			}
			ro := s.rollout()
			if got := s.holding(of[0]); len(got) > 0 || ro.Status.Outcome != "failure" {
				t.Errorf("%v run older content; %s, %s: %s", got, ro.Status.Outcome, ro.Status.Phase, ro.Status.Message)
			}
			if got := s.holding(v2); len(got) > 0 && !strings.Contains(ro.Status.Message, "revision is missing") {
				t.Errorf("%v run v2; %s: %s", got, ro.Status.Phase, ro.Status.Message)
			}
			s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
				spec.Blocked = []v1alpha1.BlockedContent{{Digest: v2, Reason: "leaks memory"}, {Digest: of[1], Reason: "it is gone"}}
			})
			s.ticks(14, time.Second, all...)
			s.runs(of[0], all...)
		})
	}
	t.Run("AnOrderNamesIt", func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{}, all...)
		of := s.succeed("v0", "v1", "v2")
		s.delete(s.revision(of[1]))
		s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: of[0]})
		s.ticks(14, time.Second, all...)
		s.runs(of[0], all...)
	})
}

// A rollback order is not answered as carried out if its content has no AddOnRevision, which would carry the quarantine. An
// entry of spec.blocked needs none.
func TestRollbackOrder_OfADeletedRevisionIsRefused(t *testing.T) {
	all := []string{"c1", "c2", "c3"}
	s := newScene(t, interceptor.Funcs{}, all...)
	of := s.succeed("v1", "v2")
	s.delete(s.revision(of[1]))
	key := s.order(v1alpha1.OrderRollback, of[1], nil)
	s.ticks(4, time.Second, all...)
	if got := s.answered(key); !strings.HasPrefix(got, "Refused: revision hello-") || !strings.Contains(got, "spec.blocked") {
		t.Errorf("the rollback order is %s", got)
	}
	s.runs(of[1], all...)
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) {
		spec.Blocked = []v1alpha1.BlockedContent{{Digest: of[1], Reason: "leaks memory"}}
	})
	s.ticks(14, time.Second, all...)
	s.runs(of[0], all...)
}

// A rollback order goes only to content that succeeded and is stored: an order that names other content is refused, and moves
// no cluster.
func TestRollbackOrder_ToContentWithoutSuccessOrBodyIsRefused(t *testing.T) {
	all := []string{"c1", "c2", "c3"}
	s := newScene(t, interceptor.Funcs{}, all...)
	s.within(0, "1m")
	of := s.succeed("v1", "v2")
	bad := s.commit("v3")
	s.turns(3)
	s.advance(time.Minute)
	s.turn()
	last := s.succeed("v4")[0]
	s.delete(s.revision(of[1]))
	for name, to := range map[string]string{"NeverSucceeded": bad, "NotStored": of[1], "Unknown": "abcdef0", "Itself": last} {
		key := s.order(v1alpha1.OrderRollback, last, &v1alpha1.OrderArguments{To: to})
		s.ticks(4, time.Second, all...)
		want := "Refused: " + to + " did not succeed here, is quarantined or blocked, or is not stored any more"
		if name == "Itself" {
			want = "Refused: " + commitNamed("v4")[:10] + " is the content to roll back; name other content with --to"
		}
		if got := s.answered(key); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	s.runs(last, all...)
}
