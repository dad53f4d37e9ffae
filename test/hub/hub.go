package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/addonflow/addonflow/test/freeport"
	"github.com/addonflow/addonflow/test/hubbin"
)

const (
	// A first start on a busy two-core machine takes many times the usual
	// three seconds; envtest's default of 20 is too short there.
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
	pollInterval = 50 * time.Millisecond
)

// Options configure a hub in addition to OCM's CRDs. The zero value is a hub in a temporary
// directory.
type Options struct {
	// Release of OCM whose definitions the hub has.
	Release Release
	// DataDir keeps etcd's data; a later Start with the same directory finds
	// the same objects. Empty: a temporary directory that Stop removes.
	DataDir string
	// CRDs are installed besides OCM's. They are not modified.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// CRDYAML are more of them, as YAML. A slice may have several documents.
	CRDYAML [][]byte
	// Namespaces are created besides those that an OCM hub always has.
	Namespaces []string
	// Collect lists resources whose objects the collector deletes when their
	// owners are gone, besides DefaultCollected.
	Collect []schema.GroupVersionResource
	// WithoutCollector collects no garbage, for a bench that must not have other watches.
	WithoutCollector bool
	// StoresJSON: built-in kinds are stored as JSON too, so that a reader of the History can read them.
	StoresJSON bool
	// AuditPolicy is an audit policy as YAML; with one, AuditLog is the path that the
	// events are appended to, one JSON object a line.
	AuditPolicy, AuditLog string
	// Output receives progress messages. Nil: none.
	Output io.Writer
	// ServerLog receives the output of kube-apiserver and etcd. Nil: it is dropped.
	ServerLog io.Writer
}

// Hub is a running API server. Stop must be called.
type Hub struct {
	scripts    string // directory of the guards' scripts
	guards     []*guard
	again      []func() error // each ends a server that Crash started again
	serverLog  io.Writer
	plane      *envtest.ControlPlane
	converter  *converter // nil where every kind has one version
	config     *rest.Config
	kubeconfig []byte
	stopped    chan struct{}
	cancel     context.CancelFunc
}

// Start starts a hub and returns when its CRDs are served and its namespaces
// exist. ctx bounds the start alone; the hub runs until Stop. On error nothing
// is left running.
func Start(ctx context.Context, opts Options) (*Hub, error) {
	if opts.Output == nil {
		opts.Output = io.Discard
	}
	crds, err := definitions(opts)
	if err != nil {
		return nil, err
	}
	binaries, err := hubbin.Find(ctx, opts.Output)
	if err != nil {
		return nil, err
	}
	scripts, err := os.MkdirTemp("", "hub-")
	if err != nil {
		return nil, fmt.Errorf("cannot start a hub: %w", err)
	}
	h := &Hub{scripts: scripts, serverLog: opts.ServerLog, stopped: make(chan struct{}), cancel: func() {}}
	if err := h.boot(ctx, binaries, crds, opts); err != nil {
		return nil, errors.Join(err, h.Stop())
	}
	return h, nil
}

// startControlPlane tries again: a port that was free when it was chosen may be taken by another hub before it is used.
func (h *Hub) startControlPlane(ctx context.Context, binaries hubbin.Assets, opts Options) (*envtest.ControlPlane, error) {
	for attempt := 1; ; attempt++ {
		plane, err := h.newControlPlane(ctx, binaries, opts)
		if err != nil {
			return nil, err
		}
		if err = plane.Start(); err == nil {
			return plane, nil
		}
		err = errors.Join(fmt.Errorf("cannot start the control plane of %s: %w", binaries.Dir, err), plane.Stop())
		if attempt == 3 || ctx.Err() != nil {
			return nil, err
		}
	}
}

// boot leaves the hub in a state that Stop can end, even if it fails.
func (h *Hub) boot(ctx context.Context, binaries hubbin.Assets, crds []*apiextensionsv1.CustomResourceDefinition, opts Options) error {
	collecting := false
	defer func() {
		if !collecting {
			close(h.stopped)
		}
	}()
	plane, err := h.startControlPlane(ctx, binaries, opts)
	if err != nil {
		return err
	}
	h.plane = plane
	if err := h.furnish(ctx, crds, opts); err != nil || opts.WithoutCollector {
		return err
	}
	collector, err := NewCollector(h.config, append(DefaultCollected(), opts.Collect...)...)
	if err != nil {
		return err
	}
	collecting = true
	h.collect(collector) //nolint:contextcheck // it outlives the start, which ctx bounds
	return nil
}

func (h *Hub) newControlPlane(ctx context.Context, binaries hubbin.Assets, opts Options) (*envtest.ControlPlane, error) {
	etcdPath, err := h.guarded(binaries.Etcd)
	if err != nil {
		return nil, err
	}
	serverPath, err := h.guarded(binaries.APIServer)
	if err != nil {
		return nil, err
	}
	// A server that Crash starts again needs the port that it had.
	etcdAddress, err := freeport.Address(ctx)
	if err != nil {
		return nil, err
	}
	serverAddress, err := freeport.Address(ctx)
	if err != nil {
		return nil, err
	}
	etcd := &envtest.Etcd{
		URL:          &url.URL{Scheme: "http", Host: etcdAddress},
		Path:         etcdPath,
		Out:          opts.ServerLog,
		Err:          opts.ServerLog,
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
	}
	etcd.Configure().Set("listen-peer-urls", "http://127.0.0.1:0") // it has no peers
	if opts.DataDir != "" {
		etcd.DataDir = filepath.Join(opts.DataDir, "etcd")
		if err := os.MkdirAll(etcd.DataDir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot create the data directory: %w", err)
		}
	}
	// envtest adds --unsafe-no-fsync itself wherever etcd knows it.
	server := &envtest.APIServer{
		Path:         serverPath,
		Out:          opts.ServerLog,
		Err:          opts.ServerLog,
		StartTimeout: startTimeout,
		StopTimeout:  stopTimeout,
	}
	if server.Address, server.Port, err = net.SplitHostPort(serverAddress); err != nil {
		return nil, fmt.Errorf("cannot choose a port: %w", err)
	}
	server.Configure().
		Set("max-requests-inflight", "1600").
		Set("max-mutating-requests-inflight", "800").
		Set("enable-priority-and-fairness", "true")
	if opts.StoresJSON {
		server.Configure().Set("storage-media-type", "application/json")
	}
	if err := h.audit(server, opts); err != nil {
		return nil, err
	}
	return &envtest.ControlPlane{APIServer: server, Etcd: etcd}, nil
}

// audit makes the server write an audit log.
func (h *Hub) audit(server *envtest.APIServer, opts Options) error {
	if opts.AuditPolicy == "" {
		return nil
	}
	policy := filepath.Join(h.scripts, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(opts.AuditPolicy), 0o600); err != nil {
		return fmt.Errorf("cannot write the audit policy: %w", err)
	}
	server.Configure().Set("audit-policy-file", policy).Set("audit-log-path", opts.AuditLog)
	return nil
}

func (h *Hub) guarded(binary string) (string, error) {
	g, err := newGuard(h.scripts, binary)
	if err != nil {
		return "", err
	}
	h.guards = append(h.guards, g)
	return g.path, nil
}

// furnish turns a bare API server into a hub.
func (h *Hub) furnish(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition, opts Options) error {
	admin, kubeconfig, err := h.User("admin", "system:masters")
	if err != nil {
		return err
	}
	h.config, h.kubeconfig = admin, kubeconfig
	if err := waitForNamespace(ctx, admin, metav1.NamespaceDefault); err != nil {
		return err
	}
	if opts.Release == OCM13 {
		if h.converter, err = startConverter(); err != nil { //nolint:contextcheck // it outlives the start, which ctx bounds
			return err
		}
		h.converter.join(crds)
	}
	install := envtest.CRDInstallOptions{CRDs: crds, MaxTime: startTimeout, PollInterval: pollInterval}
	if _, err := envtest.InstallCRDs(admin, install); err != nil {
		return fmt.Errorf("cannot install CRDs: %w", err)
	}
	return createNamespaces(ctx, admin, opts.Namespaces)
}

func (h *Hub) collect(collector *Collector) {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	go func() {
		defer close(h.stopped)
		// Its only error is that ctx ended, which Stop did.
		_ = collector.Run(ctx)
	}()
}

// Config returns a copy of the admin's client configuration. It has no rate
// limit: what a test measures must be the server, not the client.
func (h *Hub) Config() *rest.Config { return rest.CopyConfig(h.config) }

// Kubeconfig returns an admin's kubeconfig, for a child process.
func (h *Hub) Kubeconfig() []byte { return slices.Clone(h.kubeconfig) }

// WriteKubeconfig writes Kubeconfig to path, readable by the owner alone.
func (h *Hub) WriteKubeconfig(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	if err := os.WriteFile(path, h.kubeconfig, 0o600); err != nil {
		return fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	return nil
}

// Put stores a value in etcd as it is, past the API server: a hub that another version of
// the API, or of an operator, left behind.
func (h *Hub) Put(ctx context.Context, key string, value []byte) error {
	body, err := h.askEtcd(ctx, "v3/kv/put", map[string][]byte{"key": []byte(key), "value": value})
	if err == nil {
		err = body.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot store %s: %w", key, err)
	}
	return nil
}

// User returns a client configuration and a kubeconfig for a new identity. Its rights are those
// that RBAC grants to its name and groups; there are none until the caller binds some.
func (h *Hub) User(name string, groups ...string) (*rest.Config, []byte, error) {
	user, err := h.plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot add user %q: %w", name, err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot write a kubeconfig for user %q: %w", name, err)
	}
	return user.Config(), kubeconfig, nil
}

// Stop ends the collector, both servers and the conversion webhook. A temporary data directory goes
// with them, one named in Options stays.
func (h *Hub) Stop() error {
	h.cancel()
	<-h.stopped
	err := h.stopRestarted()
	if h.plane != nil {
		err = errors.Join(err, h.plane.Stop())
	}
	if h.converter != nil {
		err = errors.Join(err, h.converter.close())
	}
	for _, g := range h.guards {
		err = errors.Join(err, g.dismiss())
	}
	err = errors.Join(err, os.RemoveAll(h.scripts))
	if err != nil {
		return fmt.Errorf("cannot stop the hub: %w", err)
	}
	return nil
}

// alwaysThere are namespaces that every OCM hub has.
func alwaysThere() []string {
	return []string{"open-cluster-management", "open-cluster-management-hub"}
}

func createNamespaces(ctx context.Context, cfg *rest.Config, more []string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("cannot create namespaces: %w", err)
	}
	for _, name := range append(alwaysThere(), more...) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create namespace %q: %w", name, err)
		}
	}
	return nil
}

// waitForNamespace waits for a namespace that the API server creates by itself, some time
// after it is healthy.
func waitForNamespace(ctx context.Context, cfg *rest.Config, name string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("cannot reach the hub: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("cannot see namespace %q: %w", name, err)
	}
	return nil
}
