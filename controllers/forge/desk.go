package forge

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/metrics"
	"github.com/addonflow/addonflow/dashboard"
	"github.com/addonflow/addonflow/githubapp"
)

// Key identifies the object whose status keeps marks.
type Key struct {
	// Kind of the object. The Outcomes of this kind get its requests.
	Kind string
	types.NamespacedName
}

// String returns kind/namespace/name.
func (k Key) String() string { return k.Kind + "/" + k.Namespace + "/" + k.Name }

// parseKey is the inverse of String. No part contains a slash.
func parseKey(s string) (Key, bool) {
	kind, rest, ok := strings.Cut(s, "/")
	if !ok {
		return Key{}, false
	}
	namespace, name, ok := strings.Cut(rest, "/")
	return Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, ok
}

// Options of a Desk.
type Options struct {
	// Secrets reads Secrets by name. It is the manager's API reader, so that no Secret is cached.
	Secrets client.Reader
	// Sources reads AddOnSources from a watch cache.
	Sources client.Reader
	// HTTP is the client of the forges; nil: the default one.
	HTTP *http.Client
	// Tokens of GitHub Apps, shared with other requesters; nil: the desk has its own.
	Tokens *githubapp.Tokens
	// Now is the clock.
	Now func() time.Time
	// Pages is the address of the pages. If a source has no target URL, its statuses link to the page of the rollout
	// or source; "": no link.
	Pages string
	// Separate: only contexts that are OfNamespace are posted, so that no source can own a context of another
	// namespace.
	Separate bool
	// RequireTLS: no token is sent over http.
	RequireTLS bool
}

// Desk delivers the commit statuses of a process. It is safe for concurrent use.
type Desk struct {
	options   Options
	deliverer *commitstatus.Deliverer
	posts     *metrics.Forges

	mu       sync.Mutex
	queues   map[string]workqueue.TypedRateLimitingInterface[reconcile.Request]
	limiters map[string]*rate.Limiter
	// routes has the last address of the forge of each source.
	routes map[client.ObjectKey]address
	// requests has the user's last request about each object.
	requests map[Key]string
	// refusals are by purpose, besides commit statuses. See Use.
	refusals map[Key]map[string]refusal
}

// NewDesk returns a desk. Nothing is posted until Start; add the desk to the manager.
func NewDesk(o Options) *Desk {
	if o.Tokens == nil {
		o.Tokens = githubapp.New(o.Now)
	}
	o.Pages = strings.TrimSuffix(o.Pages, "/")
	d := &Desk{
		options:  o,
		posts:    metrics.NewForges(),
		queues:   map[string]workqueue.TypedRateLimitingInterface[reconcile.Request]{},
		limiters: map[string]*rate.Limiter{},
		routes:   map[client.ObjectKey]address{},
		requests: map[Key]string{},
		refusals: map[Key]map[string]refusal{},
	}
	d.deliverer = commitstatus.NewDeliverer(commitstatus.DelivererConfig{Clock: o.Now, Notify: d.notify, Link: d.link})
	return d
}

// Collector has the metrics of the desk.
func (d *Desk) Collector() prometheus.Collector { return d.posts }

// link is the page to which a status of an object links. If a forge would refuse the address, it is cut to the
// address of all pages.
func (d *Desk) link(s, sha string) string {
	key, ok := parseKey(s)
	if d.options.Pages == "" || !ok {
		return ""
	}
	page := dashboard.SourcePath(key.Namespace, key.Name, sha)
	if key.Kind == v1alpha1.AddOnRolloutKind {
		page = dashboard.RolloutPath(key.Namespace, key.Name, sha)
	}
	if at := d.options.Pages + "/" + page; len(at) <= commitstatus.TargetURLLimit {
		return at
	}
	return d.options.Pages + "/"
}

// lookAtSecrets is the time between two reads of the Secret of a forge that refuses the operator.
const lookAtSecrets = 5 * time.Second

// Start posts until the context ends. It is a manager's Runnable, and as such runs on the
// leader only.
func (d *Desk) Start(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(lookAtSecrets)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				d.lookAtRefused(ctx)
			}
		}
	})
	d.deliverer.Run(ctx)
	watching.Wait()
	return nil
}

// lookAtRefused connects the sources again whose forge refuses the operator, if their Secret has changed. Refused
// statuses are then due again.
func (d *Desk) lookAtRefused(ctx context.Context) {
	d.mu.Lock()
	var refused []client.ObjectKey
	for key := range d.routes {
		refused = append(refused, key)
	}
	d.mu.Unlock()
	for _, key := range refused {
		if !d.deliverer.Refused(key.String()) {
			continue
		}
		source := &v1alpha1.AddOnSource{}
		if d.options.Sources.Get(ctx, key, source) != nil || source.Spec.CommitStatus == nil {
			continue
		}
		_ = d.connect(ctx, source) // the condition reports the problem of the Secret
	}
}

// Outcomes is the source of reconcile requests for the objects of a kind with new results. One
// controller per kind watches it.
func (d *Desk) Outcomes(kind string) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.queues[kind] = queue
		return nil
	})
}

// storeRequest stores the user's last request about an object, and reports whether it is new.
func (d *Desk) storeRequest(key Key, request string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if request == "" || d.requests[key] == request {
		return false
	}
	d.requests[key] = request
	return true
}

// notify queues the object that keeps the marks. The queue never blocks, because a Deliverer must not be blocked.
func (d *Desk) notify(s string) {
	key, ok := parseKey(s)
	if !ok {
		return
	}
	d.mu.Lock()
	queue := d.queues[key.Kind]
	d.mu.Unlock()
	if queue != nil {
		queue.Add(reconcile.Request{NamespacedName: key.NamespacedName})
	}
}

// Forget drops everything about a deleted object.
func (d *Desk) Forget(key Key) {
	d.deliverer.Forget(key.String())
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.requests, key)
	delete(d.refusals, key)
	if key.Kind != v1alpha1.AddOnSourceKind {
		return
	}
	d.deliverer.Disconnect(key.NamespacedName.String())
	delete(d.routes, key.NamespacedName)
	d.forgetLimiters()
}
