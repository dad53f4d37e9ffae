package demo

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestMeasuredTree(t *testing.T) {
	tree, err := measuredTree("v5", "http://127.0.0.1:1/gate")
	if err != nil {
		t.Fatal(err)
	}
	var r v1alpha1.AddOnRollout
	if err := yaml.UnmarshalStrict([]byte(tree[rolloutFile]), &r); err != nil {
		t.Fatalf("%v in\n%s", err, tree[rolloutFile])
	}
	first, last := r.Spec.Stages[0], r.Spec.Stages[1]
	if r.Spec.OnFailure != v1alpha1.OnFailureRollback || first.Name != firstStage || last.Name != lastStage {
		t.Errorf("onFailure %s, stages %s and %s", r.Spec.OnFailure, first.Name, last.Name)
	}
	if got := first.Gates.During[0]; got.Name != errorsGate || got.Webhook.URL != "http://127.0.0.1:1/gate" || got.Webhook.SecretRef.Name != telemetrySecret {
		t.Errorf("the canary has gate %+v", got)
	}
	if got := last.Gates.Before[0]; got.Name != approvalGate || !cmp.Equal(got.Approval.Approvers.Users, []string{approver}) {
		t.Errorf("the last stage has gate %+v", got)
	}
}

// The measurement reads what the clusters run: it fails for the image that turns bad, after some
// traffic, and not for the image that was there before.
func TestTelemetry(t *testing.T) {
	images := map[string]string{"a": "r/hello:v4", "b": "r/hello:v4", "c": "r/hello:v4"}
	s := newTelemetry([]string{"a", "b", "c"}, "key", func(cluster string) string { return images[cluster] })
	expect := func(rounds int, want v1alpha1.GateState, says string) {
		t.Helper()
		for range rounds {
			s.round()
		}
		if state, message := s.verdict(); state != want || message != says {
			t.Fatalf("%s: %s, want %s: %s", state, message, want, says)
		}
	}
	expect(20, v1alpha1.GateWaiting, "every cluster runs hello:v4")
	images["a"] = "r/hello:v5"
	expect(20, v1alpha1.GatePassed, "hello:v5 fails 0.5% of requests on a, at most 5%; the others fail 0.5%")
	images["a"] = "r/hello:v6" + leakyTag
	expect(healthyRounds, v1alpha1.GatePassed, "hello:v6-leaky fails 0.5% of requests on a, at most 5%; the others fail 0.5%")
	expect(healthyRounds, v1alpha1.GateFailed, "hello:v6-leaky fails 15.2% of requests on a, at most 5%; the others fail 0.5%")
	images["a"] = ""
	expect(1, v1alpha1.GateWaiting, "no cluster runs hello:v6-leaky")
}

func TestTelemetry_AnswersOnlySignedQuestions(t *testing.T) {
	s := newTelemetry([]string{"a"}, "key", func(string) string { return "r/hello:v4" })
	s.round()
	for name, c := range map[string]struct {
		body, signature string
		code            int
		answer          string
	}{
		// printf '{"commit":"c1"}' | openssl dgst -sha256 -hmac key
		"Signed":   {`{"commit":"c1"}`, "sha256=7c7e48ebc0813c248852d43e77aaf47c126ebf2282fc51554e031ff8c4b06ee3", http.StatusOK, `{"message":"every cluster runs hello:v4","state":"Waiting"}`},
		"Unsigned": {`{"commit":"c1"}`, "", http.StatusUnauthorized, "the signature is wrong"},
		"Altered":  {`{"commit":"c2"}`, "sha256=7c7e48ebc0813c248852d43e77aaf47c126ebf2282fc51554e031ff8c4b06ee3", http.StatusUnauthorized, "the signature is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/gate", strings.NewReader(c.body))
			r.Header.Set("X-Signature-256", c.signature)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if got := strings.TrimSpace(w.Body.String()); w.Code != c.code || got != c.answer {
				t.Errorf("%d %s, want %d %s", w.Code, got, c.code, c.answer)
			}
		})
	}
	if n := s.answered("c1", v1alpha1.GateWaiting); n != 1 {
		t.Errorf("%d answers are counted", n)
	}
}

func TestInOrder(t *testing.T) {
	in := func(phase v1alpha1.Phase, gate v1alpha1.GateState) v1alpha1.AddOnRolloutStatus {
		return v1alpha1.AddOnRolloutStatus{Phase: phase, Stages: []v1alpha1.StageStatus{
			{Name: firstStage, Gates: []v1alpha1.GateStatus{{Name: errorsGate, State: gate}}},
		}}
	}
	passed, back, done := in(v1alpha1.PhaseProgressing, v1alpha1.GatePassed), in(v1alpha1.PhaseRollingBack, v1alpha1.GateFailed), in(v1alpha1.PhaseRolledBack, "")
	for name, c := range map[string]struct {
		statuses []v1alpha1.AddOnRolloutStatus
		wrong    string
	}{
		"Story":       {[]v1alpha1.AddOnRolloutStatus{passed, back, back, done}, ""},
		"Halted":      {[]v1alpha1.AddOnRolloutStatus{passed, in(v1alpha1.PhaseFailed, v1alpha1.GateFailed), back, done}, "although it rolls back by itself"},
		"NoRollback":  {[]v1alpha1.AddOnRolloutStatus{passed, done}, "never RollingBack"},
		"Unfinished":  {[]v1alpha1.AddOnRolloutStatus{passed, back}, "never RolledBack"},
		"OtherReason": {[]v1alpha1.AddOnRolloutStatus{in(v1alpha1.PhaseRollingBack, v1alpha1.GatePassed), done}, `gate errors was "Passed"`},
		"AtOnce":      {[]v1alpha1.AddOnRolloutStatus{back, done}, "it never Passed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inOrder(Recording{Statuses: c.statuses})
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want %q", err, c.wrong)
			}
		})
	}
}
