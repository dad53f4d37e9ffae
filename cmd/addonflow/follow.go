package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// errSeenEnough ends a follower from its callback without an error.
var errSeenEnough = errors.New("seen enough")

// change is an object that was created, changed or deleted.
type change struct {
	kind   watch.EventType
	object client.Object
}

// follower lists objects and then reports every change, even after lost connections, until its callback stops it or
// the context ends.
type follower struct {
	hub     client.WithWatch
	list    client.ObjectList
	options []client.ListOption
	// see gets the first list as one batch, and later each change.
	see func([]change) error
	// known are the objects that were reported last. After an interruption, only objects that differ from them are
	// reported.
	known map[types.NamespacedName]client.Object
}

// run follows the objects. The error is that of the callback, of the hub, or the context's.
func (f *follower) run(ctx context.Context) error {
	f.known = map[types.NamespacedName]client.Object{}
	return f.follow(ctx)
}

// runFrom follows an object that was just read. It reports the object first, because the object may be deleted before
// the first list.
func (f *follower) runFrom(ctx context.Context, first client.Object) error {
	f.known = map[types.NamespacedName]client.Object{client.ObjectKeyFromObject(first): first}
	if err := f.see([]change{{watch.Modified, first}}); err != nil {
		return ended(err)
	}
	return f.follow(ctx)
}

func (f *follower) follow(ctx context.Context) error {
	version, err := f.relist(ctx)
	for err == nil {
		if err = f.watch(ctx, version); err == nil {
			version, err = f.reconnect(ctx)
		}
	}
	return ended(err)
}

// ended returns the error with which a follower ended; nil: its callback stopped it.
func ended(err error) error {
	if errors.Is(err, errSeenEnough) {
		return nil
	}
	return err
}

// reconnect lists again. It retries for long, because an API server may be restarting.
func (f *follower) reconnect(ctx context.Context) (version string, err error) {
	patience := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 8, Cap: 5 * time.Second}
	var last error
	err = wait.ExponentialBackoffWithContext(ctx, patience, func(ctx context.Context) (bool, error) {
		version, last = f.relist(ctx)
		if errors.Is(last, errSeenEnough) {
			return false, last
		}
		return last == nil, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		err = last
	}
	return version, err
}

// relist reports every object that differs from the known one.
func (f *follower) relist(ctx context.Context) (version string, err error) {
	list, ok := f.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return "", fmt.Errorf("cannot list into a %T", f.list)
	}
	if err := f.hub.List(ctx, list, f.options...); err != nil {
		return "", err
	}
	changes, err := f.compare(list)
	if err != nil {
		return "", err
	}
	return list.GetResourceVersion(), f.see(changes)
}

func (f *follower) compare(list client.ObjectList) ([]change, error) {
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("cannot read a list: %w", err)
	}
	var changes []change
	present := map[types.NamespacedName]client.Object{}
	for _, item := range items {
		object, ok := item.(client.Object)
		if !ok {
			return nil, fmt.Errorf("cannot read a list of %T", item)
		}
		key := client.ObjectKeyFromObject(object)
		present[key] = object
		if before, ok := f.known[key]; !ok || before.GetResourceVersion() != object.GetResourceVersion() {
			changes = append(changes, change{watch.Modified, object})
		}
	}
	for key, object := range f.known {
		if _, ok := present[key]; !ok {
			changes = append(changes, change{watch.Deleted, object})
		}
	}
	f.known = present
	return changes, nil
}

// watch reports changes until the connection ends. That end is not an error.
func (f *follower) watch(ctx context.Context, version string) error {
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}
	events, err := f.hub.Watch(ctx, f.list, slices.Concat(f.options, []client.ListOption{from})...)
	switch {
	case apierrors.IsResourceExpired(err):
		return nil
	case err != nil:
		return err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, ok := <-events.ResultChan():
			object, isObject := event.Object.(client.Object)
			if !ok || event.Type == watch.Error || !isObject {
				return nil
			}
			if err := f.print(event.Type, object); err != nil {
				return err
			}
		}
	}
}

func (f *follower) print(kind watch.EventType, object client.Object) error {
	key := client.ObjectKeyFromObject(object)
	f.known[key] = object
	if kind == watch.Deleted {
		delete(f.known, key)
	}
	if kind == watch.Bookmark {
		return nil
	}
	return f.see([]change{{kind, object}})
}

// followRollout reports one rollout and each of its changes; nil: it was deleted. It is an error
// if the rollout does not exist at the start.
func followRollout(ctx context.Context, hub client.WithWatch, key types.NamespacedName, see func(*v1alpha1.AddOnRollout) error) error {
	var first v1alpha1.AddOnRollout
	if err := hub.Get(ctx, key, &first); err != nil {
		return err
	}
	f := follower{
		hub:     hub,
		list:    &v1alpha1.AddOnRolloutList{},
		options: []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}},
		see: func(changes []change) error {
			for _, ch := range changes {
				r, ok := ch.object.(*v1alpha1.AddOnRollout)
				switch {
				case !ok || r.Name != key.Name:
					continue
				case ch.kind == watch.Deleted:
					return see(nil)
				}
				if err := see(r); err != nil {
					return err
				}
			}
			return nil
		},
	}
	return f.runFrom(ctx, &first)
}
