package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/examples"
	"github.com/addonflow/addonflow/manifests"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/forge"
	"github.com/addonflow/addonflow/test/gitserver"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/rights"
)

// Names in the world.
const (
	// Namespace of the source, the rollout and the placements.
	Namespace = "default"
	// SourceName is the AddOnSource of examples/source.yaml.
	SourceName = "fleet"
	// AddOn is the add-on of examples/hello.
	AddOn = "hello"
	// ForgeRepository is where commit statuses go.
	ForgeRepository = "team/fleet"
	// forgeToken is what the forge asks for.
	forgeToken = "demo-token"
)

// WorldOptions say what a world is made of.
type WorldOptions struct {
	// Binary is the operator: the path of addonflow.
	Binary string
	// Release of OCM whose definitions the hub has.
	Release hub.Release
	// CRDs are AddonFlow's, as YAML; nil: those of this tree.
	CRDs [][]byte
	// Clusters are the names of the managed clusters. The placement default/canary selects
	// Canaries, default/all every cluster.
	Clusters, Canaries []string
	// Fleet are the constants of the simulated clusters.
	Fleet fleet.Options
	// ShippedRights gives the operator the rights in manifests/rbac, and no more, as the
	// ServiceAccount there; World.Rights has them. Otherwise it is an admin.
	ShippedRights bool
	// StoresJSON is the option of the hub.
	StoresJSON bool
	// OperatorFlags are given to the operator besides those it needs here.
	OperatorFlags []string
	// Output receives progress messages; nil: none.
	Output io.Writer
}

// World is a hub with everything around it. Stop must be called.
type World struct {
	// Dir holds the kubeconfig, the repositories and the logs; Stop removes it.
	Dir string
	// Kubeconfig is the path of an admin's kubeconfig.
	Kubeconfig string
	// OperatorKubeconfig is the path of the operator's.
	OperatorKubeconfig string
	// Rights are granted to the operator, and AuditLog is the path of a log of what it
	// asked for (rights.Read). Both are empty for an admin.
	Rights   []rbacv1.PolicyRule
	AuditLog string
	// Hub, Fleet, Git, Repo, Forge and Operator are the parts.
	Hub      *hub.Hub
	Fleet    *fleet.Fleet
	Git      *gitserver.Server
	Repo     *gitserver.Repo
	Forge    *forge.Forge
	Operator *Operator
	// Client reads and writes the hub as an admin.
	Client client.WithWatch

	// undo ends what was started, last first.
	undo []func() error
}

// StartWorld starts everything except the operator, so that a suite can look at a hub without
// one; StartOperator starts it. ctx bounds the start only. On error nothing is left running.
func StartWorld(ctx context.Context, o WorldOptions) (*World, error) {
	if o.Output == nil {
		o.Output = io.Discard
	}
	w := &World{}
	for _, part := range []struct {
		doing string
		start func(context.Context, WorldOptions) error
	}{
		{"a directory for it all", w.startDir},
		{"the hub: kube-apiserver and etcd", w.startHub},
		{"the operator's rights", w.startRights},
		{"the Git server and the forge", w.startForge},
		{fmt.Sprintf("%d simulated clusters", len(o.Clusters)), w.startFleet},
	} {
		begun := time.Now()
		if err := part.start(ctx, o); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot start %s: %w", part.doing, err), w.Stop())
		}
		fmt.Fprintf(o.Output, "  ✔ %-34s %4.1fs\n", part.doing, time.Since(begun).Seconds())
	}
	return w, nil
}

// Stop ends everything, the operator first, and removes the directory. It may be
// called more than once.
func (w *World) Stop() error {
	var all error
	for len(w.undo) > 0 {
		last := w.undo[len(w.undo)-1]
		w.undo = w.undo[:len(w.undo)-1]
		all = errors.Join(all, last())
	}
	return all
}

// finally adds a step to Stop.
func (w *World) finally(undo func() error) { w.undo = append(w.undo, undo) }

func (w *World) startDir(context.Context, WorldOptions) error {
	dir, err := os.MkdirTemp("", "addonflow-demo-")
	if err != nil {
		return err
	}
	w.Dir, w.Kubeconfig = dir, filepath.Join(dir, "kubeconfig")
	w.OperatorKubeconfig = w.Kubeconfig
	w.finally(func() error { return os.RemoveAll(dir) })
	return nil
}

func (w *World) startHub(ctx context.Context, o WorldOptions) error {
	crds := o.CRDs
	if crds == nil {
		var err error
		if crds, err = manifests.CRDFiles(); err != nil {
			return err
		}
	}
	options := hub.Options{Release: o.Release, CRDYAML: crds, Namespaces: []string{rights.Namespace}, StoresJSON: o.StoresJSON, Output: o.Output}
	if o.ShippedRights {
		w.AuditLog = filepath.Join(w.Dir, "audit.log")
		options.AuditPolicy, options.AuditLog = rights.Policy, w.AuditLog
	}
	var err error
	if w.Hub, err = hub.Start(ctx, options); err != nil {
		return err
	}
	w.finally(w.Hub.Stop)
	if err := w.Hub.WriteKubeconfig(w.Kubeconfig); err != nil {
		return err
	}
	w.Client, err = NewClient(w.Hub.Config())
	return err
}

// startRights proves the authors of decisions, and gives the operator its identity and rights of
// a real hub.
func (w *World) startRights(ctx context.Context, o WorldOptions) error {
	if o.CRDs == nil { // those of an older tree came without a policy
		if err := rights.InstallPolicy(ctx, w.Client); err != nil {
			return err
		}
	}
	if !o.ShippedRights {
		return nil
	}
	var err error
	if w.Rights, err = rights.Install(ctx, w.Client); err != nil {
		return err
	}
	_, kubeconfig, err := w.Hub.User(rights.User, rights.Groups()...)
	if err != nil {
		return err
	}
	w.OperatorKubeconfig = filepath.Join(w.Dir, "operator.kubeconfig")
	return os.WriteFile(w.OperatorKubeconfig, kubeconfig, 0o600)
}

// NewClient returns a client that knows OCM's kinds and AddonFlow's.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme := hub.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, addonv1alpha1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot assemble the scheme: %w", err)
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

func (w *World) startForge(context.Context, WorldOptions) error {
	var err error
	if w.Git, err = gitserver.Start(gitserver.Options{Dir: filepath.Join(w.Dir, "git"), Now: time.Now}); err != nil { //nolint:contextcheck // git on this machine, at once
		return err
	}
	w.finally(w.Git.Close)
	if w.Repo, err = w.Git.Create(SourceName); err != nil { //nolint:contextcheck // git on this machine, at once
		return err
	}
	w.Forge = forge.New(ForgeRepository)
	w.Forge.RequireToken(forgeToken)
	if _, err = w.Forge.Start(); err != nil { //nolint:contextcheck // it listens until Close
		return err
	}
	w.finally(w.Forge.Close)
	return nil
}

func (w *World) startFleet(ctx context.Context, o WorldOptions) error {
	var err error
	if w.Fleet, err = fleet.New(w.Hub.Config(), o.Fleet); err != nil {
		return err
	}
	// The agents outlive the start, so they have a context of their own.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := w.Fleet.Start(running); err != nil {
		cancel()
		return err
	}
	w.finally(func() error {
		cancel()
		w.Fleet.Wait()
		return nil
	})
	clusters := make([]fleet.Cluster, 0, len(o.Clusters))
	for _, name := range o.Clusters {
		clusters = append(clusters, fleet.Cluster{Name: name})
	}
	if err := w.Fleet.AddClusters(ctx, clusters...); err != nil {
		return err
	}
	for name, members := range map[string][]string{"all": o.Clusters, "canary": o.Canaries} {
		if err := w.Fleet.Place(ctx, fleet.Placement{Namespace: Namespace, Name: name, Clusters: members}); err != nil {
			return err
		}
	}
	return nil
}

// StartOperator starts the operator as a process of its own. Stop ends it.
func (w *World) StartOperator(o WorldOptions) error {
	operator, err := StartOperator(OperatorOptions{
		Binary: o.Binary, Kubeconfig: w.OperatorKubeconfig, LogFile: filepath.Join(w.Dir, "operator.log"), Flags: o.OperatorFlags,
	})
	if err != nil {
		return err
	}
	w.Operator = operator
	w.finally(operator.Stop)
	return nil
}

// Source is examples/source.yaml with this world's repository and forge.
func (w *World) Source() (*v1alpha1.AddOnSource, error) {
	text, err := examples.Files.ReadFile("source.yaml")
	if err != nil {
		return nil, err
	}
	source := &v1alpha1.AddOnSource{}
	if err := yaml.UnmarshalStrict(text, source); err != nil {
		return nil, fmt.Errorf("cannot read examples/source.yaml: %w", err)
	}
	source.Spec.URL = w.Repo.URL()
	source.Spec.CommitStatus.Address = w.Forge.Address(ForgeRepository)
	return source, nil
}

// ForgeSecret is the Secret that examples/source.yaml names.
func (w *World) ForgeSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "fleet-forge"},
		StringData: map[string]string{"token": forgeToken},
	}
}
