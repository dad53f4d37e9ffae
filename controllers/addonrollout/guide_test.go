package addonrollout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// example is the spec of the first AddOnRollout after a heading of a page, in the namespace of the scene.
func example(t *testing.T, page, heading string) v1alpha1.AddOnRolloutSpec {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	_, block, fenced := strings.Cut(section, "\n```yaml\n")
	block, _, ends := strings.Cut(block, "```")
	if !found || !fenced || !ends {
		t.Fatalf("%s has no example after %s", page, heading)
	}
	var ro v1alpha1.AddOnRollout
	if err := yaml.UnmarshalStrict([]byte(block), &ro); err != nil {
		t.Fatal(err)
	}
	for i := range ro.Spec.Stages {
		ro.Spec.Stages[i].Placement.Namespace = "team"
	}
	return ro.Spec
}

// TestGuide_TheExampleOfGatesRuns: only the addresses of its servers are the test's.
func TestGuide_TheExampleOfGatesRuns(t *testing.T) {
	asked := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Signature-256") != "":
			fmt.Fprint(w, `{"state": "Passed", "message": "change 4711 is approved"}`)
		case r.Header.Get("Authorization") == "Bearer secret":
			asked[r.FormValue("query")] = true
			fmt.Fprint(w, `{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": [1, "0.01"]}]}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	spec := example(t, "user-guide.md", "### Gates")
	spec.Stages[0].Gates.During[0].Prometheus.Address = server.URL
	for i := range spec.Stages[1].Gates.Before {
		if w := spec.Stages[1].Gates.Before[i].Webhook; w != nil {
			w.URL = server.URL
		}
	}
	s := gatedScene(t, nil, nil)
	s.installPolicy()
	for name, key := range map[string]string{"prometheus": "bearerToken", "change-board": "key"} {
		s.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: map[string]string{v1alpha1.GateHostAnnotation: strings.TrimPrefix(server.URL, "http://")}},
			Data:       map[string][]byte{key: []byte("secret")},
		})
	}
	first := s.rollout().Status.Target.Digest
	s.declare(func(declared *v1alpha1.AddOnRolloutSpec) { declared.Stages = spec.Stages })
	for i, name := range []string{"canary", "all"} {
		if ref := s.rollout().Spec.Stages[i].Placement; ref.Name != name {
			t.Fatalf("stage %d is of %s", i, ref.Name)
		}
	}
	second := s.upgrade()
	s.stands(v1alpha1.PhaseProgressing, "canary 0/1, soaking until 03:1")
	s.advance(12 * time.Minute)
	s.settleOnce()
	s.advance(2 * time.Minute) // the ledger has the end of a soak by the minute
	s.turn()
	s.measure(s.clock.Now())
	s.stands(v1alpha1.PhaseHeld, "fleet 0/2, waits for approval qa: 0 of 1 approvals (addonflow approve hello fleet)")
	s.runs(second, "c1")

	s.create(&v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "hello-fleet-carol"},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: s.rollout().UID, Rollout: "hello", Stage: "fleet", Gate: "qa", Digest: second,
			Attempt: s.rollout().Status.Attempt, Decision: v1alpha1.Approve, Approver: "carol", Groups: []string{"qa"},
		},
	})
	s.turn()
	s.stands(v1alpha1.PhaseHeld, "fleet 0/2, waits for window office: opens Mon 09:00 CET")
	s.runs(first, "c2", "c3")
	s.clock.SetTime(time.Date(2026, 1, 5, 8, 0, 1, 0, time.UTC))
	s.turn()
	s.measure(s.clock.Now())
	for range 3 {
		s.settleOnce() // 10% of the fleet is one cluster at a time
	}
	s.settle()
	s.runs(second, "c1", "c2", "c3")
	for _, matcher := range []string{`cluster=~"c1"`, `cluster=~"c2|c3"`} {
		query := fmt.Sprintf("sum(rate(hello_errors_total{%[1]s}[5m])) / sum(rate(hello_requests_total{%[1]s}[5m]))", matcher)
		if !asked[query] {
			t.Errorf("%s was not asked, but %v", query, asked)
		}
	}
}

// TestGuide_TheExampleOfARollbackRuns: the canary never reports, and goes back.
func TestGuide_TheExampleOfARollbackRuns(t *testing.T) {
	spec := example(t, "how-to/rollback.md", "## Rollback")
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.place("canary", "c1")
	first := s.succeed("v1")[0]
	s.declare(func(declared *v1alpha1.AddOnRolloutSpec) {
		declared.Stages, declared.OnFailure = spec.Stages, spec.OnFailure
	})
	second := s.commit("v2")
	s.turns(3)
	if got := s.holding(second); !slices.Equal(got, []string{"c1"}) {
		t.Fatalf("%v run v2", got)
	}
	s.advance(time.Hour + time.Minute)
	s.turn()
	ro := s.rolledBack()
	s.runs(first, "c1", "c2", "c3")
	if o := ro.Status.Override; o.Kind != v1alpha1.OverrideRollback || o.Declared.Digest != second {
		t.Errorf("override %+v", o)
	}
}
