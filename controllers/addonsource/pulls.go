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
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout"
)

// planTimeout bounds the work on one pull request: reading, building and answering it.
const planTimeout = 3 * time.Minute

// Planner answers the pull requests of AddOnSources with plans. It is a controller of its own, so that neither a forge
// nor a large request delays a rollout. Nothing is stored on the hub: the state is in the comment at the forge, and an
// unchanged plan is not written again.
type Planner struct {
	*Reconciler
	// Fleet reads the clusters, the placements with their decisions and bindings, and who has which add-on.
	Fleet func(context.Context) (proposal.Fleet, error)

	mu sync.Mutex
	// answered is which requests of each source have a plan, and of what.
	answered map[client.ObjectKey]map[int64]planned
}

// planned identifies what a plan is about.
type planned struct {
	generation int64
	head, into string
}

// NewPlanner returns a planner that reads repositories as the reconciler does.
func NewPlanner(r *Reconciler, fleet func(context.Context) (proposal.Fleet, error)) *Planner {
	return &Planner{Reconciler: r, Fleet: fleet, answered: map[client.ObjectKey]map[int64]planned{}}
}

// SetupWithManager registers the controller.
func (l *Planner) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pullrequests").
		For(&v1alpha1.AddOnSource{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, suspensionChanged()))).
		WithOptions(options).
		Complete(l)
}

// Reconcile answers the requests of one source. What goes wrong at the forge or in the repository is
// an event, and is tried again after the interval.
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
	after := jitter.JitteredIntervalDuration(source.Spec.Interval.Duration)
	err := l.answer(ctx, source)
	if refused, ok := errors.AsType[*commitstatus.DeliveryError](err); ok {
		after = max(after, refused.RetryAfter)
	}
	if err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).Info("Cannot plan pull requests", "error", err.Error())
		l.Events.Event(source, corev1.EventTypeWarning, "PullRequestsNotPlanned", err.Error())
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

func (l *Planner) forget(key client.ObjectKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.answered, key)
}

// answer plans the requests of a source that have no plan yet, or one of another commit. The error is
// fit for an event.
func (l *Planner) answer(ctx context.Context, source *v1alpha1.AddOnSource) error {
	branch := forge.Branch(source)
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
	if err != nil {
		return fmt.Errorf("cannot list pull requests: %w", err)
	}
	key := client.ObjectKeyFromObject(source)
	l.keep(key, open)
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
	for _, request := range open {
		about := planned{generation: source.Generation, head: request.SHA, into: into.Commit}
		if l.has(key, request.Number, about) {
			continue
		}
		one := &planning{pass: p, planner: l, repository: repository, requests: requests, statuses: statuses, request: request}
		if err := one.run(ctx); err != nil {
			if failures++; failed == nil {
				failed = fmt.Errorf("cannot plan pull request %d: %w", request.Number, err)
			}
			continue
		}
		l.done(key, request.Number, about)
	}
	if failures > 1 {
		return fmt.Errorf("%w (and %d more)", failed, failures-1)
	}
	return failed
}

// keep drops requests that are not open any more.
func (l *Planner) keep(key client.ObjectKey, open []commitstatus.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered[key] == nil {
		l.answered[key] = map[int64]planned{}
	}
	maps.DeleteFunc(l.answered[key], func(number int64, _ planned) bool {
		return !slices.ContainsFunc(open, func(r commitstatus.Request) bool { return r.Number == number })
	})
}

// has reports whether a request has its plan.
func (l *Planner) has(key client.ObjectKey, number int64, about planned) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered[key][number] == about
}

func (l *Planner) done(key client.ObjectKey, number int64, about planned) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered[key] != nil {
		l.answered[key][number] = about
	}
}

type planning struct {
	*pass
	planner    *Planner
	repository *gitsource.Repository
	requests   commitstatus.Requests
	statuses   commitstatus.Forge
	request    commitstatus.Request
}

// run plans the request and posts the plan. The status comes first: a check must not wait for a comment.
func (g *planning) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	plan, head, err := g.plan(ctx)
	if err != nil {
		return err
	}
	status := commitstatus.Status{
		SHA: head, Context: forge.PlanContextName(g.source), State: commitstatus.Success,
		Description: commitstatus.Shorten(commitstatus.DescriptionLimit, plan.Summary()),
	}
	if !plan.Accepted() {
		status.State = commitstatus.Failure
	}
	now, there, err := commitstatus.Latest(ctx, g.statuses, status.SHA, status.Context)
	if err != nil {
		return err
	}
	if !there || now.State != status.State || now.Description != status.Description {
		if err := g.statuses.Post(ctx, status); err != nil {
			return err
		}
	}
	_, err = g.requests.Say(ctx, g.request.Number, "<!-- "+forge.PlanContextName(g.source)+" -->", plan.Markdown())
	return err
}

// plan returns the plan, and the commit that it is about.
func (g *planning) plan(ctx context.Context) (proposal.Proposal, string, error) {
	base, head := forge.Branch(g.source), fmt.Sprintf("#%d", g.request.Number)
	merge, err := g.repository.Propose(ctx, g.request.Ref)
	if errors.Is(err, gitsource.ErrNoMergeBase) {
		refused := problem.List{{Reason: gitsource.MergeConflict, Message: err.Error()}}
		plan, err := proposal.Of(proposal.Side{Name: base}, proposal.Side{Name: head, Problems: refused}, proposal.Fleet{}, nil)
		return plan, g.request.SHA, err
	}
	if err != nil {
		return proposal.Proposal{}, "", err
	}
	defer merge.Close()
	before, _, err := g.side(ctx, base, merge.Before)
	if err != nil {
		return proposal.Proposal{}, "", err
	}
	after, objects, err := g.side(ctx, head, merge.After)
	if err != nil {
		return proposal.Proposal{}, "", err
	}
	notes, err := g.refusedByHub(ctx, merge.From, &after, objects)
	if err != nil {
		return proposal.Proposal{}, "", err
	}
	fleet, err := g.fleet(ctx, before, after)
	if err != nil {
		return proposal.Proposal{}, "", err
	}
	plan, err := proposal.Of(before, after, fleet, g.Charts)
	plan.Notes = append(plan.Notes, notes...)
	return plan, merge.From.Commit, err
}

// refusedByHub adds to the side what the checks of a commit find on the hub; for a fork, nothing is read there. What a
// commit would only wait for is a note.
func (g *planning) refusedByHub(ctx context.Context, head gitsource.Revision, side *proposal.Side, objects []gitsource.Object) (notes []string, err error) {
	if g.request.Fork || len(side.Problems) > 0 {
		return nil, nil
	}
	g.head = head
	err = g.mayImpersonate(ctx)
	if err == nil {
		_, _, err = g.judge(ctx, &attempt{revision: head.String(), objects: objects, hub: load.Lookup{}, commit: side.Commit})
	}
	h, halted := errors.AsType[*halt](err)
	if !halted || h.kind == retried {
		return nil, err
	}
	if side.Problems = h.problems; len(h.problems) == 0 {
		notes = append(notes, "not checked on the hub: "+h.text)
	}
	return notes, nil
}

func (g *planning) side(ctx context.Context, name string, tree *gitsource.Tree) (proposal.Side, []gitsource.Object, error) {
	if g.request.Fork {
		return g.compileTree(ctx, name, tree, g.key().String()+"/plan", nil)
	}
	masked := map[render.ConfigReference]bool{}
	side, objects, err := g.compileTree(ctx, name, tree, g.key().String()+"/plan", func(ctx context.Context, r load.Reference) (*unstructured.Unstructured, error) {
		object, err := g.masked(ctx, r)
		if object != nil && !r.Definition() {
			masked[render.ConfigReference(r)] = true
		}
		return object, err
	})
	side.Masked = masked
	return side, objects, err
}

// compileTree compiles a commit that is not applied, and returns its objects as well.
func (p *pass) compileTree(ctx context.Context, name string, tree *gitsource.Tree, charts string, read lookUp) (proposal.Side, []gitsource.Object, error) {
	objects, unread := tree.Build(ctx, p.buildOptions())
	listed := registries{}
	for _, spec := range p.source.Spec.Registries {
		listed[spec.Host] = nil
	}
	unread = unread.Then(listed.denied(objects))
	commit, problems, err := p.compileObjects(ctx, objects, unread, load.Lookup{}, charts, read)
	return proposal.Side{Name: name, Commit: commit, Problems: problems}, objects, cmp.Or(err, ctx.Err())
}

// masked reads an object that is only on the hub, without its values: the author of a request decides
// what of it a rendering prints. An AddOnDeploymentConfig has the names of its variables, and nothing else.
// Of other kinds than CustomResourceDefinitions and AddOnDeploymentConfigs nothing is read, and what
// depends on them is not compared.
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
		standing.Moved, _ = rollout.Records(r.Status.Ledger) // the rollout reports a ledger that cannot be read
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

// unbindable are the cluster sets that a commit binds although the account of the source may not. The hub would refuse
// such a binding, so it selects no cluster in the plan. The operator itself may bind every set.
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
