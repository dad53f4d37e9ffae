package addonsource

import (
	"context"
	"slices"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// progress is the last step of a pass on the head of the repository.
type progress int

const (
	// The head is not known, or its verdict must be reported again.
	_ progress = iota
	// unanswered: the Git server has not answered yet. The pass does not report on the repository; reports about the
	// fleet continue.
	unanswered
	// kept: the head was refused before, and the conditions have the verdict.
	kept
	// steady: the hub agrees with the status.
	steady
	// judged: the head was read and compiled, even if there was an earlier verdict.
	judged
	// valid: the head has no problem, as far as the hub knows.
	valid
)

// outcome is the result of a pass for the head. If the pass returned no error, the head is on the hub.
type outcome struct {
	reached progress
	// content identifies the declarations of the head; it is set when the head is valid.
	content string
	// notes are added to the text of an applied commit.
	notes []string
	// overtaken is content that the head replaced before its rollout saw it.
	overtaken []overtaken
	// replaced is the last status of the commit that the head replaced; nil if there is none.
	replaced *commitstatus.Want
}

// unchanged reports whether the conditions already have all facts about the head.
func (o outcome) unchanged() bool { return o.reached == unanswered || o.reached == kept }

// follow applies the head of the repository to the hub. The error is nil if the hub has the head, errAway while the
// Git server has not answered, otherwise a *halt or an error of the hub.
func (p *pass) follow(ctx context.Context) (outcome, error) {
	err := p.readSettings(ctx)
	if err != nil {
		return outcome{}, err
	}
	if p.head, err = p.look(ctx); err != nil {
		return outcome{}, err
	}
	next := p.nextStep()
	if next == keep {
		if h := p.memory.refusalOf(p.head.String(), p.spec); h != nil {
			return outcome{}, h
		}
		p.memory.failures = 0
		return outcome{reached: kept}, nil
	}
	if err := p.mayImpersonate(ctx); err != nil {
		return outcome{}, err
	}
	if next == inspect {
		same, err := p.inspect(ctx)
		if err != nil {
			return outcome{}, err
		}
		if same {
			p.memory.failures = 0
			return outcome{reached: steady}, nil
		}
	}
	a, err := p.attempt(ctx)
	if err != nil {
		return outcome{}, err
	}
	if err := p.compile(ctx, a); err != nil {
		return outcome{reached: judged}, err
	}
	return p.advance(ctx, a)
}

// readSettings reads the objects to which the spec refers: the tenant's bounds and the Secrets with keys. It makes
// the fingerprint of all inputs of the verdict.
func (p *pass) readSettings(ctx context.Context) error {
	if err := p.asTenant(ctx); err != nil {
		return err
	}
	verification, publicKeys, err := p.publicKeys(ctx)
	if err != nil {
		return err
	}
	cosign, cosignKeys, err := p.cosignKeys(ctx)
	if err != nil {
		return err
	}
	p.verification, p.cosign = verification, cosign
	p.spec, err = fingerprint(p.source.Spec, p.Config, p.tenant, publicKeys, cosignKeys)
	return err
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

// advance applies a compiled commit to the hub as a whole. If it halts before the first write,
// nothing is applied.
func (p *pass) advance(ctx context.Context, a *attempt) (outcome, error) {
	out := outcome{reached: judged}
	todo, seen, err := p.judge(ctx, a)
	if err != nil {
		return out, err
	}
	if err := p.own(ctx, a, todo); err != nil {
		return out, err
	}
	out.reached, out.content = valid, declarationOf(todo.addOns)
	if err := p.intend(ctx, todo, p.ownRollouts(seen)); err != nil {
		return out, err
	}
	if err := p.apply(ctx, todo); err != nil {
		return out, err
	}
	rollouts, err := p.replacedRollouts(seen)
	if err != nil {
		return out, err
	}
	out.replaced = p.lastVerdict(rollouts)
	overtaken, err := p.overtake(ctx, todo, rollouts)
	if err != nil {
		return out, err
	}
	if err := p.release(ctx, todo); err != nil {
		return out, err
	}
	if err := p.finishRemovals(ctx, todo); err != nil {
		return out, err
	}
	if err := p.prune(ctx, todo); err != nil {
		return out, err
	}
	if err := p.collect(ctx, todo); err != nil {
		return out, err
	}
	if len(todo.going) > 0 {
		return out, wait(v1alpha1.AddOnDeletedReason, p.backoff(), "waiting for %s to disappear: it was deleted on the hub and still has finalizers",
			brief.Names(sortedTexts(todo.going)))
	}
	p.conclude(todo, seen)
	return outcome{reached: valid, notes: todo.notes(), overtaken: overtaken, replaced: out.replaced}, nil
}

// judge checks a compiled commit against the hub, and returns the plan of its writes. It changes no field of
// an object; takeFields may change the manager of a field. A pull request is judged by the same checks.
func (p *pass) judge(ctx context.Context, a *attempt) (plan, *observation, error) {
	if err := p.checkScopes(a); err != nil {
		return plan{}, nil, err
	}
	seen, err := p.observe(ctx, a)
	if err != nil {
		return plan{}, nil, err
	}
	todo, err := newPlan(p.planInput(a, seen))
	if err != nil {
		return plan{}, nil, err
	}
	if len(todo.conflicts) > 0 {
		return plan{}, nil, contested(a.objects, todo.conflicts)
	}
	if todo, err = p.diff(ctx, todo); err != nil {
		return plan{}, nil, err
	}
	if conflicts := p.contests(todo.changes()); len(conflicts) > 0 { // before own, which takes the fields of the other client
		return plan{}, nil, contested(a.objects, conflicts)
	}
	if err := p.dryRun(ctx, a, todo); err != nil {
		return plan{}, nil, err
	}
	return todo, seen, nil
}

// intend stores, before the first write, which commit needs a verdict, and which objects must be pruned when they
// leave Git. It also stores the verdict on the applied commit, because the rollouts no longer show it after they have
// the head. If the operator is killed before conclude, the next operator knows this, even if the head has changed.
func (p *pass) intend(ctx context.Context, todo plan, rollouts map[string]*v1alpha1.AddOnRollout) error {
	if !todo.writes() {
		return nil
	}
	status := &p.source.Status
	inventory := slices.SortedFunc(slices.Values(slices.Concat(status.Inventory, todo.inventory)), compareReferences)
	status.Inventory = slices.CompactFunc(inventory, func(a, b v1alpha1.ObjectReference) bool { return compareReferences(a, b) == 0 })
	if p.source.Spec.CommitStatus != nil && p.Desk.Owns(ctx, p.source) {
		book := p.Desk.Open(p.key(), p.source, status.CommitStatuses)
		if last := p.lastVerdict(rollouts); last != nil {
			book.Enter(*last)
		}
		if !p.reported() {
			want := p.want(p.head.Commit, commitstatus.Pending, p.applying())
			want.Content = declarationOf(todo.addOns)
			book.Enter(want)
		}
		status.CommitStatuses = book.Stored()
	}
	if err := p.store(ctx); err != nil {
		return retry(v1alpha1.ApplyFailedReason, err)
	}
	p.before = p.source.DeepCopy()
	return nil
}

// conclude stores that the commit is on the hub.
func (p *pass) conclude(todo plan, seen *observation) {
	status := &p.source.Status
	status.LastAttemptedRevision, status.LastAttemptedSpec = p.head.String(), p.spec
	p.memory.attempted = p.head.String()
	status.LastAppliedRevision = p.head.String()
	status.AddOns, status.Inventory = todo.addOns, todo.inventory
	status.LastAppliedFields = p.storedFields(seen)
	p.memory.failures, p.memory.forced = 0, false
}
