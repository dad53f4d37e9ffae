package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Sources are the metrics of sources. It is safe for concurrent use.
type Sources struct {
	reads *prometheus.CounterVec
	last  *prometheus.GaugeVec
	owed  *prometheus.Desc

	mu sync.Mutex
	// waiting has the number of commit statuses that the forge has not accepted.
	waiting map[types.NamespacedName]int
}

// NewSources returns metrics that are not registered.
func NewSources() *Sources {
	of := []string{namespaceLabel, nameLabel}
	return &Sources{
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addonflow_source_reads_total",
			Help: "Conversations with the Git server or registry of a source, by result: succeeded, or the reason of the failure.",
		}, append(of, resultLabel)),
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addonflow_source_last_read_timestamp_seconds",
			Help: "When the Git server or registry of a source last answered.",
		}, of),
		owed:    prometheus.NewDesc("addonflow_source_commit_statuses_waiting", "Commit statuses of a source that the forge has not accepted yet.", of, nil),
		waiting: map[types.NamespacedName]int{},
	}
}

// Read counts a conversation with the server of a source. reason: why the conversation failed; "": it succeeded.
func (s *Sources) Read(key types.NamespacedName, reason string, now time.Time) {
	ok := s.reads.WithLabelValues(key.Namespace, key.Name, succeeded) // from 0, so that a rate sees the first
	if reason != "" {
		s.reads.WithLabelValues(key.Namespace, key.Name, reason).Inc()
		return
	}
	ok.Inc()
	s.last.WithLabelValues(key.Namespace, key.Name).Set(float64(now.Unix()))
}

// Stored updates the metrics of a source after its status was stored.
func (s *Sources) Stored(key types.NamespacedName, marks []v1alpha1.CommitMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[key] = owed(marks)
}

// Forget drops a source that no longer exists.
func (s *Sources) Forget(key types.NamespacedName) {
	labels := prometheus.Labels{namespaceLabel: key.Namespace, nameLabel: key.Name}
	s.reads.DeletePartialMatch(labels)
	s.last.DeletePartialMatch(labels)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, key)
}

// Describe implements prometheus.Collector.
func (s *Sources) Describe(to chan<- *prometheus.Desc) {
	to <- s.owed
	s.reads.Describe(to)
	s.last.Describe(to)
}

// Collect implements prometheus.Collector.
func (s *Sources) Collect(to chan<- prometheus.Metric) {
	s.reads.Collect(to)
	s.last.Collect(to)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, n := range s.waiting {
		to <- prometheus.MustNewConstMetric(s.owed, prometheus.GaugeValue, float64(n), key.Namespace, key.Name)
	}
}
