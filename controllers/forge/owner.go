package forge

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// owner returns the source that the contexts of a source belong to: of all that report
// under the same contexts to the same repository, the oldest one. Two that write one
// context would make a commit green that one of them refused. What counts is what
// they declare, so that every operator finds the same: one that is suspended has rollouts
// that go on, one that is being deleted has last verdicts to tell.
func (d *Desk) owner(ctx context.Context, source *v1alpha1.AddOnSource) (client.ObjectKey, error) {
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

// Sharing requests the other sources that report under the contexts of a source to its
// repository: who owns them is theirs to find out when it comes, changes or goes. It is
// a handler.MapFunc.
func (d *Desk) Sharing(ctx context.Context, source client.Object) []reconcile.Request {
	declared, ok := source.(*v1alpha1.AddOnSource)
	if !ok {
		return nil
	}
	others, err := d.sharing(ctx, declared)
	if err != nil {
		return nil // the watch cache is starting, and then everybody is queued
	}
	var requests []reconcile.Request
	for _, other := range others {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
	}
	return requests
}

// sharing reads, from the watch cache, the other sources that would write the contexts
// of a source. An address that cannot be used is nobody's: nothing goes there.
func (d *Desk) sharing(ctx context.Context, source *v1alpha1.AddOnSource) ([]*v1alpha1.AddOnSource, error) {
	spec := source.Spec.CommitStatus
	if spec == nil {
		return nil, nil
	}
	repository, err := commitstatus.Repository(spec.Address)
	if err != nil {
		return nil, nil //nolint:nilerr // Address says so, once there is something to tell
	}
	list := &v1alpha1.AddOnSourceList{}
	if err := d.sources.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list sources: %w", err)
	}
	var others []*v1alpha1.AddOnSource
	for i := range list.Items {
		other := &list.Items[i]
		if client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(source) || !sameContext(source, other) {
			continue
		}
		if to, err := commitstatus.Repository(other.Spec.CommitStatus.Address); err == nil && to == repository {
			others = append(others, other)
		}
	}
	return others, nil
}

// sameContext tells whether two sources report under one context; GitHub's have no case.
func sameContext(a, b *v1alpha1.AddOnSource) bool {
	if a.Spec.CommitStatus == nil || b.Spec.CommitStatus == nil {
		return false
	}
	one, other := ContextName(a), ContextName(b)
	return one == other || a.Spec.CommitStatus.Provider == commitstatus.ProviderGitHub && strings.EqualFold(one, other)
}

// older orders sources by their creation, and those of one second by namespace and name.
func older(a, b *v1alpha1.AddOnSource) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}
