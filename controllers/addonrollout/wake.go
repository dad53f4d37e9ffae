package addonrollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/hubclient"
	"github.com/addonflow/addonflow/manifests/admission"
)

func addOnOfWork(o client.Object) string { return o.GetLabels()[addOnNameLabel] }

func placementOfDecision(o client.Object) string { return o.GetLabels()[clusterv1beta1.PlacementLabel] }

// ofAddOn wakes the rollouts of the add-on that an object belongs to.
func (r *Reconciler) ofAddOn(name func(client.Object) string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		return r.rollouts(ctx, client.MatchingFields{indexName: name(obj)})
	}
}

// ofPlacement wakes the rollouts whose policy names the placement.
func (r *Reconciler) ofPlacement(name func(client.Object) string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		ref := v1alpha1.PlacementReference{Namespace: obj.GetNamespace(), Name: name(obj)}
		return r.rolloutsThat(ctx, func(ro *v1alpha1.AddOnRollout) bool {
			return slices.Contains(ro.Spec.Placements(), ref)
		})
	}
}

// ofSource wakes the rollouts of a source, because its commitStatus may have changed, and the
// rollouts of the sources that shared a context with it.
func (r *Reconciler) ofSource(ctx context.Context, obj client.Object) []reconcile.Request {
	sources := map[client.ObjectKey]bool{client.ObjectKeyFromObject(obj): true}
	for _, other := range r.Desk.Sharing(ctx, obj) {
		sources[other.NamespacedName] = true
	}
	return r.rolloutsThat(ctx, func(ro *v1alpha1.AddOnRollout) bool {
		return ro.Spec.Target != nil && sources[client.ObjectKey{Namespace: ro.Namespace, Name: ro.Spec.Target.Source}]
	})
}

// ofNewestCommit wakes the rollouts of a source that post a status on its newest commit. If the commit was refused,
// these are all rollouts. Otherwise they are the rollouts that are not Succeeded, or that posted a status which is
// not final.
func (r *Reconciler) ofNewestCommit(ctx context.Context, obj client.Object) []reconcile.Request {
	source, ok := obj.(*v1alpha1.AddOnSource)
	if !ok || source.Spec.CommitStatus == nil {
		return nil
	}
	return r.rolloutsThat(ctx, func(ro *v1alpha1.AddOnRollout) bool {
		if ro.Spec.Target == nil || ro.Namespace != source.Namespace || ro.Spec.Target.Source != source.Name {
			return false
		}
		open := func(m v1alpha1.CommitMark) bool { return !commitstatus.Judged(m) }
		return source.Status.Refused() || ro.Status.Phase != v1alpha1.PhaseSucceeded || slices.ContainsFunc(ro.Status.CommitStatuses, open)
	})
}

// ofNamed wakes the rollout that an order, a decision or a revision is about. A revision that was copied without its
// labels names none.
func (r *Reconciler) ofNamed(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[v1alpha1.AddOnLabel]
	switch o := obj.(type) {
	case *v1alpha1.AddOnOrder:
		name = o.Spec.Rollout
	case *v1alpha1.AddOnApproval:
		name = o.Spec.Rollout
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}

// ofProof wakes the rollouts with an approval gate: the policy that proves approvers, or its binding, changed.
func (r *Reconciler) ofProof(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.rolloutsThat(ctx, func(ro *v1alpha1.AddOnRollout) bool { return asksPeople(ro.Spec.Stages) })
}

// proofChanged passes changes of the policy that proves approvers, and of its binding.
func proofChanged() predicate.Predicate {
	named := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == admission.Name })
	return predicate.And(named, predicate.GenerationChangedPredicate{})
}

// ofAgents wakes the rollout of an add-on after the permissions of its agents changed.
func (r *Reconciler) ofAgents(ctx context.Context, addOn string) []reconcile.Request {
	return r.rollouts(ctx, client.MatchingFields{indexName: addOn})
}

// rollouts lists requests for the rollouts that match.
func (r *Reconciler) rollouts(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	return r.rolloutsThat(ctx, func(*v1alpha1.AddOnRollout) bool { return true }, opts...)
}

// rolloutsThat lists requests for the rollouts that match and satisfy keep. An error is ignored: the
// watch cache fails only while it starts, and then every rollout is queued anyway.
func (r *Reconciler) rolloutsThat(ctx context.Context, keep func(*v1alpha1.AddOnRollout) bool, opts ...client.ListOption) []reconcile.Request {
	var list v1alpha1.AddOnRolloutList
	if err := r.Client.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if keep(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// contentChanged passes a revision that was created or deleted, whose quarantine began or ended, or that lost the mark of
// its success.
func contentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
		return before[v1alpha1.QuarantinedAnnotation] != after[v1alpha1.QuarantinedAnnotation] ||
			before[v1alpha1.SucceededAtAnnotation] > after[v1alpha1.SucceededAtAnnotation]
	}}
}

// statusOfOthers passes a rollout whose status another writer changed, for example from a backup. No other event
// wakes a rollout at rest, so its wrong status would stay.
func (r *Reconciler) statusOfOthers() predicate.Predicate {
	return hubclient.Updates(func(before, after *v1alpha1.AddOnRollout) bool {
		return !equality.Semantic.DeepEqual(before.Status, after.Status) && !r.memories.own(after)
	})
}

// clusterEvents wakes every rollout when a ManagedCluster is created or deleted, or changes in a
// field that rollouts read. If only labels change, it wakes only the rollouts whose selector reads
// them: OCM changes a label of the cluster whenever the health of an add-on changes.
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

// clusterChange passes changes of a ManagedCluster in fields that rollouts read. Its heartbeat is no such field.
func clusterChange() predicate.Predicate {
	facts := func(o client.Object) string {
		c, ok := o.(*clusterv1.ManagedCluster)
		if !ok {
			return ""
		}
		is, changed := plan.Reachable(c)
		return fmt.Sprint(is, changed.Unix(), c.DeletionTimestamp != nil, c.Annotations[plan.ImageRegistriesAnnotation],
			c.Annotations[v1alpha1.HoldUntilAnnotation],
			c.Status.Version.Kubernetes, plan.InstallDisabled(c), ownLabels(c), c.Status.ClusterClaims, clusterAnnotations(c))
	}
	p := predicate.Funcs{}
	p.UpdateFunc = func(e event.UpdateEvent) bool { return facts(e.ObjectOld) != facts(e.ObjectNew) }
	return p
}

// featureLabels is the prefix of the labels in which OCM lists the add-ons of a cluster. They change with the health
// of every add-on, so such a change wakes no rollout.
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
