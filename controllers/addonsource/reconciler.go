package addonsource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/controller"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kuberecorder "k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render/chart"
)

// Config is what a Reconciler works with.
type Config struct {
	// Client writes, and compares what is applied with what is there. It must read
	// unstructured objects from the API server; other reads are done with Live.
	Client client.Client
	// Live reads from the API server, not from a cache: a pass decides by what it
	// reads, runs at most once an interval at rest, and must see its own writes.
	// Secrets are read with it, by name.
	Live client.Reader
	// Events and Metrics are told what happened.
	Events  kuberecorder.EventRecorder
	Metrics controller.Metrics
	// Desk delivers commit statuses.
	Desk *forge.Desk
	// AddonManager says whether OCM's addon-manager runs; Coexist if empty.
	AddonManager Mode
	// Permits is what the agents of add-ons may have on the hub.
	Permits Permits
	// Charts renders packages.
	Charts chart.Engines
	// Limits of what is read of a repository; zero fields take their defaults.
	Limits gitsource.Limits
	// Clock tells the time; nil: the system's.
	Clock func() time.Time
}

// Reconciler reconciles AddOnSources. Use New.
type Reconciler struct {
	Config
	memories *memories
	writes   *writes
	errands  *errands
	// room bounds what all fetches take in memory together.
	room *gitsource.Room
	// claims orders the passes of one process that take objects nobody has, so that
	// the second one sees the mark of the first.
	claims sync.Mutex
}

// New returns a Reconciler that remembers nothing yet.
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
	return &Reconciler{Config: config, memories: newMemories(), writes: &writes{}, errands: newErrands(), room: gitsource.NewRoom()}
}

// pass is one reconcile of one source.
type pass struct {
	*Reconciler
	// source is changed in place and written once, at the end; before is how it was read.
	source, before *v1alpha1.AddOnSource
	memory         *memory
	now            time.Time
	// requested and forced are the user's annotations, not yet handled.
	requested, forced bool

	// head is the revision this pass is about; spec the fingerprint it is judged under.
	head gitsource.Revision
	spec string
	// applied is what this pass wrote, as the API server answered; nil: it was deleted.
	applied map[objectKey]*unstructured.Unstructured
	// judging says that the pass read and compiled the head, whatever was said of it before.
	judging bool
	// valid says that nothing is wrong with the head, as far as the hub can tell.
	valid bool
	// steady says that the pass found everything as the status has it.
	steady bool
	// untouched says that the conditions carry the verdict already.
	untouched bool
	// away says that the pass ended for want of an answer of the Git server: it says nothing
	// new of the repository. What a commit says of the fleet does not wait for that answer.
	away bool
	// notes go behind the text of an applied commit.
	notes []string
	// overtaken are contents that the head took the place of before anybody saw them.
	overtaken []overtaken
}

// Reconcile is one pass over one source.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
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
	if err := r.hold(ctx, source); err != nil {
		return ctrl.Result{}, err
	}
	p := r.newPass(source)
	if err := p.spare(ctx); err != nil {
		return p.report(ctx, err)
	}
	switch {
	case deleted:
		r.errands.stop(req.NamespacedName)
		return p.uninstall(ctx)
	case suspended(source):
		r.errands.stop(req.NamespacedName)
		return p.report(ctx, nil)
	}
	err := p.follow(ctx)
	if errors.Is(err, errAway) {
		p.away, p.untouched, err = true, true, nil
	}
	return p.report(ctx, err)
}

// hold puts our finalizer on a source before anything of it reaches the hub.
func (r *Reconciler) hold(ctx context.Context, source *v1alpha1.AddOnSource) error {
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

// suspended tells whether the user, in spec or by annotation, wants the repository
// left alone.
func suspended(source *v1alpha1.AddOnSource) bool {
	return source.Spec.Suspend || v1alpha1.SuspendedByAnnotation(source.Annotations)
}

// name returns namespace/name, the value of the source annotation.
func (p *pass) name() string { return p.source.Namespace + "/" + p.source.Name }

// key names the ledger of the source.
func (p *pass) key() forge.Key {
	return forge.Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: client.ObjectKeyFromObject(p.source)}
}

// forget drops what is remembered of a source that is gone.
func (r *Reconciler) forget(req ctrl.Request) {
	r.errands.stop(req.NamespacedName)
	r.memories.forget(req.NamespacedName)
	r.writes.drop(sourceKey(req.NamespacedName))
	r.Desk.Forget(forge.Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: req.NamespacedName})
}

// measure records what Flux's dashboards show of every object.
func (r *Reconciler) measure(ctx context.Context, source *v1alpha1.AddOnSource, start time.Time) {
	r.Metrics.RecordSuspend(ctx, source, suspended(source))
	r.Metrics.RecordReadiness(ctx, source)
	r.Metrics.RecordReconciling(ctx, source)
	r.Metrics.RecordStalled(ctx, source)
	r.Metrics.RecordDuration(ctx, source, start)
}
