package addonrollout

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/controller"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	agents "github.com/addonflow/addonflow/controllers/registration"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
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
	// Agents is told what each cluster's agent asks for; a new book if nil.
	Agents *agents.Book
	// Charts renders packages.
	Charts chart.Engines
	// Clock of the ledger.
	Clock clock.PassiveClock
	// Elapsed is the time on a clock that is never set; nil: Clock's monotonic reading.
	Elapsed func() time.Duration
	// ParkAfter and RemovalGrace are those of rollout.Input.
	ParkAfter, RemovalGrace time.Duration
	// HookTimeout is how long pre-delete hooks may take before they are reported.
	HookTimeout time.Duration
	// HidesTemplateHash: OCM's addon-manager may be running beside this operator.
	HidesTemplateHash bool
	// Workers write clusters in parallel; 32 if 0.
	Workers int
	// Pace is the least time between two reconciles of one rollout; a second if 0.
	Pace time.Duration
	// Trace is given every plan before it is stored, for tests; nil: no trace. If it fails,
	// nothing is stored.
	Trace func(Planning) error
}

// Reconciler moves the clusters of AddOnRollouts. See the package documentation.
type Reconciler struct {
	Options

	renderers *renderers
	addOns    *overlay[*addonv1alpha1.ManagedClusterAddOn]
	works     *overlay[*workv1.ManifestWork]
	synced    *synced
	alike     *synced
	apart     *synced
	pace      *pace
	versions  *versions
	gauges    *gauges
	foreign   *foreignWriters
	published *publications
	configs   *configStore
	probers   *probers
	rounds    *rounds
	releases  *releases
	// applyErrors: without it an apply error would never become a failure.
	applyErrors *sightings
	// stampsAhead: without it a soak would start anew at every look while the clock of the
	// managed cluster is ahead.
	stampsAhead *sightings
	unwritten   *unwritten
	clocks      *clocks
	// seats of clusters that are told of configurations, over all rollouts.
	seats chan struct{}
	// wake queues a rollout.
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
	return &Reconciler{
		Options:     o,
		renderers:   newRenderers(o.Live, o.Charts),
		addOns:      newOverlay[*addonv1alpha1.ManagedClusterAddOn](o.Clock),
		works:       newOverlay[*workv1.ManifestWork](o.Clock),
		synced:      newSynced(),
		alike:       newSynced(),
		apart:       newSynced(),
		pace:        newPace(o.Pace),
		versions:    newVersions(),
		gauges:      newGauges(),
		foreign:     newForeignWriters(),
		published:   newPublications(),
		configs:     newConfigStore(o.Live, func() apimeta.RESTMapper { return o.Client.RESTMapper() }, o.Clock),
		probers:     newProbers(),
		rounds:      newRounds(),
		releases:    newReleases(),
		unwritten:   newUnwritten(),
		clocks:      newClocks(o.Elapsed),
		applyErrors: newSightings(),
		stampsAhead: newSightings(),
		seats:       make(chan struct{}, configuredAtOnce),
		wake:        func(client.ObjectKey) {},
	}
}

// Reconcile observes, plans, reserves, writes and reports, once.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	started := r.Clock.Now()
	if wait := r.pace.wait(req.NamespacedName, started); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	ro := &v1alpha1.AddOnRollout{}
	if err := r.Live.Get(ctx, req.NamespacedName, ro); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName) //nolint:contextcheck // it stops watches, which have contexts of their own
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	result, err := r.reconcile(ctx, ro)
	r.Metrics.RecordDuration(ctx, ro, started)
	r.Metrics.RecordReadiness(ctx, ro)
	r.Metrics.RecordReconciling(ctx, ro)
	r.Metrics.RecordStalled(ctx, ro)
	r.Metrics.RecordSuspend(ctx, ro, ro.Spec.Suspend || suspended(ro))
	if apierrors.IsConflict(err) {
		// Another writer was first: this plan is void, the next look decides.
		r.writeLost(ctx, ro)
		return ctrl.Result{RequeueAfter: r.Pace}, nil
	}
	return result, err
}

// reconcile is one turn of one rollout.
func (r *Reconciler) reconcile(ctx context.Context, ro *v1alpha1.AddOnRollout) (ctrl.Result, error) {
	if ending, result, err := r.end(ctx, ro); ending || err != nil {
		return result, err
	}
	if ro.Spec.Target == nil {
		return ctrl.Result{}, nil // made by hand, or its source has not spoken yet
	}
	if err := r.hold(ctx, ro); err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	o, err := r.observe(ctx, ro)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.synced.keep(client.ObjectKeyFromObject(ro), o.members)
	r.alike.keep(client.ObjectKeyFromObject(ro), o.members)
	r.apart.keep(client.ObjectKeyFromObject(ro), o.members)
	r.foreign.keep(ro.Name, o.members)
	t, err := r.decide(ctx, o, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.reserve(ctx, o, t); err != nil {
		return ctrl.Result{}, err
	}
	again := t.book.Deliver() // at once: what the status has as being posted is posted now, or 15 s later
	r.stored(ctx, ro, t.decisions)
	r.announceStall(ro, t)
	r.clocks.looked(client.ObjectKeyFromObject(ro), t.look, ro.Status.Ledger)
	wrote := applied{skipped: true}
	if !t.barred && (len(t.plan.Clusters) > 0 || t.err == nil) {
		if wrote, err = r.apply(ctx, o, t.plan, now); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.complete(ctx, ro, wrote); err != nil {
		return ctrl.Result{}, err
	}
	if t.err == nil {
		if err := r.publish(ctx, o, t, now); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot publish the status for OCM's tools")
			again = sooner(again, retryAfter)
		}
	}
	return soonEnough(ro, t.plan, ctrl.Result{RequeueAfter: sooner(again, r.report(o, t, wrote, now))}), nil
}

// turn is what one reconcile decided.
type turn struct {
	plan rollout.Plan
	// before is the status as stored, next the one to store.
	before, next v1alpha1.AddOnRolloutStatus
	verdict      verdict
	// announced is what Stalled said before the turn, reason and message.
	announced string
	// book of commit statuses; Deliver it when the status was written.
	book *forge.Book
	// err is why nobody is admitted, if that is so; it is part of the verdict.
	err error
	// barred: nothing is written to clusters, because somebody else writes there.
	barred bool
	// decisions to log and announce once the status is stored.
	decisions decisions
	// look is when this turn began, by both clocks.
	look look
	// step is by how much the operator's clock was set since the last look.
	step time.Duration
}

// decide plans and says what the status is to be. Its error is one to retry; what
// only the user can mend is part of the turn.
func (r *Reconciler) decide(ctx context.Context, o *observation, now time.Time) (turn, error) {
	ro := o.rollout
	t := turn{before: *ro.Status.DeepCopy(), announced: conditions.GetReason(ro, meta.StalledCondition) + conditions.GetMessage(ro, meta.StalledCondition)}
	stamp := metav1.NewTime(now).Rfc3339Copy()
	next := advance(ro.Status, *ro.Spec.Target, o.succeeded, stamp)
	t.look = r.clocks.look(now)
	next.Ledger, t.step = r.clocks.corrected(client.ObjectKeyFromObject(ro), next.Ledger, t.look)
	if t.step != 0 {
		r.applyErrors.forget(client.ObjectKeyFromObject(ro))
		r.stampsAhead.forget(client.ObjectKeyFromObject(ro))
	}
	t.err = r.mayWrite(ctx, o)
	t.barred = t.err != nil
	planned := false
	contested := cmp.Or(t.err, o.fenceDown())
	if contested == nil || errors.Is(contested, errOwnership) && t.before.Target != nil {
		var in rollout.Input
		if in, t.err = r.input(ctx, o, &next, now); t.err == nil {
			in.Contested = said(contested)
			t.plan, t.err = rollout.New(in)
			if err := r.trace(ro, in, t.plan, t.err); err != nil {
				return t, err
			}
			planned = t.err == nil
			next = conclude(next, t.plan, stamp)
			t.verdict = waitsFor(ro, in, t.plan)
		}
	}
	if _, known := verdictOf(t.err); contested != nil && (t.err == nil || known) {
		t.err = contested
	}
	if t.err != nil {
		known := false
		if t.verdict, known = verdictOf(t.err); !known {
			return t, t.err
		}
	}
	if t.err != nil && t.before.Target == nil {
		// Nothing was planned: the status stays empty, so that it is rebuilt yet.
		next.Target, next.TargetSince, next.History = nil, nil, t.before.History
	}
	if !planned && next.Phase == v1alpha1.PhaseSucceeded && ro.Generation != ro.Status.ObservedGeneration {
		next.Phase = v1alpha1.PhaseProgressing // the policy changed, and was not planned with yet
	}
	t.decisions = r.decided(ro, &next, t.plan, planned, stamp, t.step)
	t.next = next
	t.next.Outcome = string(summaries(&t)[0].State)
	t.book = r.openBook(o, &t)
	return t, nil
}

// mayWrite returns an error where another owner is at work; AddonFlow never fights.
// A user who asks for a reconcile says that the other one was stopped.
func (r *Reconciler) mayWrite(ctx context.Context, o *observation) error {
	if err := o.conflict(); err != nil {
		return err
	}
	if o.invalidHealth != nil {
		return o.invalidHealth
	}
	if requested(o.rollout) {
		r.acceptForeign(o)
		return nil
	}
	target, err := o.content(ctx, o.rollout.Spec.Target.Digest)
	if err != nil {
		return err
	}
	return r.contested(o, target.renderer, r.Clock.Now())
}

// requested reports whether the user asked for a reconcile that was not done yet.
func requested(ro *v1alpha1.AddOnRollout) bool { return requestedAt(ro) != "" }

// requestedAt returns the request of the user that was not done yet, "" without one.
func requestedAt(ro *v1alpha1.AddOnRollout) string {
	if at := ro.Annotations[meta.ReconcileRequestAnnotation]; at != ro.Status.LastHandledReconcileAt {
		return at
	}
	return ""
}

// reserve writes the status, and the ledger in it, before any work is written. The
// write carries the version that was read, so of two operators one loses and drops
// its plan. A success is noted on the revision first: were it lost, a
// revert to it would soak again.
func (r *Reconciler) reserve(ctx context.Context, o *observation, t turn) error {
	ro := o.rollout
	if t.plan.Succeeded {
		// A revision that was deleted has nothing to be noted on; what runs runs.
		if err := r.noteSuccess(ctx, ro); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	ro.Status = t.next
	ro.Status.ObservedGeneration = ro.Generation
	ro.Status.ParkAfter = &metav1.Duration{Duration: r.ParkAfter}
	ro.Status.RemovalGracePeriod = &metav1.Duration{Duration: r.RemovalGrace}
	setConditions(ro, t.verdict)
	r.settle(ctx, o, t)
	if sameStatus(t.before, ro.Status) {
		return nil
	}
	return r.store(ctx, ro)
}

// store writes the status, bound to the version that was read.
func (r *Reconciler) store(ctx context.Context, ro *v1alpha1.AddOnRollout) error {
	if err := r.Client.Status().Update(ctx, ro); err != nil {
		return err
	}
	r.versions.wrote(ro)
	return nil
}

// complete notes what became of the round: which clusters could not be written, and
// that a request was done. A request stands until a round got to the end; were it
// consumed before, the turn that goes on with it would stop at what it lifts. In a
// healthy turn that nobody asked for there is nothing to note, and no write.
func (r *Reconciler) complete(ctx context.Context, ro *v1alpha1.AddOnRollout, wrote applied) error {
	before := conditions.Get(ro, v1alpha1.ClustersWrittenCondition).DeepCopy()
	if !wrote.skipped {
		markWritten(ro, r.rounds.enter(client.ObjectKeyFromObject(ro), wrote), !wrote.unfinished)
	}
	after := conditions.Get(ro, v1alpha1.ClustersWrittenCondition)
	done := requested(ro) && !wrote.unfinished
	if done {
		ro.Status.SetLastHandledReconcileRequest(ro.Annotations[meta.ReconcileRequestAnnotation])
	}
	same := sameWords(before, after)
	did := r.carriedOut(ctx, ro, wrote.did)
	if same && !done && len(did) == 0 {
		return nil
	}
	ro.Status.Journal = journal.Append(ro.Status.Journal, metav1.NewTime(r.Clock.Now()).Rfc3339Copy(), did)
	if err := r.store(ctx, ro); err != nil {
		return err
	}
	if after != nil && !same {
		r.Recorder.Event(ro, corev1.EventTypeWarning, after.Reason, after.Message)
	}
	return nil
}

// sameWords reports whether two conditions, either of which may be absent, say the same.
func sameWords(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// forget drops what is remembered of a rollout that is gone.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.addOns.forgetThose(func(a *addonv1alpha1.ManagedClusterAddOn) bool { return a.Name == key.Name })
	r.works.forgetThose(func(w *workv1.ManifestWork) bool { return deploys(w, key.Name) })
	r.synced.forget(key)
	r.alike.forget(key)
	r.apart.forget(key)
	r.probers.forget(key)
	r.pace.forget(key)
	r.versions.forget(key)
	r.gauges.forget(key)
	r.published.forget(key)
	r.configs.forget(key)
	r.rounds.forget(key)
	r.releases.forget(key)
	r.applyErrors.forget(key)
	r.stampsAhead.forget(key)
	r.unwritten.take(key)
	r.clocks.forget(key)
	r.foreign.keep(key.Name, nil)
	r.Desk.Forget(bookKey(key))
}
