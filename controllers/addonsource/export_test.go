package addonsource

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/proposal"
)

// Stop ends the errand of a source.
func (r *Reconciler) Stop(source types.NamespacedName) { r.errands.stop(source) }

// Await waits for the errand of a source, for tests that run the passes themselves. It returns
// false if there is none.
func (r *Reconciler) Await(source types.NamespacedName) bool {
	r.errands.mu.Lock()
	sent := r.errands.of[source]
	r.errands.mu.Unlock()
	if sent == nil {
		return false
	}
	<-sent.done
	return true
}

// TakeAllPlaces leaves no place for an errand until the returned function runs.
func (r *Reconciler) TakeAllPlaces() (free func()) {
	take := func(n int) {
		r.errands.mu.Lock()
		defer r.errands.mu.Unlock()
		r.errands.running[group{}] += n
		r.errands.startWaiting()
	}
	take(errandsAtOnce)
	return func() { take(-errandsAtOnce) }
}

// JudgeBeside judges the commit that the source has applied as the plan of a pull request judges one.
func (r *Reconciler) JudgeBeside(ctx context.Context, source *v1alpha1.AddOnSource) error {
	p, err := r.beside(ctx, source)
	if err != nil {
		return err
	}
	a := r.memories.attempt(p.key().NamespacedName)
	p.head.Commit = "another"
	return p.judgeBeside(ctx, &attempt{objects: a.objects, commit: a.commit})
}

// PlanBeside returns the plan of a request whose head is a reference of the repository.
func (r *Reconciler) PlanBeside(ctx context.Context, source *v1alpha1.AddOnSource, request commitstatus.Request) (proposal.Proposal, error) {
	p, err := r.beside(ctx, source)
	if err != nil {
		return proposal.Proposal{}, err
	}
	repository, err := p.openGit(ctx)
	if err != nil {
		return proposal.Proposal{}, err
	}
	none := func(context.Context) (proposal.Fleet, error) { return proposal.Fleet{}, nil }
	g := &planning{pass: p, visit: &visit{known: p.memories.charts(p.key().NamespacedName, p.spec)}, planner: NewPlanner(r, none), repository: repository, request: request}
	merge, err := g.read(ctx)
	if err != nil {
		return proposal.Proposal{}, err
	}
	return g.plan(ctx, merge)
}

// StatusOfOthers is the predicate of that name.
func (r *Reconciler) StatusOfOthers() predicate.Predicate { return r.statusOfOthers() }
