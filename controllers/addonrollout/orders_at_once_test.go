package addonrollout

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Of two rollback orders at once the newer takes effect, and the older is refused by its name.
func TestOfTwoRollbackOrdersAtOnceTheOlderIsRefused(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	of := s.succeed("v1", "v2", "v3")
	older := s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: of[0]})
	newer := s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: of[1]})
	s.ticks(14, time.Second, "c1", "c2", "c3")
	if got := s.answered(older); !strings.HasPrefix(got, "Refused") || !strings.Contains(got, newer.Name) {
		t.Errorf("the older is answered %q", got)
	}
	if got := s.answered(newer); !strings.HasPrefix(got, "CarriedOut") {
		t.Errorf("the newer is answered %q", got)
	}
	s.runs(of[1], "c1", "c2", "c3")
}

// A rollback order is carried out whether a retry was given before it or after it in the same turn. After it, there
// is nothing to retry.
func TestRollbackOrderBesideARetryIsCarriedOut(t *testing.T) {
	for _, first := range []v1alpha1.OrderVerb{v1alpha1.OrderRollback, v1alpha1.OrderRetry} {
		t.Run(string(first)+"First", func(t *testing.T) {
			s, v1, v2 := stopped(t)
			second := v1alpha1.OrderRetry
			if first == v1alpha1.OrderRetry {
				second = v1alpha1.OrderRollback
			}
			a, b := s.order(first, v2, nil), s.order(second, v2, nil)
			s.turn()
			s.ticks(12, 0, "c1", "c2", "c3")
			recall, retry := a, b
			if first == v1alpha1.OrderRetry {
				recall, retry = b, a
			}
			if got := s.answered(recall); !strings.HasPrefix(got, "CarriedOut") {
				t.Errorf("the rollback order is answered %q", got)
			}
			if got := s.answered(retry); first == v1alpha1.OrderRollback && (!strings.HasPrefix(got, "Refused") || !strings.Contains(got, recall.Name)) {
				t.Errorf("the retry is answered %q", got)
			}
			s.runs(v1, "c1", "c2", "c3")
		})
	}
}

// If a recall and an unblock of the same content are given at once, the newer decides, and the older is refused by its name.
// The operator judges the newer by what the older would leave.
func TestOfARecallAndAnUnblockAtOnceTheNewerDecides(t *testing.T) {
	t.Run("UnblockOfGreenContent", func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
		of := s.succeed("v1", "v2")
		recall := s.order(v1alpha1.OrderRollback, of[1], nil)
		unblock := s.order(v1alpha1.OrderUnblock, of[1], nil)
		retry := s.order(v1alpha1.OrderRetry, of[1], nil)
		s.ticks(14, time.Second, "c1", "c2", "c3")
		s.expectAnswers(map[client.ObjectKey]string{
			recall:  "Refused: order " + unblock.Name + ", given after it, decides",
			unblock: "CarriedOut: " + of[1] + " may be rolled out again",
			retry:   "Refused: the rollout did not fail",
		})
		s.runs(of[1], "c1", "c2", "c3")
		if got := s.rollout().Status; got.Phase != v1alpha1.PhaseSucceeded || got.Override != nil {
			t.Errorf("%s, override %+v", got.Phase, got.Override)
		}
	})
	for name, arguments := range map[string]*v1alpha1.OrderArguments{"Recall": nil, "RecallToOlderContent": {To: commitNamed("v1")}} {
		t.Run(name+"WhileTheFleetIsBack", func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			of := s.succeed("v1", "v2", "v3")
			s.order(v1alpha1.OrderRollback, of[2], nil)
			s.ticks(14, time.Second, "c1", "c2", "c3")
			s.runs(of[1], "c1", "c2", "c3")
			unblock := s.order(v1alpha1.OrderUnblock, of[2], nil)
			recall := s.order(v1alpha1.OrderRollback, of[1], arguments)
			s.ticks(14, time.Second, "c1", "c2", "c3")
			want, back := "Refused: the clusters were already rolled back from "+commitNamed("v3")[:10]+" to "+commitNamed("v2")[:10]+"; to leave", of[1]
			if arguments != nil {
				want, back = "CarriedOut: quarantined "+of[1]+"; back to "+commitNamed("v1")[:10], of[0]
			}
			s.expectAnswers(map[client.ObjectKey]string{unblock: "Refused: order " + recall.Name + ", given after it, decides", recall: want})
			s.runs(back, "c1", "c2", "c3")
		})
	}
	t.Run("UnblockAfterARecallThatWasGivenAfterAnUnblock", func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
		of := s.succeed("v1", "v2")
		s.order(v1alpha1.OrderRollback, of[1], nil)
		s.ticks(14, time.Second, "c1", "c2", "c3")
		first := s.order(v1alpha1.OrderUnblock, of[1], nil)
		s.order(v1alpha1.OrderRollback, of[0], nil)
		last := s.order(v1alpha1.OrderUnblock, of[1], nil)
		s.ticks(14, time.Second, "c1", "c2", "c3")
		s.expectAnswers(map[client.ObjectKey]string{
			first: "Refused: order " + last.Name + ", given after it, decides",
			last:  "CarriedOut: " + of[1] + " may be rolled out again",
		})
		s.runs(of[1], "c1", "c2", "c3")
	})
}

// A recall may return to content whose quarantine an order before it ends.
func TestRecall_ReturnsToContentThatIsUnblockedAtOnce(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	of := s.succeed("v1", "v2")
	s.order(v1alpha1.OrderRollback, of[1], nil)
	s.ticks(14, time.Second, "c1", "c2", "c3")
	of = append(of, s.succeed("v3")...)
	s.order(v1alpha1.OrderUnblock, of[1], nil)
	recall := s.order(v1alpha1.OrderRollback, of[2], &v1alpha1.OrderArguments{To: commitNamed("v2")})
	s.ticks(14, time.Second, "c1", "c2", "c3")
	s.expectAnswers(map[client.ObjectKey]string{recall: "CarriedOut: quarantined " + of[2] + "; back to " + commitNamed("v2")[:10]})
	s.runs(of[1], "c1", "c2", "c3")
}

// expectAnswers compares the beginnings of the answers to orders.
func (s *scene) expectAnswers(want map[client.ObjectKey]string) {
	s.t.Helper()
	for key, begin := range want {
		if got := s.answered(key); !strings.HasPrefix(got, begin) {
			s.t.Errorf("%s is answered %q, want %q", key.Name, got, begin)
		}
	}
}

// A recall to the content that the clusters have, or go back to, is refused by that name, and not because no other content
// succeeded.
func TestRecall_ToTheContentThatTheClustersHaveIsRefused(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	of := s.succeed("v1", "v2", "v3")
	to := func(tag string) *v1alpha1.OrderArguments { return &v1alpha1.OrderArguments{To: commitNamed(tag)[:10]} }
	current := s.order(v1alpha1.OrderRollback, of[2], to("v3"))
	s.turn()
	s.order(v1alpha1.OrderRollback, of[2], nil)
	s.turns(2)
	onTheWay := s.order(v1alpha1.OrderRollback, of[1], to("v2"))
	s.turn()
	s.expectAnswers(map[client.ObjectKey]string{
		current:  "Refused: " + commitNamed("v3")[:10] + " is the content to roll back; name other content with --to",
		onTheWay: "Refused: the clusters were already rolled back from " + commitNamed("v3")[:10] + " to " + commitNamed("v2")[:10] + "; to leave",
	})
}

// Of a retry and an abort at once, the newer decides.
func TestAbortOfARetryThatWasGivenAtOnceEndsTheAttempt(t *testing.T) {
	s, v1, v2 := stopped(t)
	retry, abort := s.order(v1alpha1.OrderRetry, v2, nil), s.order(v1alpha1.OrderAbort, v2, nil)
	s.ticks(6, time.Second, "c1", "c2", "c3")
	s.expectAnswers(map[client.ObjectKey]string{retry: "CarriedOut: attempt 2", abort: "CarriedOut: ended the rollout"})
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseFailed || got.Attempt != 2 {
		t.Errorf("%s in attempt %d: %s", got.Phase, got.Attempt, got.Message)
	}
	s.runs(v1, "c2", "c3")
}
