package metrics

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/addonflow/addonflow/commitstatus"
)

// Forges are the metrics of what forges accept.
type Forges struct{ posts *prometheus.HistogramVec }

// NewForges returns metrics that are not registered.
func NewForges() *Forges {
	return &Forges{posts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "addonflow_commit_status_post_duration_seconds",
		Help:    "Time of posts of commit statuses, by result: accepted, failed, or why the forge denied them.",
		Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 15},
	}, []string{"provider", resultLabel})}
}

// Describe implements prometheus.Collector.
func (f *Forges) Describe(to chan<- *prometheus.Desc) { f.posts.Describe(to) }

// Collect implements prometheus.Collector.
func (f *Forges) Collect(to chan<- prometheus.Metric) { f.posts.Collect(to) }

// Measured returns a forge whose posts are measured.
func (f *Forges) Measured(provider string, forge commitstatus.Forge) commitstatus.Forge {
	return measuredForge{Forge: forge, provider: provider, posts: f.posts}
}

type measuredForge struct {
	commitstatus.Forge

	provider string
	posts    *prometheus.HistogramVec
}

func (f measuredForge) Post(ctx context.Context, status commitstatus.Status) error {
	began := time.Now()
	err := f.Forge.Post(ctx, status)
	result := "accepted"
	if refused, ok := errors.AsType[*commitstatus.DeliveryError](err); ok {
		result = cmp.Or(string(refused.Denied), failed)
	} else if err != nil {
		result = failed
	}
	f.posts.WithLabelValues(f.provider, result).Observe(time.Since(began).Seconds())
	return err
}
