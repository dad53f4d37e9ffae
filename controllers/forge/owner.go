package forge

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// owner returns the source that owns the contexts of a source: the oldest of all sources that report under the same
// contexts to the same repository. If two sources wrote one context, one could make a commit green that the other
// refused. The result depends on declarations only, so that every operator gets the same one. A suspended source
// counts, because it still has rollouts. A source that is being deleted counts, because it still has verdicts to
// post.
func (d *Desk) owner(ctx context.Context, source *v1alpha1.AddOnSource) (client.ObjectKey, error) {
	if d.options.Separate && !OfNamespace(source) {
		return client.ObjectKey{}, fmt.Errorf("spec.commitStatus.context must begin with %s", NamespacePrefix(source))
	}
	others, err := d.sharing(ctx, source)
	if err != nil {
		return client.ObjectKey{}, err
	}
	oldest := source
	for _, other := range others {
		if older(other, oldest) {
			oldest = other
		}
	}
	return client.ObjectKeyFromObject(oldest), nil
}

// Owns reports whether a source owns its contexts. Then the marks of its commits are kept.
func (d *Desk) Owns(ctx context.Context, source *v1alpha1.AddOnSource) bool {
	owner, err := d.owner(ctx, source)
	return err == nil && owner == client.ObjectKeyFromObject(source)
}

// Sharing returns requests for the other sources that report under the contexts of a source to its repository,
// because an event of the source may change the owner. It is a handler.MapFunc.
func (d *Desk) Sharing(ctx context.Context, source client.Object) []reconcile.Request {
	declared, ok := source.(*v1alpha1.AddOnSource)
	if !ok {
		return nil
	}
	others, err := d.sharing(ctx, declared)
	if err != nil {
		return nil // the watch cache is starting, and then every source is queued
	}
	var requests []reconcile.Request
	for _, other := range others {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
	}
	return requests
}

// sharing reads, from the watch cache, the other sources that would write the contexts of a source. If the address
// cannot be used, there are none, because nothing is posted there.
func (d *Desk) sharing(ctx context.Context, source *v1alpha1.AddOnSource) ([]*v1alpha1.AddOnSource, error) {
	spec := source.Spec.CommitStatus
	if spec == nil {
		return nil, nil
	}
	repository, err := commitstatus.Repository(spec.Provider, spec.Address)
	if err != nil {
		return nil, nil //nolint:nilerr // Address reports it when there is a status to post
	}
	list := &v1alpha1.AddOnSourceList{}
	if err := d.options.Sources.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list sources: %w", err)
	}
	var others []*v1alpha1.AddOnSource
	for i := range list.Items {
		other := &list.Items[i]
		if client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(source) || !shareContexts(source, other) || d.options.Separate && !OfNamespace(other) {
			continue
		}
		if to, err := commitstatus.Repository(other.Spec.CommitStatus.Provider, other.Spec.CommitStatus.Address); err == nil && to == repository {
			others = append(others, other)
		}
	}
	return others, nil
}

// shareContexts reports whether two sources would write one context.
func shareContexts(a, b *v1alpha1.AddOnSource) bool {
	if a.Spec.CommitStatus == nil || b.Spec.CommitStatus == nil {
		return false
	}
	for _, one := range contextsOf(a) {
		for _, other := range contextsOf(b) {
			if commitstatus.ShareContexts(a.Spec.CommitStatus.Provider, one, other) {
				return true
			}
		}
	}
	return false
}

// contextsOf are the contexts at or below which a source reports.
func contextsOf(source *v1alpha1.AddOnSource) []string {
	contexts := []string{ContextName(source)}
	if plans := source.Spec.PullRequests; plans != nil && plans.Enabled {
		contexts = append(contexts, PlanContextName(source))
	}
	return contexts
}

// older orders sources by creation time, and within a second by namespace and name.
func older(a, b *v1alpha1.AddOnSource) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}
