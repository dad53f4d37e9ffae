package addonrollout

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
)

// gauges are the metrics of rollouts. Labels name the rollout, never a cluster:
// ten thousand of those would break a metrics server.
type gauges struct {
	clusters *prometheus.GaugeVec
	phase    *prometheus.GaugeVec
}

// newGauges returns unregistered metrics.
func newGauges() *gauges {
	labels := []string{"namespace", "name"}
	return &gauges{
		clusters: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addonflow_rollout_clusters",
			Help: "Clusters of a rollout by state: updated, in_flight, failed, parked, held, waiting, removing.",
		}, append(labels, "state")),
		phase: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "addonflow_rollout_phase",
			Help: "1 for the phase a rollout is in.",
		}, append(labels, "phase")),
	}
}

// Collectors returns the metrics to register.
func (g *gauges) Collectors() []prometheus.Collector {
	return []prometheus.Collector{g.clusters, g.phase}
}

// set sets the metrics of a rollout from its status.
func (g *gauges) set(ro *v1alpha1.AddOnRollout) {
	c := ro.Status.Counts
	for state, n := range map[string]int32{
		"updated": c.Updated, "in_flight": c.InFlight, "failed": c.Failed,
		"parked": c.Parked, "held": c.Held, "waiting": c.Waiting, "removing": c.Removing,
	} {
		g.clusters.WithLabelValues(ro.Namespace, ro.Name, state).Set(float64(n))
	}
	g.phase.DeletePartialMatch(prometheus.Labels{"namespace": ro.Namespace, "name": ro.Name})
	g.phase.WithLabelValues(ro.Namespace, ro.Name, string(ro.Status.Phase)).Set(1)
}

// forget drops a rollout that is gone.
func (g *gauges) forget(key client.ObjectKey) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	g.clusters.DeletePartialMatch(labels)
	g.phase.DeletePartialMatch(labels)
}

// measure records Flux's metrics of a turn.
func (r *Reconciler) measure(ctx context.Context, ro *v1alpha1.AddOnRollout, started time.Time) {
	r.Metrics.RecordDuration(ctx, ro, started)
	r.Metrics.RecordReadiness(ctx, ro)
	r.Metrics.RecordReconciling(ctx, ro)
	r.Metrics.RecordStalled(ctx, ro)
	r.Metrics.RecordSuspend(ctx, ro, ro.Spec.Suspend || plan.Suspended(ro))
}
