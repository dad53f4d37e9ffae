package prometheus

import (
	"fmt"
	"net/http"
	"sync"
)

// perScrape is how many requests a cluster serves between two scrapes.
const perScrape = 1000

// Traffic is a target with the counters http_requests_total and http_errors_total of clusters,
// by the label cluster.
type Traffic struct {
	clusters  []string
	errorRate func(cluster string) float64

	mu               sync.Mutex
	requests, errors map[string]float64
}

// NewTraffic returns the traffic of clusters. errorRate says, at each scrape, which part of the
// requests of a cluster fails. It is safe for concurrent use if errorRate is.
func NewTraffic(errorRate func(cluster string) float64, clusters ...string) *Traffic {
	return &Traffic{clusters: clusters, errorRate: errorRate, requests: map[string]float64{}, errors: map[string]float64{}}
}

// ServeHTTP answers a scrape.
func (t *Traffic) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, cluster := range t.clusters {
		t.requests[cluster] += perScrape
		t.errors[cluster] += perScrape * t.errorRate(cluster)
		fmt.Fprintf(w, "http_requests_total{cluster=%q} %g\nhttp_errors_total{cluster=%[1]q} %[3]g\n", cluster, t.requests[cluster], t.errors[cluster])
	}
}
