package addonrollout

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
)

// labelSelector says which ManagedClusters the rollout's labels select: none without
// a selector, or with one that cannot be read, which the planner refuses.
func labelSelector(ro *v1alpha1.AddOnRollout) labels.Selector {
	if ro.Spec.ClusterLabelSelector == nil {
		return labels.Nothing()
	}
	s, err := metav1.LabelSelectorAsSelector(ro.Spec.ClusterLabelSelector)
	if err != nil {
		return labels.Nothing()
	}
	return s
}

// clusterEvents wakes every rollout when a ManagedCluster comes, goes, or changes in
// what any of them reads, and when only labels change those whose selector that
// concerns: OCM labels a cluster whenever the health of an add-on changes there.
func (r *Reconciler) clusterEvents() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(q queue, requests []reconcile.Request) {
		for _, request := range requests {
			q.Add(request)
		}
	}
	changed := clusterChange()
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { wake(q, r.rollouts(ctx)) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { wake(q, r.rollouts(ctx)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := labels.Set(e.ObjectOld.GetLabels()), labels.Set(e.ObjectNew.GetLabels())
			switch {
			case changed.Update(e):
				wake(q, r.rollouts(ctx))
			case !labels.Equals(before, after):
				wake(q, r.rolloutsThat(ctx, func(ro *v1alpha1.AddOnRollout) bool {
					s := labelSelector(ro)
					return s.Matches(before) != s.Matches(after)
				}))
			}
		},
	}
}

// clusterChange passes what of a ManagedCluster matters to a rollout, and not the
// heartbeat.
func clusterChange() predicate.Predicate {
	facts := func(o client.Object) string {
		c, ok := o.(*clusterv1.ManagedCluster)
		if !ok {
			return ""
		}
		is, changed := plan.Reachable(c)
		return fmt.Sprint(is, changed.Unix(), c.DeletionTimestamp != nil, c.Annotations[plan.ImageRegistriesAnnotation],
			c.Status.Version.Kubernetes, plan.InstallDisabled(c), ownLabels(c), c.Status.ClusterClaims, clusterAnnotations(c))
	}
	p := predicate.Funcs{}
	p.UpdateFunc = func(e event.UpdateEvent) bool { return facts(e.ObjectOld) != facts(e.ObjectNew) }
	return p
}

// featureLabels is the prefix of the labels by which OCM says which add-ons a cluster
// has; they change with every add-on, and no template is for them.
const featureLabels = "feature.open-cluster-management.io/addon-"

// ownLabels are the labels of a cluster that a template may read.
func ownLabels(c *clusterv1.ManagedCluster) map[string]string {
	own := make(map[string]string, len(c.Labels))
	for k, v := range c.Labels {
		if !strings.HasPrefix(k, featureLabels) {
			own[k] = v
		}
	}
	return own
}
