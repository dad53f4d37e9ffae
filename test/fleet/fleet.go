package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/fleet/spoke"
)

// AllClusters means all clusters where a method takes a cluster's name.
const AllClusters = ""

// Options are the fleet's constants. The zero value answers at once.
type Options struct {
	// Seed varies jitter. The same seed jitters the same way.
	Seed uint64
	// Latency is the time before each report, give or take a fifth. Zero:
	// each change is answered at once, with its final state, in one write.
	Latency time.Duration
	// ImageStarts decides whether pods of an image become ready. Nil:
	// spoke.DefaultImageStarts, false for tag "bad", a trailing "-bad" and
	// "never-starts".
	ImageStarts func(image string) bool
	// DeadlineAfter is how long a stuck Deployment takes to report ProgressDeadlineExceeded.
	// Zero: with the next report, or in the same if there is no latency.
	DeadlineAfter time.Duration
	// FlapEvery is the time between two reports of a flapping agent. Zero: a
	// quarter of a second.
	FlapEvery time.Duration
	// Nodes is how many pods a DaemonSet wants per cluster. Zero: 3.
	Nodes int
	// Workers is how many status writes are under way at once. Zero: 16.
	Workers int
	// Namespaces exist on every managed cluster, besides those of Kubernetes
	// and of the klusterlet. A work into another one fails, as in reality.
	Namespaces []string
	// WithoutFinalizer keeps agents from putting their finalizer on works,
	// which saves a write per work.
	WithoutFinalizer bool
}

// Fleet is a set of simulated clusters on one hub. Its methods are safe for
// concurrent use, before, during and after Run.
type Fleet struct {
	opts     Options
	world    *spoke.World
	http     *http.Client
	hub      client.Client
	metadata metadata.Interface
	works    cache.SharedIndexInformer
	queue    workqueue.TypedDelayingInterface[string]
	synced   chan struct{}
	done     chan struct{}

	mu         sync.Mutex
	latency    time.Duration
	members    map[string]*member
	placements map[types.NamespacedName]Placement
}

// New returns a fleet without clusters. Nothing is read or written before the
// first call of another method.
func New(cfg *rest.Config, opts Options) (*Fleet, error) {
	f := &Fleet{
		opts:       withDefaults(opts),
		synced:     make(chan struct{}),
		done:       make(chan struct{}),
		latency:    opts.Latency,
		members:    map[string]*member{},
		placements: map[types.NamespacedName]Placement{},
		queue:      workqueue.NewTypedDelayingQueue[string](),
	}
	f.world = spoke.NewWorld(spoke.Options{ImageStarts: opts.ImageStarts, Nodes: opts.Nodes, Namespaces: opts.Namespaces})
	if err := f.connect(cfg); err != nil {
		return nil, fmt.Errorf("cannot reach the hub: %w", err)
	}
	return f, nil
}

func withDefaults(opts Options) Options {
	if opts.Workers == 0 {
		opts.Workers = 16
	}
	if opts.FlapEvery == 0 {
		opts.FlapEvery = 250 * time.Millisecond
	}
	return opts
}

// connect creates the clients. All share one connection pool, so that no connection is left
// open after Run.
func (f *Fleet) connect(cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.UserAgent = "simulated-fleet"
	var err error
	if f.http, err = rest.HTTPClientFor(cfg); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.Install, clusterv1beta1.Install} {
		utilruntime.Must(add(scheme))
	}
	if f.hub, err = client.New(cfg, client.Options{HTTPClient: f.http, Scheme: scheme}); err != nil {
		return err
	}
	if f.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(cfg), f.http); err != nil {
		return err
	}
	works, err := workclient.NewForConfigAndClient(cfg, f.http)
	if err != nil {
		return err
	}
	f.works, err = f.informer(works)
	return err
}

// Run runs the agents until ctx ends. When it returns, all their goroutines
// and connections are gone. It may be called once.
func (f *Fleet) Run(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { f.works.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), f.works.HasSynced) {
		close(f.synced)
		for range f.opts.Workers {
			running.Go(func() { f.work(ctx) })
		}
	}
	<-ctx.Done()
	f.queue.ShutDown()
	running.Wait()
	utilnet.CloseIdleConnectionsFor(f.http.Transport)
	close(f.done)
	return nil
}

// Start runs the agents in the background until ctx ends and returns when they
// have seen every work there is. Wait waits for their end.
func (f *Fleet) Start(ctx context.Context) error {
	// Run returns no error once it runs: it watches again when the hub comes back.
	go func() { _ = f.Run(ctx) }()
	select {
	case <-f.synced:
		return nil
	case <-ctx.Done():
		<-f.done
		return fmt.Errorf("cannot watch works: %w", ctx.Err())
	}
}

// Wait returns when the agents that Start started have ended.
func (f *Fleet) Wait() { <-f.done }

// member returns a cluster's record, made on first use: how a cluster behaves
// may be set before it joins.
func (f *Fleet) member(name string) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[name]
	if m == nil {
		m = &member{
			name:   name,
			spoke:  f.world.NewCluster(),
			duties: map[string]*duty{},
			random: rand.New(rand.NewPCG(f.opts.Seed, hash(name))),
		}
		f.members[name] = m
	}
	return m
}
