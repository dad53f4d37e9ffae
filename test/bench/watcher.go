package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// watcher sees add-ons finish a move. It is an informer, because the server ends
// the watch of a reader that falls behind.
type watcher struct {
	mu sync.Mutex
	// settled is when each add-on of a cluster last finished a move.
	settled map[client.ObjectKey]time.Time
	// open are the add-ons waited for, with the move they had finished before.
	open   map[client.ObjectKey]time.Time
	last   time.Time
	done   chan struct{}
	failed error
	// written are the versions of AddOnRollouts that were stored.
	written volume
}

// volume is what was written to AddOnRollouts.
type volume struct {
	writes         int
	total, largest int64 // bytes of JSON
}

// watchAddOns watches until ctx ends; it returns after it has seen the existing add-ons.
func watchAddOns(ctx context.Context, config *rest.Config, c client.Client) (*watcher, error) {
	informers, err := cache.New(config, cache.Options{Scheme: c.Scheme(), DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, fmt.Errorf("cannot watch add-ons: %w", err)
	}
	informer, err := informers.GetInformer(ctx, &addonv1alpha1.ManagedClusterAddOn{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("cannot watch add-ons: %w", err)
	}
	w := &watcher{settled: map[client.ObjectKey]time.Time{}, done: make(chan struct{})}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    w.see,
		UpdateFunc: func(_, now any) { w.see(now) },
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch add-ons: %w", err)
	}
	rollouts, err := informers.GetInformer(ctx, &v1alpha1.AddOnRollout{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("cannot watch rollouts: %w", err)
	}
	_, err = rollouts.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: w.weigh,
		UpdateFunc: func(before, now any) {
			if version(before) != version(now) {
				w.weigh(now)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch rollouts: %w", err)
	}
	go func() { _ = informers.Start(ctx) }() // ends with ctx
	if !informers.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("cannot watch add-ons: %w", ctx.Err())
	}
	return w, nil
}

// expect waits for a move of these add-ons on these clusters that is not the one they finished last.
func (w *watcher) expect(clusters, addOns []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.done = map[client.ObjectKey]time.Time{}, make(chan struct{})
	for _, cluster := range clusters {
		for _, name := range addOns {
			key := client.ObjectKey{Namespace: cluster, Name: name}
			w.open[key] = w.settled[key]
		}
	}
}

// wait returns when the last of them was done.
func (w *watcher) wait(ctx context.Context) (time.Time, error) {
	w.mu.Lock()
	done := w.done
	w.mu.Unlock()
	select {
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		return time.Time{}, fmt.Errorf("%d add-ons of clusters are not done: %w", len(w.open), ctx.Err())
	case <-done:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.failed
}

// see notes one version of an add-on.
func (w *watcher) see(obj any) {
	a, ok := obj.(*addonv1alpha1.ManagedClusterAddOn)
	if !ok {
		return
	}
	c := meta.FindStatusCondition(a.Status.Conditions, "Progressing")
	if c == nil || c.Status != metav1.ConditionFalse {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at, key := c.LastTransitionTime.Time, client.ObjectKeyFromObject(a)
	w.settled[key] = at
	before, open := w.open[key]
	if !open || !at.After(before) {
		return
	}
	if !succeeded(c.Reason) {
		w.failed = fmt.Errorf("%s: %s: %s", key, c.Reason, c.Message)
	}
	delete(w.open, key)
	if len(w.open) == 0 {
		w.last = time.Now()
		close(w.done)
	}
}

// version of an object that an informer shows; "": it does not exist.
func version(obj any) string {
	if o, ok := obj.(client.Object); ok {
		return o.GetResourceVersion()
	}
	return ""
}

// weigh adds one stored version of an AddOnRollout.
func (w *watcher) weigh(obj any) {
	text, err := json.Marshal(obj)
	if err != nil {
		return // an object of the API can be encoded
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written.writes++
	w.written.total += int64(len(text))
	w.written.largest = max(w.written.largest, int64(len(text)))
}

// volume is what was written to AddOnRollouts so far.
func (w *watcher) volume() volume {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

// succeeded reports whether a reason of Progressing ends a move well.
func succeeded(reason string) bool {
	return slices.Contains([]string{v1alpha1.InstallSucceed, v1alpha1.UpgradeSucceed, v1alpha1.RollbackSucceed}, reason)
}
