package hook

import (
	"context"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	// pause is the least time between two requests to look at one source.
	pause = time.Second
	// patchTimeout bounds one write.
	patchTimeout = 15 * time.Second
	// patchTries is how often a write that conflicts with another write is tried at once.
	patchTries = 5
	// askFor is how long a look is requested for a webhook while the hub does not accept the request.
	askFor = time.Minute
)

// asker writes requests to look at sources, at most one per pause for each source. A webhook that comes sooner is
// part of the next request.
type asker struct {
	Options
	ctx  context.Context //nolint:containedctx // of the requests that wait, which outlive the webhooks that caused them
	stop context.CancelFunc

	mu sync.Mutex
	// waiting is when the last webhook came of each source with a request that is not written yet. last is when this
	// process last requested a look at each source.
	waiting, last map[types.UID]time.Time
	// open counts the requests that wait or are being written. ended is signalled after each.
	open  int
	ended *sync.Cond
}

func newAsker(options Options) *asker {
	ctx, stop := context.WithCancel(context.Background())
	a := &asker{Options: options, ctx: ctx, stop: stop, waiting: map[types.UID]time.Time{}, last: map[types.UID]time.Time{}}
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

// ask requests a look at a source, which is as the watch cache has it, for a webhook that came at a time. It returns at
// once.
func (a *asker) ask(source *v1alpha1.AddOnSource, came time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	earlier, waits := a.waiting[source.UID]
	if !came.Before(earlier) {
		a.waiting[source.UID] = came
	}
	if waits {
		return
	}
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
	now, uid := a.Clock(), read.UID
	a.mu.Lock()
	came := a.waiting[uid]
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
	err := a.annotate(ctx, read, now, came)
	for tries := 1; apierrors.IsConflict(err) && tries < patchTries; tries++ { // another write was faster
		err = a.annotate(ctx, read, now, came)
	}
	switch {
	case err == nil, apierrors.IsNotFound(err), a.ctx.Err() != nil:
	case a.Clock().Sub(came) < askFor:
		a.ask(read, came)
	default:
		a.Log.Error(err, "cannot request a reconcile of the source of a webhook; the next one at its interval finds the commit", "source", client.ObjectKeyFromObject(read))
	}
}

// annotate writes the annotation with the time now once.
func (a *asker) annotate(ctx context.Context, read *v1alpha1.AddOnSource, now, came time.Time) error {
	source := &v1alpha1.AddOnSource{}
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(read), source); err != nil || source.UID != read.UID { // another source of that name is not meant
		return err
	}
	if at := requestedAt(source); !at.Equal(requestedAt(read)) && now.Sub(at) < pause {
		// Another replica was first, and may have looked before the event.
		a.ask(source, came) //nolint:contextcheck // the next request has a context of its own
		return nil
	}
	patch := client.MergeFromWithOptions(source.DeepCopy(), client.MergeFromWithOptimisticLock{})
	metav1.SetMetaDataAnnotation(&source.ObjectMeta, fluxmeta.ReconcileRequestAnnotation, now.UTC().Format(time.RFC3339Nano))
	return a.Client.Patch(ctx, source, patch)
}
