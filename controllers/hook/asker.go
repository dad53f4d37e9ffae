package hook

import (
	"context"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	// pause is the least time between two requests to look at one source.
	pause = time.Second
	// patchTimeout bounds one write.
	patchTimeout = 15 * time.Second
)

// asker writes requests to look at sources, at most one per pause for each source. A webhook that comes sooner is
// part of the next request.
type asker struct {
	Options
	ctx  context.Context //nolint:containedctx // of the requests that wait, which outlive the webhooks that caused them
	stop context.CancelFunc

	mu sync.Mutex
	// waiting are the sources with a request that is not written yet. last is when this process last requested a look
	// at each source.
	waiting map[types.UID]bool
	last    map[types.UID]time.Time
	// open counts the requests that wait or are being written. ended is signalled after each.
	open  int
	ended *sync.Cond
}

func newAsker(options Options) *asker {
	ctx, stop := context.WithCancel(context.Background())
	a := &asker{Options: options, ctx: ctx, stop: stop, waiting: map[types.UID]bool{}, last: map[types.UID]time.Time{}}
	a.ended = sync.NewCond(&a.mu)
	return a
}

// finish waits until no request is open, because forges do not repeat a webhook that was accepted. A request that is
// not written within stopWithin is lost.
func (a *asker) finish() {
	defer a.stop()
	defer time.AfterFunc(stopWithin, a.stop).Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.open > 0 {
		a.ended.Wait()
	}
}

// ask requests a look at a source, which is as the watch cache has it, and returns at once.
func (a *asker) ask(source *v1alpha1.AddOnSource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[source.UID] {
		return
	}
	a.waiting[source.UID] = true
	a.open++
	last := a.last[source.UID]
	if at := requestedAt(source); at.After(last) {
		last = at
	}
	time.AfterFunc(max(min(pause-a.Clock().Sub(last), pause), 0), func() { a.request(source) })
}

// requestedAt returns when a look at the source was requested last; zero: never.
func requestedAt(source *v1alpha1.AddOnSource) time.Time {
	at, err := time.Parse(time.RFC3339Nano, source.Annotations[fluxmeta.ReconcileRequestAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// close counts a request that has ended.
func (a *asker) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	a.ended.Broadcast()
}

// request writes the annotation of a source that was read before. A webhook that comes later needs another request.
func (a *asker) request(read *v1alpha1.AddOnSource) {
	defer a.close()
	now, key, uid := a.Clock(), client.ObjectKeyFromObject(read), read.UID
	a.mu.Lock()
	delete(a.waiting, uid)
	for other, at := range a.last {
		if now.Sub(at) > pause {
			delete(a.last, other)
		}
	}
	a.last[uid] = now
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(a.ctx, patchTimeout)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		source := &v1alpha1.AddOnSource{}
		if err := a.Live.Get(ctx, key, source); err != nil || source.UID != uid { // another source of that name is not meant
			return err
		}
		if at := requestedAt(source); !at.Equal(requestedAt(read)) && now.Sub(at) < pause {
			// Another replica was first, and may have looked before the event.
			a.ask(source) //nolint:contextcheck // the next request has a context of its own
			return nil
		}
		patch := client.MergeFromWithOptions(source.DeepCopy(), client.MergeFromWithOptimisticLock{})
		metav1.SetMetaDataAnnotation(&source.ObjectMeta, fluxmeta.ReconcileRequestAnnotation, now.UTC().Format(time.RFC3339Nano))
		return a.Client.Patch(ctx, source, patch)
	})
	switch {
	case err == nil, apierrors.IsNotFound(err), a.ctx.Err() != nil:
	case apierrors.IsConflict(err): // other writes were faster each time
		a.ask(read)
	default:
		a.Log.Error(err, "cannot request a reconcile of the source of a webhook; the next one at its interval finds the commit", "source", key)
	}
}
