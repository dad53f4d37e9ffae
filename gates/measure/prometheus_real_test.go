package measure_test

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/gates/measure"
	"github.com/addonflow/addonflow/test/prometheus"
)

// failing is the part of requests that fails, by PromQL.
const failing = "sum(rate(http_errors_total{$moved}[3s])) / sum(rate(http_requests_total{$moved}[3s]))"

// TestPrometheus_Real: the queries are those of a real Prometheus, and its answers are read.
func TestPrometheus_Real(t *testing.T) {
	var bad atomic.Bool
	traffic := httptest.NewServer(prometheus.NewTraffic(func(cluster string) float64 {
		if cluster == "eu.1" && bad.Load() {
			return 0.12
		}
		return 0.01
	}, "eu.1", "eux1", "us-1", "us-2"))
	t.Cleanup(traffic.Close)
	address := prometheus.Start(t, strings.TrimPrefix(traffic.URL, "http://"))

	q := question()
	q.Moved, q.Control = []string{"eu.1"}, []string{"us-1", "us-2"}
	compared := comparedTo(strings.ReplaceAll(failing, "$moved", "$control"), 2)
	measure := func(query string, q gates.Question, limits ...func(*v1alpha1.PrometheusGate)) string {
		gate := measured(address, limits...)
		gate.Prometheus.Query = query
		return hostless(measure.Measure(t.Context(), gate, nil, q, onThisMachine), address)
	}
	await := func(state v1alpha1.GateState) {
		t.Helper()
		deadline := time.Now().Add(time.Minute)
		for got := ""; !strings.HasPrefix(got, string(state)); got = measure(failing, q, atMost(0.05), compared) {
			if time.Now().After(deadline) {
				t.Fatalf("got %s, want %s", got, state)
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // until it is scraped
		}
	}
	await(v1alpha1.GatePassed)
	bad.Store(true)
	await(v1alpha1.GateFailed)
	bad.Store(false)
	await(v1alpha1.GatePassed)

	for name, c := range map[string]struct{ query, want string }{
		"OneCluster":      {`count(http_requests_total{$moved})`, "Passed: 1, max 1"},
		"Scalar":          {`scalar(count(http_requests_total{$moved}))`, "Passed: 1, max 1"},
		"SeveralElements": {`http_requests_total{job="clusters"}`, "Error: HOST returns 4 elements: the query must return one, such as with sum(...)"},
		"NotANumber":      {`0 * (vector(0) / vector(0))`, `Error: HOST returns "NaN", which is not a finite number`},
		"NoData":          {`sum(unknown{$moved})`, "Error: HOST has no data for the query"},
		"NoInstant":       {`http_requests_total{$moved}[1m]`, `Error: HOST returns a "matrix": the query must return one number`},
		"NoPromQL":        {`sum(http_requests_total{$moved}`, "Error: HOST cannot answer the query (400): bad_data:"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := measure(c.query, q, atMost(1)); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	q.Control = []string{"us-1"}
	if got, want := measure(`count(http_requests_total{$moved})`, q, comparedTo("count(http_requests_total{$control}) * 2", 0.5)), "Passed: 1; 0.5 times the control's 2, maxRatio 0.5"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
