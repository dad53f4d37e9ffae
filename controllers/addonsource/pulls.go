package addonsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/jitter"
	"github.com/fluxcd/pkg/runtime/predicates"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/oci"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout"
)

// planTimeout limits the plan of a pull request after it was read, and then the answer. plansAtOnce is how many plans
// are made at once, because each has two commits and the fleet in memory.
const (
	planTimeout = 3 * time.Minute
	plansAtOnce = 4
	// planAgain is the pause before a request without a green plan is planned again. It doubles up to planRarely, so
	// that red plans do not use up the requests that the forge allows. slowPlans is how many plans that are not made in
	// time end a visit.
	planAgain  = time.Minute
	planRarely = 15 * time.Minute
	slowPlans  = 2
)

// Planner answers the pull requests of AddOnSources with plans. It is a separate controller, so that neither a forge
// nor a large request delays a rollout. A visit reads and answers the requests of one source outside of the workers,
// so that a server that hangs delays no other source. Nothing is stored on the hub: the state is in the comment at
// the forge, and an unchanged plan is not written again.
type Planner struct {
	*Reconciler
	// Fleet reads the clusters with their add-ons, and the placements with their decisions and bindings.
	Fleet func(context.Context) (proposal.Fleet, error)
	// visits take turns like the errands of sources. At most plansAtOnce of them have a seat.
	visits *errands
	seats  chan struct{}

	mu sync.Mutex
	// answered has the last answer to each request of each source. A red plan is made again, because its cause may be
	// on the hub or in a registry.
	answered map[client.ObjectKey]map[int64]answered
	// lastVisits are the requests of the last visit to each source.
	lastVisits map[client.ObjectKey]lastVisit
}

// lastVisit has the user's request that a visit answers; "": there was none. failed: the visit ended with an error.
type lastVisit struct {
	requestedAt string
	failed      bool
}

// planned identifies the subject of a plan.
type planned struct {
	generation int64
	head, into string
}

// answered is an answer to a request, or the try to give one.
type answered struct {
	about planned
	// green: the plan is accepted. Otherwise the request is planned again when the pause is over, or at once for
	// another requestedAt.
	green       bool
	requestedAt string
	pause       time.Duration
	again       time.Time
	// denied is why the token may not answer; nil: it may.
	denied error
}

// NewPlanner returns a planner that reads repositories as the reconciler does.
func NewPlanner(r *Reconciler, fleet func(context.Context) (proposal.Fleet, error)) *Planner {
	return &Planner{
		Reconciler: r, Fleet: fleet, visits: newErrands(), seats: make(chan struct{}, plansAtOnce),
		answered: map[client.ObjectKey]map[int64]answered{}, lastVisits: map[client.ObjectKey]lastVisit{},
	}
}

// SetupWithManager registers the controller.
func (l *Planner) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pullrequests").
		For(&v1alpha1.AddOnSource{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, suspensionChanged()))).
		WatchesRawSource(l.visits.ends()).
		WithOptions(options).
		Complete(l)
}

// Reconcile begins or ends a visit to one source. An error of the forge or the repository becomes an event, and is
// retried after the interval.
func (l *Planner) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	source := &v1alpha1.AddOnSource{}
	if err := l.Live.Get(ctx, req.NamespacedName, source); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("cannot read the source: %w", err)
		}
		l.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	spec := source.Spec.PullRequests
	if spec == nil || !spec.Enabled || suspended(source) || !source.DeletionTimestamp.IsZero() {
		l.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	key := errandKey{generation: source.Generation}
	if result, ended := l.visits.take(req.NamespacedName, key); ended {
		if after := l.end(ctx, source, result.err); after > 0 {
			return ctrl.Result{RequeueAfter: after}, nil
		}
	}
	if l.visits.awaits(req.NamespacedName, key) {
		return ctrl.Result{}, nil // its end queues the source
	}
	host, err := gitsource.HostOf(source.Spec.URL)
	if err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // the source reports it, and only another spec helps
	}
	l.visits.send(ctx, req.NamespacedName, &errand{
		key: key, host: host, doubtful: l.begin(source), sent: l.Clock(),
		run: func(ctx context.Context) fetchResult { return fetchResult{err: l.answer(ctx, source)} },
	})
	return ctrl.Result{}, nil
}

// begin notes the reason of a visit, and reports whether the last one failed.
func (l *Planner) begin(source *v1alpha1.AddOnSource) (failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(source)
	failed = l.lastVisits[key].failed
	l.lastVisits[key] = lastVisit{requestedAt: source.Annotations[fluxmeta.ReconcileRequestAnnotation], failed: failed}
	return failed
}

// end reports the result of a visit. It returns the time until the next visit; 0: the user has requested one
// meanwhile.
func (l *Planner) end(ctx context.Context, source *v1alpha1.AddOnSource, err error) (after time.Duration) {
	after = jitter.JitteredIntervalDuration(source.Spec.Interval.Duration)
	if refused, ok := errors.AsType[*commitstatus.DeliveryError](err); ok {
		after = max(after, refused.RetryAfter)
		if refused.Denied != "" {
			after = refused.RetryAfter
		}
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Cannot plan pull requests", "error", err.Error())
		l.Events.Event(source, corev1.EventTypeWarning, "PullRequestsNotPlanned", err.Error())
	}
	if l.denied(client.ObjectKeyFromObject(source)) != nil {
		after = min(after, planAgain)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.lastVisits[client.ObjectKeyFromObject(source)]
	l.lastVisits[client.ObjectKeyFromObject(source)] = lastVisit{requestedAt: last.requestedAt, failed: err != nil}
	if last.requestedAt != source.Annotations[fluxmeta.ReconcileRequestAnnotation] {
		return 0
	}
	return after
}

// What the token is used for, in conditions.
const (
	listOfRequests  = "the list of pull requests"
	plansOfRequests = "plans of pull requests"
)

// use shows in a condition of the source whether the forge lets the token be used for a purpose.
func (l *Planner) use(key client.ObjectKey, purpose string, err error) {
	l.Desk.Use(forge.Key{Kind: v1alpha1.AddOnSourceKind, NamespacedName: key}, purpose, "", err)
}

func (l *Planner) forget(key client.ObjectKey) {
	l.visits.stop(key)
	l.use(key, listOfRequests, nil)
	l.use(key, plansOfRequests, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.answered, key)
	delete(l.lastVisits, key)
}

// answer plans the requests of a source that are due. The error is fit for an event.
func (l *Planner) answer(ctx context.Context, source *v1alpha1.AddOnSource) error {
	branch, key := forge.Branch(source), client.ObjectKeyFromObject(source)
	switch {
	case source.Spec.CommitStatus == nil:
		return errors.New("cannot plan pull requests: spec.commitStatus is not set")
	case branch == "":
		return errors.New("cannot plan pull requests: the source follows no branch")
	}
	requests, statuses, err := l.Desk.Requests(ctx, source)
	if err != nil {
		return fmt.Errorf("cannot plan pull requests: %w", err)
	}
	open, err := requests.Open(ctx, branch, func(r commitstatus.Request) bool { return source.Spec.PullRequests.Forks || !r.Fork })
	l.use(key, listOfRequests, err)
	if err != nil {
		return fmt.Errorf("cannot list pull requests: %w", err)
	}
	l.keep(key, open)
	defer func() { l.use(key, plansOfRequests, l.denied(key)) }()
	if len(open) == 0 {
		return nil
	}
	p, err := l.beside(ctx, source)
	if err != nil {
		return err
	}
	repository, err := p.openGit(ctx)
	if err != nil {
		return fmt.Errorf("cannot plan pull requests: %w", err)
	}
	into, err := repository.Resolve(ctx)
	if err != nil {
		return fmt.Errorf("cannot plan pull requests: %w", err)
	}
	var failed error
	failures := 0
	seen := &visit{known: p.memories.charts(key, p.spec)}
	defer func() { seen.from.close() }()
	for _, request := range l.due(source, into.Commit, open) {
		last := l.begun(source, into.Commit, request)
		one := &planning{pass: p, planner: l, visit: seen, repository: repository, requests: requests, statuses: statuses, request: request}
		green, err := one.run(ctx)
		last.green, last.denied = green && err == nil, nil
		if refused, ok := errors.AsType[*commitstatus.DeliveryError](err); ok && refused.Denied != "" {
			last.denied, last.pause = err, planAgain // the condition says so until the token may plan
		}
		last.again = l.Clock().Add(last.pause)
		l.note(key, request.Number, last)
		if err != nil {
			if failures++; failed == nil {
				failed = fmt.Errorf("cannot plan pull request %d: %w", request.Number, err)
			}
		}
		if seen.endsWith(err) {
			break
		}
	}
	if failures > 1 {
		return fmt.Errorf("%w (and %d more)", failed, failures-1)
	}
	return failed
}

// denied returns why the token may not answer one of the open requests; nil: it may, as far as it was tried.
func (l *Planner) denied(key client.ObjectKey) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(l.answered[key])) {
		if err := l.answered[key][number].denied; err != nil {
			return fmt.Errorf("request %d: %w", number, err)
		}
	}
	return nil
}

// keep drops requests that are not open any more.
func (l *Planner) keep(key client.ObjectKey, open []commitstatus.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered[key] == nil {
		l.answered[key] = map[int64]answered{}
	}
	maps.DeleteFunc(l.answered[key], func(number int64, _ answered) bool {
		return !slices.ContainsFunc(open, func(r commitstatus.Request) bool { return r.Number == number })
	})
}

// due returns the requests to plan in a visit. Those without an answer are the first, and then those with the shortest
// pause, so that a plan that is never made in time delays no other.
func (l *Planner) due(source *v1alpha1.AddOnSource, into string, open []commitstatus.Request) []commitstatus.Request {
	now, requestedAt := l.Clock(), source.Annotations[fluxmeta.ReconcileRequestAnnotation]
	pauses := map[int64]time.Duration{}
	due := slices.DeleteFunc(slices.Clone(open), func(r commitstatus.Request) bool {
		last := l.last(source, into, r)
		pauses[r.Number] = last.pause
		return last.green || last.requestedAt == requestedAt && now.Before(last.again)
	})
	slices.SortStableFunc(due, func(a, b commitstatus.Request) int { return cmp.Compare(pauses[a.Number], pauses[b.Number]) })
	return due
}

// last returns the last answer to a request if nothing that it is about has changed; without one, the answer has no
// pause.
func (l *Planner) last(source *v1alpha1.AddOnSource, into string, request commitstatus.Request) answered {
	about := planned{generation: source.Generation, head: request.SHA, into: into}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.answered[client.ObjectKeyFromObject(source)][request.Number]; last.about == about {
		return last
	}
	return answered{about: about}
}

// begun notes that a request is planned, because the visit may be interrupted.
func (l *Planner) begun(source *v1alpha1.AddOnSource, into string, request commitstatus.Request) answered {
	next := l.last(source, into, request)
	next.requestedAt = source.Annotations[fluxmeta.ReconcileRequestAnnotation]
	next.pause = min(max(planAgain, 2*next.pause), planRarely)
	next.again = l.Clock().Add(next.pause)
	l.note(client.ObjectKeyFromObject(source), request.Number, next)
	return next
}

// note stores the last answer to a request.
func (l *Planner) note(key client.ObjectKey, number int64, last answered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered[key] != nil {
		l.answered[key][number] = last
	}
}

// visit is what the requests of one visit share.
type visit struct {
	// from are the registries of the source, opened for the first request that is not of a fork.
	from registries
	// known are the charts of the commit that was judged last, and of the branch.
	known charts
	// slow is how many plans were not made in time.
	slow int
}

// endsWith reports whether the error of a request ends the visit: a server that hangs also hangs for the other
// requests.
func (v *visit) endsWith(err error) bool {
	if unmade, ok := errors.AsType[unmadePlan](err); ok && errors.Is(unmade.error, context.DeadlineExceeded) {
		v.slow++
	}
	_, registry := errors.AsType[*unreadChart](err)
	return v.slow == slowPlans || errors.Is(err, context.DeadlineExceeded) && !registry
}

// keep notes the charts of a commit.
func (v *visit) keep(b builtTree, read charts) {
	for _, o := range b.objects {
		if files := read[o.OCIChart()]; files != nil {
			v.known[o.OCIChart()] = files
		}
	}
}

type planning struct {
	*pass
	*visit
	planner    *Planner
	repository *gitsource.Repository
	requests   commitstatus.Requests
	statuses   commitstatus.Forge
	request    commitstatus.Request
}

// run plans the request and posts the plan. The status is posted first, because a check must not wait for a comment.
// green: the plan is accepted.
func (g *planning) run(ctx context.Context) (green bool, err error) {
	merge, err := g.read(ctx)
	if err != nil {
		return false, err
	}
	plan, err := g.seated(ctx, merge)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	status := commitstatus.Status{
		SHA: merge.from.Commit, Context: forge.PlanContextName(g.source), State: commitstatus.Success,
		Description: commitstatus.Fit(g.source.Spec.CommitStatus.Provider, plan.Summary()),
	}
	if !plan.Accepted() {
		status.State = commitstatus.Failure
	}
	now, there, err := commitstatus.Latest(ctx, g.statuses, status.SHA, status.Context)
	if err != nil {
		return false, err
	}
	if !there || now.State != status.State || now.Description != status.Description {
		if err := g.statuses.Post(ctx, status); err != nil {
			return false, err
		}
	}
	_, err = g.requests.Say(ctx, g.request.Number, "<!-- "+forge.PlanContextName(g.source)+" -->", plan.Markdown())
	return plan.Accepted(), err
}

// seated makes the plan of a request that was read. During reads from the Git server and the forge, which may hang,
// no seat is taken.
func (g *planning) seated(ctx context.Context, merge readMerge) (proposal.Proposal, error) {
	select {
	case g.planner.seats <- struct{}{}:
		defer func() { <-g.planner.seats }()
	case <-ctx.Done():
		return proposal.Proposal{}, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	plan, err := g.plan(ctx, merge)
	if err != nil {
		err = unmadePlan{err}
	}
	return plan, err
}

// unmadePlan is why the plan of a request that was read could not be made. It does not unwrap to its cause, because a
// plan that is not made in time may be a large one. If the API server hangs, the next plan is not made in time either.
type unmadePlan struct{ error }

// builtTree has the objects of a commit, or why they could not be read.
type builtTree struct {
	objects []gitsource.Object
	unread  problem.List
	// absent is a chart that its registry does not have or does not show, or that lacks the signature that the source
	// requires. Registries do not distinguish these cases: many refuse the name of a repository that they do not
	// have.
	absent problem.List
}

// build reads a commit that is not applied.
func (p *pass) build(ctx context.Context, tree *gitsource.Tree) builtTree {
	objects, unread := tree.Build(ctx, p.buildOptions())
	return builtTree{objects: objects, unread: unread}
}

// fetch reads the charts of the commit like those of an applied commit.
func (b *builtTree) fetch(ctx context.Context, from registries, known charts) error {
	denied, err := from.fetch(ctx, b.objects, known)
	b.unread = b.unread.Then(denied)
	absent := errors.Is(err, oci.ErrNotFound) || errors.Is(err, oci.ErrAuthentication) || errors.Is(err, oci.ErrSignature)
	if chart, ok := errors.AsType[*unreadChart](err); ok && absent {
		b.absent, err = problem.List{chart.at}, nil
	}
	return err
}

// readMerge is a request after it was read.
type readMerge struct {
	// from is the commit of the request. refused is why it cannot be merged; nil: it can.
	from          gitsource.Revision
	refused       problem.List
	before, after builtTree
}

// read reads the request and the branch, and builds both. For a fork, nothing is read from a registry. A request that
// names an absent chart is refused.
func (g *planning) read(ctx context.Context) (readMerge, error) {
	from, known := g.listed(), charts{}
	if !g.request.Fork {
		if g.from == nil {
			var err error
			if g.from, err = g.registries(ctx); err != nil {
				return readMerge{}, err
			}
		}
		from, known = g.from, maps.Clone(g.known)
	}
	merge, err := g.repository.Propose(ctx, g.request.Ref)
	if errors.Is(err, gitsource.ErrNoMergeBase) {
		return readMerge{
			from: gitsource.Revision{Commit: g.request.SHA}, refused: problem.List{{Reason: gitsource.MergeConflict, Message: err.Error()}},
		}, nil
	}
	if err != nil {
		return readMerge{}, err
	}
	defer merge.Close()
	read := readMerge{from: merge.From, before: g.build(ctx, merge.Before), after: g.build(ctx, merge.After)}
	merge.Close() // a chart needs a place in the room
	if err := read.after.fetch(ctx, from, known); err != nil {
		return readMerge{}, err
	}
	if len(read.after.absent) == 0 { // a refused request is not compared
		if err := read.before.fetch(ctx, from, known); err != nil {
			return readMerge{}, err
		}
		g.keep(read.before, known)
	}
	read.after.unread = read.after.unread.Then(read.after.absent)
	return read, ctx.Err()
}

// plan returns the plan of a request.
func (g *planning) plan(ctx context.Context, merge readMerge) (proposal.Proposal, error) {
	base, head := forge.Branch(g.source), fmt.Sprintf("#%d", g.request.Number)
	if len(merge.refused) > 0 {
		return proposal.Of(proposal.Side{Name: base}, proposal.Side{Name: head, Problems: merge.refused}, proposal.Fleet{}, nil)
	}
	before, err := g.side(ctx, base, merge.before)
	if err != nil {
		return proposal.Proposal{}, err
	}
	after, err := g.side(ctx, head, merge.after)
	if err != nil {
		return proposal.Proposal{}, err
	}
	notes, err := g.refusedByHub(ctx, merge.from, &after, merge.after.objects)
	if err != nil {
		return proposal.Proposal{}, err
	}
	fleet, err := g.fleet(ctx, before, after)
	if err != nil {
		return proposal.Proposal{}, err
	}
	plan, err := proposal.Of(before, after, fleet, chart.Within(g.Charts, g.chartOwner()+"/plan"))
	if g.source.Spec.Verify != nil {
		notes = append(notes, "not checked: the signature, because the commit of the merge does not exist yet; spec.verify refuses it unless a listed key signs it")
	}
	plan.Notes = append(plan.Notes, notes...)
	return plan, err
}

// refusedByHub adds to the side the problems that the checks of a commit find on the hub. For a fork, nothing is read
// there. If the commit would only wait, a note says so.
func (g *planning) refusedByHub(ctx context.Context, head gitsource.Revision, side *proposal.Side, objects []gitsource.Object) (notes []string, err error) {
	if g.request.Fork || len(side.Problems) > 0 {
		return nil, nil
	}
	g.head = head
	err = g.judgeBeside(ctx, &attempt{revision: head.String(), objects: objects, hub: load.Lookup{}, commit: side.Commit})
	h, halted := errors.AsType[*halt](err)
	if !halted || h.kind == retried {
		return nil, err
	}
	if side.Problems = h.problems; len(h.problems) == 0 {
		notes = append(notes, "not checked on the hub: "+h.text)
	}
	return notes, nil
}

// judgeBeside runs all checks of a commit that is not applied. The clients of a pass beside only try each write.
func (p *pass) judgeBeside(ctx context.Context, a *attempt) error {
	if err := p.mayImpersonate(ctx); err != nil {
		return err
	}
	todo, _, err := p.judge(ctx, a)
	if err != nil {
		return err
	}
	return p.own(ctx, a, todo)
}

func (g *planning) side(ctx context.Context, name string, b builtTree) (proposal.Side, error) {
	if g.request.Fork {
		return g.compileBuilt(ctx, name, b, g.chartOwner()+"/plan", nil)
	}
	masked := map[render.ConfigReference]bool{}
	side, err := g.compileBuilt(ctx, name, b, g.chartOwner()+"/plan", func(ctx context.Context, r load.Reference) (*unstructured.Unstructured, error) {
		object, err := g.masked(ctx, r)
		if object != nil && !r.Definition() {
			masked[render.ConfigReference(r)] = true
		}
		return object, err
	})
	side.Masked = masked
	return side, err
}

// compileTree compiles a commit that is not applied, without its charts in registries, and also returns its objects.
func (p *pass) compileTree(ctx context.Context, name string, tree *gitsource.Tree, owner string, read lookUp) (proposal.Side, []gitsource.Object, error) {
	b := p.build(ctx, tree)
	if err := b.fetch(ctx, p.listed(), charts{}); err != nil {
		return proposal.Side{}, nil, err
	}
	side, err := p.compileBuilt(ctx, name, b, owner, read)
	return side, b.objects, err
}

// compileBuilt is compileTree for a commit that is built.
func (p *pass) compileBuilt(ctx context.Context, name string, b builtTree, charts string, read lookUp) (proposal.Side, error) {
	commit, problems, err := p.compileObjects(ctx, b.objects, b.unread, load.Lookup{}, charts, read)
	return proposal.Side{Name: name, Commit: commit, Problems: problems}, cmp.Or(err, ctx.Err())
}

// masked reads an object that is only on the hub, without its values, because the author of a request decides what a
// rendering prints. Of an AddOnDeploymentConfig it returns only the names of the variables. Other objects than
// CustomResourceDefinitions and AddOnDeploymentConfigs are not read, and everything that depends on them is not
// compared.
func (g *planning) masked(ctx context.Context, reference load.Reference) (*unstructured.Unstructured, error) {
	config := reference.Group == addonv1alpha1.GroupName && reference.Resource == render.AgentConfigResource
	if !config && !reference.Definition() {
		return nil, nil
	}
	object, err := g.lookUp(ctx, reference)
	if err != nil || object == nil || !config {
		return object, err
	}
	variables, _, _ := unstructured.NestedSlice(object.Object, "spec", "customizedVariables")
	for _, v := range variables {
		if fields, ok := v.(map[string]any); ok {
			fields["value"] = "***"
		}
	}
	shown := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"customizedVariables": variables}}}
	shown.SetGroupVersionKind(object.GroupVersionKind())
	shown.SetNamespace(object.GetNamespace())
	shown.SetName(object.GetName())
	return shown, nil
}

// fleet reads the clusters and the rollouts from the hub; for a fork, it returns none.
func (g *planning) fleet(ctx context.Context, sides ...proposal.Side) (proposal.Fleet, error) {
	if g.request.Fork {
		return proposal.Fleet{Privacy: proposal.HideFleet}, nil
	}
	fleet, err := g.planner.Fleet(ctx)
	if err != nil {
		return fleet, err
	}
	if fleet.Unbindable, err = g.unbindable(ctx, sides); err != nil {
		return fleet, err
	}
	if g.tenant != nil {
		fleet.Bounds = g.tenant.Bounds()
	}
	fleet.Privacy, fleet.Standings = proposal.HideNames, map[string]proposal.Standing{}
	if g.source.Spec.PullRequests.ClusterNames {
		fleet.Privacy = proposal.HideValues
	}
	var rollouts v1alpha1.AddOnRolloutList
	if err := g.Live.List(ctx, &rollouts, client.InNamespace(g.source.Namespace)); err != nil {
		return fleet, fmt.Errorf("cannot list rollouts: %w", err)
	}
	revisions := &metav1.PartialObjectMetadataList{}
	revisions.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind + "List"))
	if err := g.Live.List(ctx, revisions, client.InNamespace(g.source.Namespace)); err != nil {
		return fleet, fmt.Errorf("cannot list revisions: %w", err)
	}
	proven, commits, quarantined := map[string]bool{}, map[string][]string{}, map[string]string{}
	for i := range revisions.Items {
		r := &revisions.Items[i]
		commits[r.Name] = v1alpha1.Commits(r.Annotations)
		if r.Annotations[v1alpha1.SucceededAtAnnotation] != "" {
			proven[r.Name] = true
		}
		if q, ok := v1alpha1.ReadQuarantine(r.Annotations); ok {
			quarantined[r.Name] = q.Reason
		}
	}
	for i := range rollouts.Items {
		r := &rollouts.Items[i]
		standing := proposal.Standing{Proven: proven, Commits: commits, Quarantined: quarantined, Suspended: v1alpha1.SuspendedByAnnotation(r.Annotations)}
		if r.Status.Override.Returns() && r.Status.Target != nil {
			standing.Back = r.Status.Target.Digest
		}
		standing.Moved, _ = rollout.Records(r.Status.Ledger) // the rollout reports an unreadable ledger
		for _, past := range r.Status.History {
			if past.Phase == v1alpha1.PhaseSucceeded && past.Finished != nil {
				standing.Took, standing.Clusters = past.Finished.Sub(past.Started.Time), int(past.Counts.Total)
				break
			}
		}
		fleet.Standings[r.Name] = standing
	}
	return fleet, nil
}

// unbindable are the cluster sets that a commit binds without the right of the source's account to bind them. The
// hub would refuse such a binding, so it selects no cluster in the plan. The operator itself may bind every set.
func (g *planning) unbindable(ctx context.Context, sides []proposal.Side) (map[string]bool, error) {
	if g.account == nil {
		return nil, nil
	}
	unbindable := map[string]bool{}
	for _, side := range sides {
		for _, o := range side.Commit.Objects {
			if o.GroupVersionKind().Group != clusterv1.GroupName || o.GetKind() != "ManagedClusterSetBinding" {
				continue
			}
			set, _, _ := unstructured.NestedString(o.Object, "spec", "clusterSet")
			may, err := g.mayBindSet(ctx, set)
			if err != nil {
				return nil, err
			}
			if !may {
				unbindable[set] = true
			}
		}
	}
	return unbindable, nil
}
