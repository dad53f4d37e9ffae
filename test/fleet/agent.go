package fleet

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	// retryAfter is the agent's pause after an error, its own or that of a
	// manifest that could not be applied.
	retryAfter = 500 * time.Millisecond
	// idle says that an agent has nothing to do until something changes.
	idle = time.Duration(-1)
)

// informer is the watch that all agents share.
func (f *Fleet) informer(works workclient.Interface) (cache.SharedIndexInformer, error) {
	all := works.WorkV1().ManifestWorks(metav1.NamespaceAll)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, options)
		},
	}
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer := cache.NewSharedIndexInformer(source, &workv1.ManifestWork{}, 0, indexers)
	if err := informer.SetTransform(trim); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f.enqueue,
		UpdateFunc: func(before, after any) {
			if concerns(before, after) {
				f.enqueue(after)
			}
		},
		DeleteFunc: f.enqueue,
	})
	return informer, err
}

// trim drops fields that no agent reads; with a thousand works they are most of the memory.
func trim(obj any) (any, error) {
	if work, ok := obj.(*workv1.ManifestWork); ok {
		work.ManagedFields = nil
	}
	return obj, nil
}

// concerns keeps an agent's own status writes from queueing its works.
func concerns(before, after any) bool {
	old, ok := before.(*workv1.ManifestWork)
	if !ok {
		return true
	}
	work, ok := after.(*workv1.ManifestWork)
	if !ok {
		return true
	}
	return old.UID != work.UID || old.Generation != work.Generation ||
		!old.DeletionTimestamp.Equal(work.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(old.Finalizers, work.Finalizers)
}

func (f *Fleet) enqueue(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return
	}
	f.queue.Add(key)
}

// work is one worker. The queue never gives one key to two of them.
func (f *Fleet) work(ctx context.Context) {
	for {
		key, shutdown := f.queue.Get()
		if shutdown {
			return
		}
		if again := f.act(ctx, key); again != idle {
			f.queue.AddAfter(key, again)
		}
		f.queue.Done(key)
	}
}

// act does what is due for one work and returns when to come back.
func (f *Fleet) act(ctx context.Context, key string) time.Duration {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return idle
	}
	m := f.member(namespace)
	obj, exists, err := f.works.GetStore().GetByKey(key)
	if err != nil {
		return retryAfter
	}
	work, ok := obj.(*workv1.ManifestWork)
	if !exists || !ok {
		m.forget(name)
		return idle
	}
	if work.DeletionTimestamp != nil {
		return f.finishDeletion(ctx, m, work)
	}
	if !m.answers() {
		return idle
	}
	if m.owesFinalizer(work) && !f.opts.WithoutFinalizer {
		if err := f.addFinalizer(ctx, work); err != nil {
			return onError(err)
		}
		m.paidFinalizer(work)
	}
	status, again := f.decide(m, work, time.Now())
	if status == nil {
		return again
	}
	if err := f.report(ctx, m, work, status); err != nil {
		return onError(err)
	}
	return again
}

// onError distinguishes a deleted work from an unreachable hub.
func onError(err error) time.Duration {
	if apierrors.IsNotFound(err) {
		return idle
	}
	return retryAfter
}

// answers reports whether the agent is not silent.
func (m *member) answers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.joined && !m.detached && !m.mood.silent && !m.mood.gone
}

// owesFinalizer is false once the finalizer was written, however old the watch's view is.
func (m *member) owesFinalizer(work *workv1.ManifestWork) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.duty(work).finalizer && !slices.Contains(work.Finalizers, workv1.ManifestWorkFinalizer)
}

func (m *member) paidFinalizer(work *workv1.ManifestWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.duty(work).finalizer = true
}

func (m *member) forget(work string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spoke.Delete(work)
	delete(m.duties, work)
}

// report writes a status. It is counted before the write, so that a status on the hub is always
// counted.
func (f *Fleet) report(ctx context.Context, m *member, work *workv1.ManifestWork, status *workv1.ManifestWorkStatus) error {
	m.count(1)
	if err := f.writeStatus(ctx, work, status); err != nil {
		m.count(-1)
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.duties[work.Name]; d != nil && d.uid == work.UID {
		d.status = *status
	}
	return nil
}

func (m *member) count(writes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes += writes
}

// decide advances the model and returns the status to write, nil if the hub
// has it already, and when to come back.
func (f *Fleet) decide(m *member, work *workv1.ManifestWork, now time.Time) (*workv1.ManifestWorkStatus, time.Duration) {
	latency := f.reportAfter()
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.duty(work)
	if d.generation != work.Generation {
		if d.answer != nil {
			d.older, d.answer = d.answer, nil
		}
		d.begin(work.Generation, now.Add(m.jittered(latency)))
	}
	if m.mood.outdated && d.older != nil {
		if equality.Semantic.DeepEqual(*d.older, d.status) {
			return nil, idle
		}
		return d.older.DeepCopy(), idle
	}
	if now.Before(d.due) {
		return nil, d.due.Sub(now)
	}
	t := turn{member: m, duty: d, work: work, now: now, latency: latency, opts: f.opts}
	status, again := t.take()
	d.answer = status
	if again != idle {
		d.due = now.Add(again)
	}
	if equality.Semantic.DeepEqual(*status, d.status) {
		return nil, again
	}
	return status, again
}

// reportAfter is the time before each report.
func (f *Fleet) reportAfter() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latency
}

// finishDeletion deletes a work's objects and then the agent's finalizer. If the cluster was
// removed, the hub removes the finalizer, once the ManagedCluster is deleted.
func (f *Fleet) finishDeletion(ctx context.Context, m *member, work *workv1.ManifestWork) time.Duration {
	again, deleting := m.release(work, f.reportAfter(), time.Now())
	if deleting != nil {
		if err := f.report(ctx, m, work, deleting); err != nil {
			return onError(err)
		}
	}
	if again != 0 {
		return again
	}
	if err := f.removeFinalizer(ctx, work); err != nil {
		return onError(err)
	}
	return idle
}

// release returns 0 when the finalizer may be removed, else when to come back, and the status
// to write before.
func (m *member) release(work *workv1.ManifestWork, latency time.Duration, now time.Time) (time.Duration, *workv1.ManifestWorkStatus) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.detached {
		return 0, nil
	}
	if !m.joined || m.mood.silent || m.mood.gone {
		return idle, nil
	}
	d := m.duties[work.Name]
	if d != nil && latency > 0 && !d.deleting {
		d.deleting, d.due = true, now.Add(m.jittered(latency))
		status := d.status.DeepCopy()
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: workv1.WorkDeleting, Status: metav1.ConditionTrue, Reason: "WorkDeleting",
			Message: "ManifestWork is being deleted", ObservedGeneration: work.Generation,
		})
		return d.due.Sub(now), status
	}
	if d != nil && d.deleting && now.Before(d.due) {
		return d.due.Sub(now), nil
	}
	m.spoke.Delete(work.Name)
	return 0, nil
}
