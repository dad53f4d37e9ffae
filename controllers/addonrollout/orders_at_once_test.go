package addonrollout

import (
	"strings"
	"testing"
	"time"

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
