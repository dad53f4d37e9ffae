package agents

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/addonflow/addonflow/registration"
)

// queue is a controller's, as a source gets it.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Key names an add-on on a cluster.
type Key struct{ Cluster, AddOn string }

// String returns cluster/add-on.
func (k Key) String() string { return k.Cluster + "/" + k.AddOn }

// Book knows which credentials and permissions each cluster's agent requests. It is safe for
// concurrent use.
type Book struct {
	mu      sync.RWMutex
	entries map[Key]*entry
	// declared and decided are called with an agent that changed.
	declared, decided []func(Key)
}

type entry struct {
	asked   []addonv1alpha1.RegistrationSpec
	outcome registration.Outcome
}

// NewBook returns an empty book.
func NewBook() *Book { return &Book{entries: map[Key]*entry{}} }

// Declare records what the template of a revision requests. The revision is the one that the cluster has or is to
// have. Call Declare before writing anything that makes the agent send the request. It returns the state of the
// agent's permissions.
func (b *Book) Declare(key Key, asked []addonv1alpha1.RegistrationSpec) registration.Outcome {
	b.mu.Lock()
	e := b.entries[key]
	if e != nil && equality.Semantic.DeepEqual(e.asked, asked) {
		defer b.mu.Unlock()
		return e.outcome
	}
	e = &entry{asked: asked}
	if len(registration.Permissions(asked)) == 0 {
		e.outcome.State = registration.Applied
	}
	b.entries[key] = e
	outcome, listeners := e.outcome, b.declared
	b.mu.Unlock()
	for _, notify := range listeners {
		notify(key)
	}
	return outcome
}

// Assume is Declare for an agent that is not declared yet; it changes no existing declaration.
func (b *Book) Assume(key Key, asked []addonv1alpha1.RegistrationSpec) {
	if _, known := b.asked(key); !known {
		b.Declare(key, asked)
	}
}

// Outcome returns the state of an agent's permissions; Pending for an agent that is not
// declared.
func (b *Book) Outcome(key Key) registration.Outcome {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if e := b.entries[key]; e != nil {
		return e.outcome
	}
	return registration.Outcome{}
}

// Outcomes is the source of reconcile requests for agents with new outcomes; requests returns the requests for one
// add-on.
func (b *Book) Outcomes(requests func(ctx context.Context, addOn string) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.decided = append(b.decided, func(key Key) { enqueue(q, requests(ctx, key.AddOn)) })
		return nil
	})
}

// declarations is the source of requests about agents with a new declaration.
func (b *Book) declarations(requests func(context.Context, Key) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.declared = append(b.declared, func(key Key) { enqueue(q, requests(ctx, key)) })
		return nil
	})
}

func enqueue(q queue, requests []reconcile.Request) {
	for _, request := range requests {
		q.Add(request)
	}
}

// decide records outcomes of one add-on's agents, and notifies once if any is new.
func (b *Book) decide(addOn string, outcomes map[string]registration.Outcome) {
	b.mu.Lock()
	changed := false
	for cluster, outcome := range outcomes {
		if e := b.entries[Key{cluster, addOn}]; e != nil && e.outcome != outcome {
			e.outcome, changed = outcome, true
		}
	}
	listeners := b.decided
	b.mu.Unlock()
	if changed {
		for _, notify := range listeners {
			notify(Key{AddOn: addOn})
		}
	}
}

// forget drops an agent whose add-on was removed from its cluster.
func (b *Book) forget(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, key)
}

// asked returns what an agent requests, and whether that is known.
func (b *Book) asked(key Key) ([]addonv1alpha1.RegistrationSpec, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if e := b.entries[key]; e != nil {
		return e.asked, true
	}
	return nil, false
}

// asking lists the add-ons with an agent that requests a role: a Role in a namespace, or a
// ClusterRole, for which namespace is "".
func (b *Book) asking(namespace, name string) []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	found := map[string]bool{}
	for key, e := range b.entries {
		found[key.AddOn] = found[key.AddOn] || slices.ContainsFunc(registration.Permissions(e.asked), func(p registration.Permission) bool {
			return p.Role.Name == name && (namespace == "" || p.Role.Namespace == namespace)
		})
	}
	maps.DeleteFunc(found, func(_ string, asks bool) bool { return !asks })
	return slices.Sorted(maps.Keys(found))
}
