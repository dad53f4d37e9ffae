package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// watcher sees add-ons start and finish a move.
type watcher struct {
	mu      sync.Mutex
	started map[string]bool
	open    map[string]bool
	last    time.Time
	done    chan struct{}
	failed  error
}

// watchAddOns watches until ctx ends.
func watchAddOns(ctx context.Context, c client.WithWatch) (*watcher, error) {
	events, err := c.Watch(ctx, &addonv1alpha1.ManagedClusterAddOnList{})
	if err != nil {
		return nil, fmt.Errorf("cannot watch add-ons: %w", err)
	}
	w := &watcher{done: make(chan struct{})}
	go func() {
		for e := range events.ResultChan() {
			w.see(e)
		}
	}()
	return w, nil
}

// expect forgets what was seen and waits for these clusters.
func (w *watcher) expect(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started, w.open, w.done = map[string]bool{}, map[string]bool{}, make(chan struct{})
	for _, n := range names {
		w.open[n] = true
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
		return time.Time{}, fmt.Errorf("%d clusters are not done: %w", len(w.open), ctx.Err())
	case <-done:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.failed
}

// see notes one event.
func (w *watcher) see(e watch.Event) {
	a, ok := e.Object.(*addonv1alpha1.ManagedClusterAddOn)
	if !ok {
		return
	}
	c := meta.FindStatusCondition(a.Status.Conditions, "Progressing")
	if c == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.open[a.Namespace]:
	case c.Status == metav1.ConditionTrue:
		w.started[a.Namespace] = true
	case w.started[a.Namespace] && succeeded(c.Reason):
		delete(w.open, a.Namespace)
		if len(w.open) == 0 {
			w.last = time.Now()
			close(w.done)
		}
	case w.started[a.Namespace]:
		w.failed = fmt.Errorf("cluster %s: %s: %s", a.Namespace, c.Reason, c.Message)
	}
}

// succeeded reports whether a reason of Progressing ends a move well.
func succeeded(reason string) bool {
	return slices.Contains([]string{v1alpha1.InstallSucceed, v1alpha1.UpgradeSucceed, v1alpha1.RollbackSucceed}, reason)
}
