package addonrollout

import (
	"context"
	"errors"
	"time"

	"github.com/fluxcd/pkg/runtime/controller"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/gatechecks"
	"github.com/addonflow/addonflow/controllers/metrics"
	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/controllers/tenancy"
	"github.com/addonflow/addonflow/render/chart"
)

// Options of a Reconciler.
type Options struct {
	// Client reads from the watch cache and writes as field manager addonflow.
	Client client.Client
	// Live reads uncached: the ledger, and the bodies of revisions.
	Live client.Reader
	// Recorder of events.
	Recorder record.EventRecorder
	// Metrics of Flux's kind, gotk_*.
	Metrics controller.Metrics
	// Desk delivers commit statuses.
	Desk *forge.Desk
	// Gates measures the gates of stages. nil is for tools that plan as the operator does: they use the verdicts in
	// the status.
	Gates *gatechecks.Desk
	// Agents gets the registration of each cluster's agent; nil: a new book.
	Agents *agents.Book
	// Tenants reads what the rollouts of each namespace may do; nil: everything.
	Tenants func(context.Context) (tenancy.Policy, error)
	// Charts renders packages.
	Charts chart.Engines
	// Reconciles limits the turns that run at once; nil: the options of the controller do.
	Reconciles *renderworker.Reconciles
	// Clock of the ledger.
	Clock clock.PassiveClock
	// Elapsed is the time on a clock that is never set; nil: Clock's monotonic reading.
	Elapsed func() time.Duration
	// ParkAfter and RemovalGrace have the meaning they have in rollout.Input.
	ParkAfter, RemovalGrace time.Duration
	// HookTimeout is how long pre-delete hooks may take before they are reported.
	HookTimeout time.Duration
	// HidesTemplateHash: OCM's addon-manager may run on the same hub.
	HidesTemplateHash bool
	// Workers write clusters in parallel; 32 if 0.
	Workers int
	// Pace is the mean time between two turns of one rollout that has much to do; a second if 0.
	Pace time.Duration
	// Trace gets every plan before it is stored, for tests; nil: no trace. If it fails,
	// nothing is stored.
	Trace func(Planning) error
}

// Reconciler moves the clusters of AddOnRollouts. See the package documentation.
type Reconciler struct {
	Options

	// memories has one memory per rollout. The type memory says for what each field is needed.
	memories *memories
	// renderers: without them a revision would be read and decoded at every turn.
	renderers *renderers
	// addOns and works as this process wrote them. Without them, a turn would plan with the state before its last
	// write until the watch shows the write.
	addOns *overlay[*addonv1alpha1.ManagedClusterAddOn]
	works  *overlay[*workv1.ManifestWork]
	// course is read by scrapes only. Without it, there would be no metrics of rollouts.
	course *metrics.Rollouts
	// configs reads and watches configurations: without it no change of one would cause a turn.
	configs *configStore
	// seats are taken by clusters of which only the configurations change. Without them, the whole fleet would be
	// written at once, because no admission paces those writes.
	seats chan struct{}
	// inspects: it plans to explain, and decides nothing. Its client may be the watch cache for every read.
	inspects bool
	// wake queues another rollout. Without it, an add-on would not notice that another add-on waits for one of its
	// objects.
	wake func(client.ObjectKey)
}

// New returns a Reconciler; register it with SetupWithManager.
func New(o Options) *Reconciler {
	if o.Workers == 0 {
		o.Workers = 32
	}
	if o.Pace == 0 {
		o.Pace = time.Second
	}
	if o.Agents == nil {
		o.Agents = agents.NewBook()
	}
	if o.Elapsed == nil {
		started := o.Clock.Now()
		o.Elapsed = func() time.Duration { return o.Clock.Now().Sub(started) }
	}
	return &Reconciler{
		Options:   o,
		memories:  newMemories(),
		renderers: newRenderers(o.Live, o.Reconciles.Engines(o.Charts)),
		addOns:    newOverlay[*addonv1alpha1.ManagedClusterAddOn](o.Clock),
		works:     newOverlay[*workv1.ManifestWork](o.Clock),
		course:    metrics.NewRollouts(),
		configs:   newConfigStore(o.Live, func() apimeta.RESTMapper { return o.Client.RESTMapper() }, o.Clock),
		seats:     make(chan struct{}, configuredAtOnce),
		wake:      func(client.ObjectKey) {},
	}
}

// Reconcile takes one turn of one rollout. There is one turn per Pace, and after a quiet time a few at once: when a
// whole fleet reports, the ledger is written once a second and not once per report. A new spec does not wait for the
// pace: the watch shows its AddOnRevision first, and the turn for that event would delay the turn for the spec by a
// second.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	started, mem := r.Clock.Now(), r.memories.get(req.NamespacedName)
	if mem.turns == nil || r.respecified(ctx, req.NamespacedName, mem) {
		mem.turns = newTurns(r.Pace)
	}
	if wait := mem.takeTurn(started); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	ro := &v1alpha1.AddOnRollout{}
	if err := r.Live.Get(ctx, req.NamespacedName, ro); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName) //nolint:contextcheck // it stops watches, which have contexts of their own
			err = r.deleteOldOrders(ctx, req.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	mem.generation = ro.Generation
	result, err := r.turn(ctx, ro, mem)
	err = errors.Join(err, r.reportInterruption(ctx, ro, err))
	r.measure(ctx, ro, started)
	if errors.Is(err, errBehind) {
		if text := err.Error(); text != mem.waits {
			ctrl.LoggerFrom(ctx).Info("The turn waits, because another process wrote the ledger", "reason", text)
			mem.waits = text
		}
		return ctrl.Result{RequeueAfter: r.Pace}, nil
	}
	mem.waits = ""
	if apierrors.IsConflict(err) {
		// Another writer was first. This plan is void, and the next turn decides.
		r.writeLost(ctx, ro, mem, err)
		return ctrl.Result{RequeueAfter: r.Pace}, nil
	}
	return result, err
}

// respecified reports whether the watch cache has a newer spec than the last turn saw.
func (r *Reconciler) respecified(ctx context.Context, key client.ObjectKey, mem *memory) bool {
	ro := &v1alpha1.AddOnRollout{}
	return r.Client.Get(ctx, key, ro, client.UnsafeDisableDeepCopy) == nil && ro.Generation > mem.generation
}

// turn is one turn of one rollout. observe copies ro, and the plan is made from the copy. reserve sets the status of ro
// and stores it; the phases after reserve read it as stored.
func (r *Reconciler) turn(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory) (ctrl.Result, error) {
	as, err := r.rightsOf(ctx, ro)
	if err != nil {
		return ctrl.Result{}, err
	}
	if ending, result, err := r.end(ctx, ro, mem, as); ending || err != nil {
		return result, err
	}
	if ro.Spec.Target == nil {
		return ctrl.Result{}, nil // created by hand, or its source has not set a target yet
	}
	if as.denied == nil {
		if err := r.addFinalizer(ctx, ro); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.catchUp(ctx, ro, mem); err != nil {
		return ctrl.Result{}, err
	}
	observed, err := r.observe(ctx, ro, mem, as)
	if err != nil {
		return ctrl.Result{}, err
	}
	planned, err := plan.New(observed)
	if err != nil {
		return ctrl.Result{}, err
	}
	reserved, err := r.reserve(ctx, ro, mem, &planned)
	if err != nil {
		return ctrl.Result{}, err
	}
	announced, err := r.announce(ctx, reserved)
	if err != nil {
		return ctrl.Result{}, err
	}
	applied, err := r.apply(ctx, reserved)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.report(ctx, reserved, announced, applied)
}

func (r *Reconciler) forget(key client.ObjectKey) {
	r.memories.forget(key)
	r.renderers.retain(key, nil)
	r.addOns.forgetThose(func(a *addonv1alpha1.ManagedClusterAddOn) bool { return a.Name == key.Name })
	r.works.forgetThose(func(w *workv1.ManifestWork) bool { return deploys(w, key.Name) })
	r.course.Forget(key)
	r.configs.watch.use(context.Background(), key, nil)
	r.Desk.Forget(bookKey(key))
	if r.Gates != nil {
		r.Gates.Forget(key)
	}
}
