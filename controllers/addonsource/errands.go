package addonsource

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/gitsource"
)

// errandsAtOnce is how many conversations with servers run at once.
const errandsAtOnce = 128

// errAway ends a pass that needs an answer of the Git server. An errand fetches the answer and
// then queues the source again.
var errAway = errors.New("waiting for the Git server")

// errandKey identifies the request of an errand. A result for another key is discarded: the source has changed
// meanwhile, another process has moved the hub to another revision, or the user has requested a new look.
type errandKey struct {
	generation int64
	// attempted is the revision of the hub at that time.
	attempted string
	// requestedAt is the user's request that the errand answers; "": there is none.
	requestedAt string
	// content is the revision whose objects are fetched. If it is zero, the errand resolves the reference.
	content gitsource.Revision
}

// fetchResult is the result of an errand, or its error.
type fetchResult struct {
	head            gitsource.Revision
	author, subject string
	objects         []gitsource.Object
	unread          problem.List
	err             error
}

// errand is one conversation with a Git server for one source.
type errand struct {
	key errandKey
	// host is the server, with its port.
	host string
	// doubtful: the last conversation of the source failed.
	doubtful bool
	// sent is when the errand began to wait for a place.
	sent   time.Time
	run    func(context.Context) fetchResult
	cancel context.CancelFunc
	// done is closed when result can be read.
	done   chan struct{}
	result fetchResult
}

// errands has the errands of all sources, at most one per source. No reconcile waits for an errand. They are not
// stored: after a restart they are sent again.
type errands struct {
	mu sync.Mutex
	of map[types.NamespacedName]*errand
	// waiting for a place, the oldest first.
	waiting []waitingErrand
	running map[group]int
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

type waitingErrand struct {
	ctx    context.Context //nolint:containedctx // of the errand that waits
	source types.NamespacedName
	errand *errand
}

// group is a set of errands with a common namespace, a common host, or both. The zero value is the set of all
// errands. doubtful: only errands of sources whose last conversation failed are in the set.
type group struct {
	namespace, host string
	doubtful        bool
}

// groups returns the groups to which an errand belongs.
func (w waitingErrand) groups() []group {
	namespace, host := w.source.Namespace, w.errand.host
	all := []group{{}, {namespace: namespace}, {host: host}, {namespace: namespace, host: host}}
	if w.errand.doubtful {
		all = append(all, group{namespace: namespace, host: host, doubtful: true})
	}
	return all
}

// fits reports whether there is a place for an errand. A running errand counts once for each group that it shares
// with this one. So the more places a namespace or host takes, the more free places its next errand needs. An
// errand whose namespace and host have no running errand needs only one free place.
func (e *errands) fits(w waitingErrand) bool {
	taken := 0
	for _, g := range w.groups() {
		taken += e.running[g]
	}
	return taken < errandsAtOnce
}

func newErrands() *errands {
	return &errands{of: map[types.NamespacedName]*errand{}, running: map[group]int{}}
}

// take returns the result for a key, once.
func (e *errands) take(source types.NamespacedName, key errandKey) (fetchResult, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	sent := e.of[source]
	if sent == nil || sent.key != key || !sent.ended() {
		return fetchResult{}, false
	}
	delete(e.of, source)
	return sent.result, true
}

// awaits reports whether an errand for a key is running or has ended.
func (e *errands) awaits(source types.NamespacedName, key errandKey) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[source] != nil && e.of[source].key == key
}

// waitsSince returns since when the errand of a source waits for a place; false if it does not.
func (e *errands) waitsSince(source types.NamespacedName) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := slices.IndexFunc(e.waiting, func(w waitingErrand) bool { return w.source == source })
	if at < 0 {
		return time.Time{}, false
	}
	return e.waiting[at].errand.sent, true
}

// send starts an errand and stops any other errand of the source.
func (e *errands) send(ctx context.Context, source types.NamespacedName, next *errand) {
	// The errand outlives the pass but uses its logger.
	ctx, next.cancel = context.WithCancel(context.WithoutCancel(ctx))
	next.done = make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(source)
	e.of[source] = next
	e.waiting = append(e.waiting, waitingErrand{ctx, source, next})
	e.startWaiting()
}

// stop ends the errand of a source, if there is one.
func (e *errands) stop(source types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(source)
}

// drop is stop for callers that hold the lock.
func (e *errands) drop(source types.NamespacedName) {
	if sent := e.of[source]; sent != nil {
		sent.cancel()
		delete(e.of, source)
		e.waiting = slices.DeleteFunc(e.waiting, func(w waitingErrand) bool { return w.errand == sent })
	}
}

// startWaiting starts every errand for which there is a place.
func (e *errands) startWaiting() {
	e.waiting = slices.DeleteFunc(e.waiting, func(w waitingErrand) bool {
		if !e.fits(w) {
			return false
		}
		for _, g := range w.groups() {
			e.running[g]++
		}
		go e.work(w)
		return true
	})
}

// work runs an errand to its end and queues its source.
func (e *errands) work(w waitingErrand) {
	result := w.errand.safely(w.ctx)
	w.errand.cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	w.errand.result = result
	close(w.errand.done)
	for _, g := range w.groups() {
		if e.running[g]--; e.running[g] == 0 {
			delete(e.running, g)
		}
	}
	e.startWaiting()
	if e.of[w.source] == w.errand && e.queue != nil {
		e.queue.Add(reconcile.Request{NamespacedName: w.source})
	}
}

// safely runs the errand. A panic fails only one source, as in a reconcile.
func (e *errand) safely(ctx context.Context) (result fetchResult) {
	defer func() {
		if r := recover(); r != nil {
			ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v", r), "Cannot read the repository", "stack", string(debug.Stack()))
			result = fetchResult{err: errors.New("cannot read the repository: internal error; the log of the operator has it")}
		}
	}()
	return e.run(ctx)
}

func (e *errand) ended() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// ends is the source of reconcile requests for sources whose errand has ended.
func (e *errands) ends() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.queue = queue
		context.AfterFunc(ctx, e.stopAll)
		return nil
	})
}

func (e *errands) wake(source types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue != nil {
		e.queue.Add(reconcile.Request{NamespacedName: source})
	}
}

func (e *errands) stopAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for source := range e.of {
		e.drop(source)
	}
}
