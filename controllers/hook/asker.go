package hook

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	// pause is the least time between two requests to look at one source.
	pause = time.Second
	// patchTimeout bounds one write.
	patchTimeout = 15 * time.Second
)

// asker writes requests to look at sources, at most one a pause for each. A webhook that comes sooner is part of the
// next request.
type asker struct {
	Options
	ctx  context.Context //nolint:containedctx // of the requests that wait, which outlive the webhooks that caused them
	stop context.CancelFunc

	mu sync.Mutex
	// waiting are the sources that a request waits for, and last is when this process requested a look at each.
	waiting map[types.UID]bool
	last    map[types.UID]time.Time
}

func newAsker(options Options) *asker {
	ctx, stop := context.WithCancel(context.Background())
	return &asker{Options: options, ctx: ctx, stop: stop, waiting: map[types.UID]bool{}, last: map[types.UID]time.Time{}}
}

// ask requests a look at a source, which is as the watch cache has it, and returns at once.
func (a *asker) ask(source *v1alpha1.AddOnSource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting[source.UID] {
		return
	}
	a.waiting[source.UID] = true
	after := pause - a.Clock().Sub(a.lastRequest(source))
	key, uid := client.ObjectKeyFromObject(source), source.UID
	time.AfterFunc(max(min(after, pause), 0), func() { a.request(key, uid) })
}

// lastRequest returns when a look at the source was requested last, by this process or by another one.
func (a *asker) lastRequest(source *v1alpha1.AddOnSource) time.Time {
	last := a.last[source.UID]
	if at, err := time.Parse(time.RFC3339Nano, source.Annotations[fluxmeta.ReconcileRequestAnnotation]); err == nil && at.After(last) {
		return at
	}
	return last
}

// request writes the annotation. From here on a webhook needs another request.
func (a *asker) request(key client.ObjectKey, uid types.UID) {
	now := a.Clock()
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
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         uid, // another source of that name is not meant
		"annotations": map[string]string{fluxmeta.ReconcileRequestAnnotation: now.UTC().Format(time.RFC3339Nano)},
	}})
	if err == nil {
		source := &v1alpha1.AddOnSource{}
		source.Namespace, source.Name = key.Namespace, key.Name
		err = a.Client.Patch(ctx, source, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && a.ctx.Err() == nil {
		a.Log.Error(err, "cannot request a reconcile of the source of a webhook; the next one at its interval finds the commit", "source", key)
	}
}
