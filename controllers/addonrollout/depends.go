package addonrollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// readDependencies returns the add-ons that the rollout depends on, and the cycle that they are in. An add-on that is
// being removed gets no content, and depends on none.
func (r *Reconciler) readDependencies(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory, bounds *render.Bounds) (all []plan.Dependency, cycle []string, err error) {
	if len(ro.Spec.DependsOn) == 0 || ro.Spec.Removal != nil {
		mem.dependencies = nil
		return nil, nil, nil
	}
	needs, err := r.needs(ctx, ro.Namespace, needsOf)
	if err != nil {
		return nil, nil, err
	}
	needs[ro.Name] = needsOf(ro)
	before := mem.dependencies
	mem.dependencies = map[string]*memory{}
	for _, d := range ro.Spec.DependsOn {
		own := before[d.AddOn]
		if own == nil {
			own = newMemory()
		}
		mem.dependencies[d.AddOn] = own
		found, err := r.readDependency(ctx, client.ObjectKeyFromObject(ro), d, own, rights{bounds: bounds})
		if err != nil {
			return nil, nil, fmt.Errorf("cannot see add-on %s, which %s depends on: %w", d.AddOn, ro.Name, err)
		}
		all = append(all, found)
	}
	return all, rollout.Cycle(ro.Name, needs), nil
}

// readDependency observes and plans the rollout of a dependency, and writes nothing. It reads that rollout without the
// cache: an old copy could show a cluster as verified although the dependency has got a new target. While charts of the
// dependency are rendered, the reconcile of the dependent rollout waits and gives up its place (Reconciles.Wait).
func (r *Reconciler) readDependency(ctx context.Context, of client.ObjectKey, d v1alpha1.Dependency, own *memory, as rights) (plan.Dependency, error) {
	ro := &v1alpha1.AddOnRollout{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: d.AddOn}, ro)
	switch {
	case apierrors.IsNotFound(err):
		return plan.AbsentDependency(d, "which does not exist in namespace "+of.Namespace), nil
	case err != nil:
		return plan.Dependency{}, err
	case ro.Spec.Removal != nil:
		return plan.AbsentDependency(d, "which is being removed"), nil
	case ro.Spec.Target == nil:
		return plan.AbsentDependency(d, "which has no content yet"), nil
	}
	if err := r.catchUp(ctx, ro, own); err != nil {
		return plan.Dependency{}, err
	}
	ro.Spec.DependsOn = nil // the clusters that wait for them are not verified either
	seen, err := r.observe(ctx, ro, own, as)
	if err != nil {
		return plan.Dependency{}, err
	}
	var found plan.Dependency
	r.Reconciles.Wait(of.String(), func() { found, own.plan, err = plan.DependencyOf(d, seen, reportedConflict(ro)) })
	return found, err
}

// readDependents reads on which clusters the dependent add-ons still are. They are removed before this one, even if
// all are removed together.
func (r *Reconciler) readDependents(ctx context.Context, ro *v1alpha1.AddOnRollout, others map[string][]*workv1.ManifestWork) (map[string][]string, error) {
	needs, err := r.needs(ctx, ro.Namespace, requiredBy)
	if err != nil {
		return nil, err
	}
	neededBy := map[string][]string{}
	for _, addOn := range rollout.Dependents(ro.Name, needs) {
		on := map[string]bool{}
		var list addonv1alpha1.ManagedClusterAddOnList
		if err := r.Client.List(ctx, &list, client.MatchingFields{indexName: addOn}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", addOn, err)
		}
		for i := range list.Items {
			on[list.Items[i].Namespace] = true
		}
		for _, works := range others {
			for _, w := range works {
				if w.Labels[addOnNameLabel] == addOn {
					on[render.AddOnNamespace(w)] = true
				}
			}
		}
		for cluster := range on {
			neededBy[cluster] = append(neededBy[cluster], addOn)
		}
	}
	return neededBy, nil
}

// needs are the add-ons that each add-on of a namespace depends on, according to its rollout.
func (r *Reconciler) needs(ctx context.Context, namespace string, of func(*v1alpha1.AddOnRollout) []string) (map[string][]string, error) {
	var list v1alpha1.AddOnRolloutList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the rollouts of namespace %s: %w", namespace, err)
	}
	needs := map[string][]string{}
	for i := range list.Items {
		needs[list.Items[i].Name] = of(&list.Items[i])
	}
	return needs, nil
}

// needsOf are the names of the add-ons that a rollout waits for. A rollout that is being removed waits for none.
func needsOf(ro *v1alpha1.AddOnRollout) []string {
	if ro.Spec.Removal != nil {
		return nil
	}
	names := make([]string, len(ro.Spec.DependsOn))
	for i, d := range ro.Spec.DependsOn {
		names[i] = d.AddOn
	}
	return names
}

// requiredBy are the names of the add-ons that the add-on of a rollout requires, even while it is being removed.
func requiredBy(ro *v1alpha1.AddOnRollout) []string {
	var names []string
	for _, d := range ro.Spec.DependsOn {
		if !d.Optional {
			names = append(names, d.AddOn)
		}
	}
	return names
}

// ofDependency wakes the rollouts that depend on a rollout, directly or through others, because a cycle begins and
// ends for all its add-ons at once. It also wakes the rollouts that this one depends on, because they are removed
// after it.
func (r *Reconciler) ofDependency(ctx context.Context, obj client.Object) []reconcile.Request {
	needs, err := r.needs(ctx, obj.GetNamespace(), needsOf)
	if err != nil {
		return nil // the cache fails only while it starts, and then every rollout is queued
	}
	dependents := map[string][]string{}
	for name, all := range needs {
		for _, needed := range all {
			dependents[needed] = append(dependents[needed], name)
		}
	}
	woken := map[string]bool{}
	var requests []reconcile.Request
	if ro, ok := obj.(*v1alpha1.AddOnRollout); ok {
		for _, name := range requiredBy(ro) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ro.Namespace, Name: name}})
		}
	}
	for queue := []string{obj.GetName()}; len(queue) > 0; queue = queue[1:] {
		for _, name := range dependents[queue[0]] {
			if !woken[name] {
				woken[name] = true
				queue = append(queue, name)
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}})
			}
		}
	}
	return requests
}

// dependencyChanged passes a rollout after its policy or the state of its clusters changed.
func dependencyChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.AddOnRollout)
		after, also := e.ObjectNew.(*v1alpha1.AddOnRollout)
		if !ok || !also {
			return false
		}
		b, a := &before.Status, &after.Status
		return before.Generation != after.Generation || b.Phase != a.Phase || (reportedConflict(before) == nil) != (reportedConflict(after) == nil) ||
			!equality.Semantic.DeepEqual(b.Target, a.Target) || !equality.Semantic.DeepEqual(b.Ledger, a.Ledger) || b.Counts != a.Counts
	}}
}
