package addonsource

import (
	"context"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// follow applies the head of the repository to the hub. It returns nil when the hub has it,
// else a *halt or an error of the hub.
func (p *pass) follow(ctx context.Context) error {
	if err := p.asTenant(ctx); err != nil {
		return err
	}
	publicKeys, err := p.publicKeys(ctx)
	if err != nil {
		return err
	}
	cosignKeys, err := p.cosignKeys(ctx)
	if err != nil {
		return err
	}
	spec, err := fingerprint(p.source.Spec, p.Config, p.tenant, publicKeys, cosignKeys)
	if err != nil {
		return err
	}
	p.spec = spec
	if p.head, err = p.look(ctx); err != nil {
		return err
	}
	switch p.nextStep() {
	case keep:
		if h := p.memory.refusalOf(p.head.String(), p.spec); h != nil {
			return h
		}
		p.untouched = true
		p.memory.failures = 0
		return nil
	case inspect:
		if err := p.mayImpersonate(ctx); err != nil {
			return err
		}
		same, err := p.inspect(ctx)
		if err != nil {
			return err
		}
		if same {
			p.steady = true
			p.memory.failures = 0
			return nil
		}
	case bring, verify:
	}
	if err := p.mayImpersonate(ctx); err != nil {
		return err
	}
	a, err := p.compiled(ctx)
	if err != nil {
		return err
	}
	return p.bring(ctx, a)
}

// nextStep gathers the facts for this pass.
func (p *pass) nextStep() step {
	head := p.head.String()
	a := p.remembered()
	return nextStep(facts{
		head:          head,
		spec:          p.spec,
		attempted:     p.source.Status.LastAttemptedRevision,
		attemptedSpec: p.source.Status.LastAttemptedSpec,
		asked:         p.requested || p.forced,
		compiled:      a != nil,
		explained:     p.memory.refusalOf(head, p.spec) != nil || p.showsRefusal() && p.reported(),
		dependent:     a != nil && a.dependent(),
	})
}

// bring applies a compiled commit to the hub as a whole. If it halts before the first write,
// nothing is applied.
func (p *pass) bring(ctx context.Context, a *attempt) error {
	if err := p.checkScopes(a); err != nil {
		return err
	}
	seen, err := p.observe(ctx, a)
	if err != nil {
		return err
	}
	todo, err := newPlan(p.planInput(a, seen))
	if err != nil {
		return err
	}
	if len(todo.conflicts) > 0 {
		return contested(a.objects, todo.conflicts)
	}
	if err := p.diff(ctx, &todo); err != nil {
		return err
	}
	if err := p.admit(ctx, a, todo); err != nil {
		return err
	}
	p.valid = true
	if err := p.takeOver(ctx, todo); err != nil {
		return err
	}
	if err := p.apply(ctx, todo); err != nil {
		return err
	}
	rollouts, err := p.replacedRollouts(seen)
	if err != nil {
		return err
	}
	overtaken, err := p.overtake(ctx, todo, rollouts)
	if err != nil {
		return err
	}
	if err := p.release(ctx, todo); err != nil {
		return err
	}
	if err := p.finishRemovals(ctx, todo); err != nil {
		return err
	}
	if err := p.prune(ctx, todo); err != nil {
		return err
	}
	if err := p.collect(ctx, todo); err != nil {
		return err
	}
	if len(todo.going) > 0 {
		// All other objects are on the hub, and must be pruned when they leave Git.
		p.source.Status.Inventory = todo.inventory
		return wait(v1alpha1.AddOnDeletedReason, p.backoff(), "waiting for %s to be gone, which was deleted on the hub and is held by finalizers of other writers",
			brief.Names(sortedTexts(todo.going)))
	}
	p.overtaken, p.replaced = overtaken, p.lastVerdict(rollouts)
	p.conclude(todo, seen)
	return nil
}

// conclude records that the commit is on the hub.
func (p *pass) conclude(todo plan, seen *observation) {
	status := &p.source.Status
	status.LastAttemptedRevision, status.LastAttemptedSpec = p.head.String(), p.spec
	p.memory.attempted = p.head.String()
	status.LastAppliedRevision = p.head.String()
	status.AddOns, status.Inventory = todo.addOns, todo.inventory
	status.LastAppliedFields = p.storedFields(seen)
	p.memory.failures, p.memory.forced = 0, false
	p.notes = append(p.notes, todo.notes()...)
}
