package forge

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// Key names the object whose status keeps a ledger.
type Key struct {
	// Kind of the object; Outcomes of the same kind get the requests.
	Kind string
	types.NamespacedName
}

// String returns kind/namespace/name.
func (k Key) String() string { return k.Kind + "/" + k.Namespace + "/" + k.Name }

// parseKey is the inverse of String. No part has a slash in it.
func parseKey(s string) (Key, bool) {
	kind, rest, ok := strings.Cut(s, "/")
	if !ok {
		return Key{}, false
	}
	namespace, name, ok := strings.Cut(rest, "/")
	return Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, ok
}

// Desk delivers the commit statuses of a process. It is safe for concurrent use.
type Desk struct {
	secrets client.Reader
	// sources reads AddOnSources from a watch cache.
	sources client.Reader
	http    *http.Client
	clock   func() time.Time
	// holder names this process in claims; no other has the name.
	holder    string
	deliverer *commitstatus.Deliverer
	// electing ends when this process is elected to lead; nil: nobody is elected.
	electing <-chan struct{}

	mu sync.Mutex
	// elected is when that was seen first.
	elected  time.Time
	queues   map[string]workqueue.TypedRateLimitingInterface[reconcile.Request]
	limiters map[string]*rate.Limiter
	// routes remembers how each ledger's forge was last addressed.
	routes map[Key]address
}

// NewDesk returns a desk that reads Secrets, by name only, with the first reader: the
// manager's API reader, so that no Secret is cached; and lists AddOnSources with the
// second, from a watch cache. A nil http client is the default one. Nothing is posted until
// Start; add the desk to the manager.
func NewDesk(secrets, sources client.Reader, httpClient *http.Client) *Desk {
	return newDesk(secrets, sources, httpClient, time.Now)
}

// newDesk lets tests tell the time.
func newDesk(secrets, sources client.Reader, httpClient *http.Client, clock func() time.Time) *Desk {
	d := &Desk{
		secrets:  secrets,
		sources:  sources,
		http:     httpClient,
		clock:    clock,
		holder:   string(uuid.NewUUID())[:8],
		queues:   map[string]workqueue.TypedRateLimitingInterface[reconcile.Request]{},
		limiters: map[string]*rate.Limiter{},
		routes:   map[Key]address{},
	}
	d.deliverer = commitstatus.NewDeliverer(commitstatus.DelivererConfig{Clock: clock, Holder: d.holder, Notify: d.notify})
	return d
}

// ElectedBy tells the desk that one process at a time leads, and when this one does:
// the channel, a manager's Elected, is closed then. Posts that a leader before it had
// claimed are taken up sooner. Call it before Start, and only with leader election.
func (d *Desk) ElectedBy(elected <-chan struct{}) { d.electing = elected }

// Start posts until the context ends. It is a manager's Runnable, and as such runs on
// the leader only; what two leaders do in the moment of a change is settled by claims in
// the ledger (commitstatus.Claim).
func (d *Desk) Start(ctx context.Context) error {
	d.claimant() // notes when it was elected
	return d.deliverer.Start(ctx)
}

// claimant is this process, as claims name it.
func (d *Desk) claimant() commitstatus.Claimant {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.electing:
		if d.elected.IsZero() {
			d.elected = d.clock()
		}
	default: // nobody is elected, or another process
	}
	return commitstatus.Claimant{Holder: d.holder, Elected: d.elected}
}

// Outcomes is the source of reconcile requests for the objects of a kind about
// whose ledgers something was learnt. One controller per kind watches it.
func (d *Desk) Outcomes(kind string) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.queues[kind] = queue
		return nil
	})
}

// notify puts the object that keeps a ledger into its controller's queue. A queue
// never blocks, which is what a Deliverer asks of it.
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

// Open returns the ledger of an object as its status stores it, with everything
// written in that this process has learnt from the forge since.
func (d *Desk) Open(key Key, stored []v1alpha1.CommitReport) *Ledger {
	reports := commitstatus.Settle(load(stored), d.deliverer.Results(key.String()))
	return &Ledger{desk: d, key: key, reports: reports}
}

// Forget drops what is remembered of a ledger whose object is gone.
func (d *Desk) Forget(key Key) {
	d.deliverer.Forget(key.String())
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.routes, key)
	d.forgetLimiters()
}
