package addonsource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/controller"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/metrics"
	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/githubapp"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/oci"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render/chart"
)

// Config has the clients and settings of a Reconciler.
type Config struct {
	// Client writes, and compares applied objects with stored ones. It must read unstructured objects from the API
	// server. Other reads use Live.
	Client client.Client
	// Live reads from the API server, not from a cache. A pass decides by its reads, runs at most once per interval
	// if nothing changes, and must see its own writes. It also reads Secrets, by name.
	Live client.Reader
	// Accounts makes clients with the rights of a ServiceAccount; see the function Accounts.
	Accounts func(client.ObjectKey) (client.Client, error)
	// Tenants reads the policy of tenants; nil: every source may declare everything.
	Tenants func(context.Context) (tenancy.Policy, error)
	// Events and Metrics receive what happened.
	Events  kuberecorder.EventRecorder
	Metrics controller.Metrics
	// Desk delivers commit statuses.
	Desk *forge.Desk
	// Namespace is the only namespace whose sources are reconciled; "": all.
	Namespace string
	// AddonManager says whether OCM's addon-manager runs; Coexist if empty.
	AddonManager Mode
	// DefaultCanary gives a canary to the add-ons that declare no pace.
	DefaultCanary bool
	// Permits limits the rights of the add-ons' agents on the hub.
	Permits Permits
	// Charts renders packages.
	Charts chart.Engines
	// Reconciles limits the passes that run at once; nil: the options of the controller do. Plans and reverts are not
	// passes.
	Reconciles *renderworker.Reconciles
	// Tokens of GitHub Apps, shared with other users of the Apps; nil: not shared.
	Tokens *githubapp.Tokens
	// Git has the permissions that the operator's flags give to repositories.
	Git gitsource.Access
	// Clock returns the time; nil: the system's.
	Clock func() time.Time
}

// Reconciler reconciles AddOnSources. Use New.
type Reconciler struct {
	Config
	memories *memories
	// writes are the last writes of this process. Without them, each would cause another pass and another dry run, and
	// the object of another owner would be overwritten for ever.
	writes *writes
	// errands are conversations with servers. Without them, a server that hangs would occupy a worker.
	errands *errands
	// reverts are the outcomes of pull requests that revert content.
	reverts *revertOutcomes
	course  *metrics.Sources // read by scrapes only
	// room limits the memory of all fetches together. Without it, large repositories that are fetched at once could
	// exceed the memory of the process.
	room *gitsource.Room
	// claims is held by passes that claim objects without an owner, so that a second pass of the process sees the
	// marks of the first.
	claims sync.Mutex
}

// New returns a Reconciler without any memory.
func New(config Config) *Reconciler {
	if config.AddonManager == "" {
		config.AddonManager = Coexist
	}
	if config.Permits.SigningNamespaces == nil {
		config.Permits.SigningNamespaces = []string{registration.DefaultSigningNamespace}
	}
	if config.Clock == nil {
		config.Clock = time.Now
	}
	if config.Tokens == nil {
		config.Tokens = githubapp.New(config.Clock)
	}
	return &Reconciler{
		Config: config, memories: newMemories(), writes: &writes{}, errands: newErrands(), reverts: &revertOutcomes{}, course: metrics.NewSources(), room: gitsource.NewRoom(),
	}
}

// Collector has the metrics of sources.
func (r *Reconciler) Collector() prometheus.Collector { return r.course }

// pass is one reconcile of one source.
type pass struct {
	*Reconciler
	// source is changed in place and written once, at the end. before is a copy of it as it was read.
	source, before *v1alpha1.AddOnSource
	memory         *memory
	now            time.Time
	// account has the rights of spec.serviceAccountName; nil: there is none. See writer and reader.
	account client.Client
	// tenant limits what the source may declare; nil: no limit.
	tenant *tenancy.Tenant
	// requested and forced are annotations of the user that are not carried out yet.
	requested, forced bool

	// head is the revision of this pass. spec is the fingerprint under which it is judged.
	head gitsource.Revision
	spec string
	// verification is the check that spec.verify requires.
	verification gitsource.Verification
	// cosign has the signatures that registries and artifacts need, by host and by URL.
	cosign map[string]oci.Verification
	// applied are the API server's answers to the writes of this pass; nil: the object was
	// deleted.
	applied map[objectKey]*unstructured.Unstructured
}

// Reconcile runs one pass over one source.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Namespace != "" && req.Namespace != r.Namespace {
		return ctrl.Result{}, nil // the mark of a ClusterManagementAddOn of another operator names it
	}
	source := &v1alpha1.AddOnSource{}
	if err := r.Live.Get(ctx, req.NamespacedName, source); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read the source: %w", err)
	}
	deleted := !source.DeletionTimestamp.IsZero()
	if deleted && !controllerutil.ContainsFinalizer(source, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	defer r.measure(ctx, source, r.Clock())
	if err := r.addFinalizer(ctx, source); err != nil {
		return ctrl.Result{}, err
	}
	p := r.newPass(source)
	if err := p.asAccount(); err != nil {
		return ctrl.Result{}, err
	}
	if err := p.spare(ctx); err != nil {
		return p.report(ctx, outcome{}, err)
	}
	switch {
	case deleted:
		r.errands.stop(req.NamespacedName)
		return p.uninstall(ctx)
	case suspended(source):
		r.errands.stop(req.NamespacedName)
		return p.report(ctx, outcome{}, nil)
	}
	out, err := p.follow(ctx)
	if errors.Is(err, errAway) {
		out, err = outcome{reached: unanswered}, p.placeless()
	}
	return p.report(ctx, out, err)
}

// addFinalizer adds AddonFlow's finalizer to a source before the first write for it on the hub.
func (r *Reconciler) addFinalizer(ctx context.Context, source *v1alpha1.AddOnSource) error {
	if !source.DeletionTimestamp.IsZero() || controllerutil.ContainsFinalizer(source, v1alpha1.Finalizer) {
		return nil
	}
	before := source.DeepCopy()
	controllerutil.AddFinalizer(source, v1alpha1.Finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, source, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("cannot add the finalizer: %w", err)
	}
	return nil
}

// newPass returns a pass over a source as it was read.
func (r *Reconciler) newPass(source *v1alpha1.AddOnSource) *pass {
	p := &pass{
		Reconciler: r,
		source:     source,
		before:     source.DeepCopy(),
		memory:     r.memories.open(client.ObjectKeyFromObject(source)),
		now:        r.Clock(),
		applied:    map[objectKey]*unstructured.Unstructured{},
	}
	requestedAt, asked := fluxmeta.ReconcileAnnotationValue(source.Annotations)
	forceAt := source.Annotations[fluxmeta.ForceRequestAnnotation]
	p.requested = asked && requestedAt != source.Status.LastHandledReconcileAt
	if p.requested && forceAt == requestedAt && forceAt != source.Status.LastHandledForceAt {
		p.memory.forced = true
	}
	p.forced = p.memory.forced
	return p
}

// beside returns a pass with dry-run clients and its own memory, because the source's reconciles run meanwhile.
func (r *Reconciler) beside(ctx context.Context, source *v1alpha1.AddOnSource) (*pass, error) {
	config := r.Config
	config.Client = client.NewDryRunClient(r.Client)
	dry := New(config)
	dry.room, dry.memories.attempts = r.room, r.memories.attempts // of it, a pass beside reads charts only
	p := dry.newPass(source)
	if err := p.asAccount(); err != nil {
		return nil, err
	}
	if p.account != nil {
		p.account = client.NewDryRunClient(p.account)
	}
	if err := p.readSettings(ctx); err != nil {
		return nil, err
	}
	p.verification = gitsource.Verification{} // it is about commits, and none is applied
	return p, nil
}

// suspended reports whether the user has suspended the source, in spec or by annotation.
func suspended(source *v1alpha1.AddOnSource) bool {
	return source.Spec.Suspend || v1alpha1.SuspendedByAnnotation(source.Annotations)
}

// name returns namespace/name, the value of the source annotation.
func (p *pass) name() string { return p.source.Namespace + "/" + p.source.Name }

// key identifies the marks of the source.
func (p *pass) key() forge.Key {
	return forge.Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: client.ObjectKeyFromObject(p.source)}
}

func (r *Reconciler) forget(req ctrl.Request) {
	r.errands.stop(req.NamespacedName)
	r.reverts.forget(req.NamespacedName)
	r.memories.forget(req.NamespacedName)
	r.course.Forget(req.NamespacedName)
	r.writes.drop(sourceKey(req.NamespacedName))
	r.Desk.Forget(forge.Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: req.NamespacedName})
}

// measure records the metrics that Flux's dashboards show for every object.
func (r *Reconciler) measure(ctx context.Context, source *v1alpha1.AddOnSource, start time.Time) {
	r.Metrics.RecordSuspend(ctx, source, suspended(source))
	r.Metrics.RecordReadiness(ctx, source)
	r.Metrics.RecordReconciling(ctx, source)
	r.Metrics.RecordStalled(ctx, source)
	r.Metrics.RecordDuration(ctx, source, start)
	r.course.Stored(client.ObjectKeyFromObject(source), source.Status.CommitStatuses)
}
