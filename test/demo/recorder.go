package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// Change is a version of a work of the add-on. Changes come in the order in which the hub
// stored them, over all clusters.
type Change struct {
	// Cluster and Name of the work.
	Cluster, Name string
	// Generation of its spec; it grows when the wanted content changes.
	Generation int64
	// Revision is the digest of the AddOnRevision it was rendered from.
	Revision string
	// Verified: the cluster's feedback proves that it runs the work's content.
	Verified bool
}

// Recorder keeps every change of every work and of the rollout.
type Recorder struct {
	mu       sync.Mutex
	works    []Change
	statuses []v1alpha1.AddOnRolloutStatus
	failure  error
	changed  chan struct{} // closed, and replaced, at every event
}

// Mark is a moment in a recording.
type Mark struct{ works, statuses int }

// Record records the current state and all changes, until ctx ends. A watch that the hub
// closes, as it does with a slow reader, continues where it ended; if the hub no longer has the
// changes since then, every later question is an error.
func Record(ctx context.Context, hub client.WithWatch) (*Recorder, error) {
	r := &Recorder{changed: make(chan struct{})}
	addOn := client.MatchingLabels{"open-cluster-management.io/addon-name": AddOn}
	if err := r.watch(ctx, watcher{hub, &workv1.ManifestWorkList{}, addOn}); err != nil {
		return nil, err
	}
	if err := r.watch(ctx, watcher{hub, &v1alpha1.AddOnRolloutList{}, client.InNamespace(Namespace)}); err != nil {
		return nil, err
	}
	return r, nil
}

// watcher opens watches on one kind.
type watcher struct {
	hub    client.WithWatch
	list   client.ObjectList
	option client.ListOption
}

// WatchWithContext is client-go's interface of what a RetryWatcher opens again.
func (w watcher) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return w.hub.Watch(ctx, w.list, w.option, &client.ListOptions{Raw: &o})
}

// watch notes the current state, and in the background all changes.
func (r *Recorder) watch(ctx context.Context, w watcher) error {
	if err := w.hub.List(ctx, w.list, w.option); err != nil {
		return fmt.Errorf("cannot record: %w", err)
	}
	items, err := apimeta.ExtractList(w.list)
	if err != nil {
		return fmt.Errorf("cannot record: %w", err)
	}
	for _, item := range items {
		r.note(item)
	}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, w.list.GetResourceVersion(), w)
	if err != nil {
		return fmt.Errorf("cannot record: %w", err)
	}
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			r.note(event.Object)
		}
		if ctx.Err() == nil {
			r.fail(errors.New("the recording has a gap: the hub has forgotten what came next"))
		}
	}()
	return nil
}

// note keeps the state of one object.
func (r *Recorder) note(object runtime.Object) {
	switch o := object.(type) {
	case *workv1.ManifestWork:
		seen := render.Prober{}.Observe(render.Report{AddOn: AddOn, Works: []*workv1.ManifestWork{o}})
		r.mu.Lock()
		defer r.mu.Unlock()
		r.works = append(r.works, Change{
			Cluster: o.Namespace, Name: o.Name, Generation: o.Generation,
			Revision: o.Annotations[v1alpha1.RevisionAnnotation], Verified: seen.Verified,
		})
	case *v1alpha1.AddOnRollout:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.statuses = append(r.statuses, o.Status)
	default:
		return
	}
	r.wake()
}

// wake notifies all waiting calls. The lock is held.
func (r *Recorder) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = errors.Join(r.failure, err)
	r.wake()
}

// Mark returns the current moment.
func (r *Recorder) Mark() Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Mark{len(r.works), len(r.statuses)}
}

// Recording is what was recorded from a mark on.
type Recording struct {
	Works    []Change
	Statuses []v1alpha1.AddOnRolloutStatus
}

// Latest is the newest change of every work, by cluster and name.
func (r Recording) Latest() map[string]Change {
	latest := map[string]Change{}
	for _, c := range r.Works {
		latest[c.Cluster+"/"+c.Name] = c
	}
	return latest
}

// Await returns the recording since a mark as soon as complete accepts it. The error is the
// context's or the recorder's own.
func (r *Recorder) Await(ctx context.Context, m Mark, complete func(Recording) bool) (Recording, error) {
	for {
		r.mu.Lock()
		recording := Recording{slices.Clone(r.works[m.works:]), slices.Clone(r.statuses[m.statuses:])}
		failure, changed := r.failure, r.changed
		r.mu.Unlock()
		if failure != nil || complete(recording) {
			return recording, failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return recording, fmt.Errorf("cannot see the expected works: %w", context.Cause(ctx))
		}
	}
}
