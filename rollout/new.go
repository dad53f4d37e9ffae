package rollout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// planner is one call of New: the input, what is made of it, and the plan so far.
type planner struct {
	in   *Input
	spec v1alpha1.AddOnRolloutSpec
	fleet

	// now decides what has passed; second, now rounded up, is what the ledger notes.
	now, second    time.Time
	target, stable string
	// missing says why the target's content cannot be had; "" when it can.
	missing string
	// selector of clusters by label; nil: labels install nothing.
	selector labels.Selector
	// install placements as observed, in declared order.
	install []Placement

	tracks []*track
	// unknownGroup holds every cluster of every track: a mandatory group that no placement has.
	unknownGroup error
	// absent have a record and are not in the input any more.
	absent []*unit
	// revert: the target succeeded here before and is gone back to.
	revert bool
	// nowhere is the step of clusters that are in none: no soak, no deadline.
	nowhere        step
	unstagedReason string
	removal        *v1alpha1.RemovalBudget

	admissions            []*unit // that need a slot, in the order in which they were given
	retargeted, departing int     // new reservations that no limit of the ledger cuts
	actions               []Action
	recheck               time.Time
	guard                 string
	// confirming: an approval waits until clusters were missing from decisions that are not
	// settled for long enough.
	confirming bool
}

// New plans for the input. The plan is the same whatever order the input comes in,
// and planning again after it was carried out plans nothing.
//
// The error is ErrInvalidStrategy, ErrUnknownDecisionGroup or ErrCorruptLedger: the
// user, or for the last an operator, must change something. The plan returned with it
// is to be carried out and reported all the same: it admits and removes no cluster, and
// says so for every cluster.
func New(in Input) (Plan, error) {
	p := newPlanner(&in)
	records, err := Records(in.Ledger)
	if err == nil {
		p.attach(records)
		err = validPolicy(in.Spec)
	}
	if in.Rebuild {
		p.useApproval()
	}
	p.assignRoles()
	if err != nil {
		return p.frozen(err), err
	}
	p.unknownGroup = p.buildTracks()
	p.adopt()
	p.settle()
	p.admit()
	if p.unknownGroup == nil {
		p.remove()
	}
	ledger := p.fit()
	p.act()
	plan := p.report()
	plan.Ledger, plan.LedgerChanged = ledger, !sameLedger(ledger, in.Ledger)
	if !plan.LedgerChanged {
		plan.Ledger = in.Ledger
	}
	return plan, p.unknownGroup
}

func newPlanner(in *Input) *planner {
	p := &planner{
		in: in, spec: in.Spec, fleet: newFleet(in.Clusters),
		now: in.Now, second: roundUp(in.Now, time.Second), stable: in.Stable,
		removal: in.Ledger.Removal.DeepCopy(), missing: bounded(in.TargetMissing),
		revert:  in.TargetProven && in.Reverting && !in.Ended,
	}
	if in.Spec.Target != nil {
		p.target = in.Spec.Target.Digest
	}
	if in.Spec.ClusterLabelSelector != nil && in.Spec.Removal == nil {
		// One that cannot be read selects nobody; validPolicy says so.
		p.selector, _ = metav1.LabelSelectorAsSelector(in.Spec.ClusterLabelSelector)
	}
	if p.byPlacements() && p.spec.Removal == nil {
		for _, ip := range p.spec.Install.Placements {
			p.install = append(p.install, p.placementOf(ip.PlacementReference))
		}
	}
	return p
}

// validPolicy is every problem Validate finds as one error.
func validPolicy(spec v1alpha1.AddOnRolloutSpec) error {
	problems := Validate(spec)
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, f := range problems {
		texts[i] = f.Error()
	}
	return fmt.Errorf("%w: %s", ErrInvalidStrategy, strings.Join(texts, "; "))
}

// useApproval takes an approval that stands while the ledger is rebuilt for one that was
// used: who left by it is not known any more, and it must not let others go.
func (p *planner) useApproval() {
	ours := slices.ContainsFunc(p.units, func(u unit) bool { return u.c.Installed == Ours })
	if ours && p.spec.Removal == nil && p.removal == nil && p.removalLifted() {
		p.removal = &v1alpha1.RemovalBudget{Lifted: &v1alpha1.LiftedRemoval{
			Commit: p.in.ApprovedRemoval, At: metav1.NewTime(p.second.Add(-time.Second)),
		}}
	}
}

// title is the name of the step; a nil step has none.
func (s *step) title() string {
	if s == nil {
		return ""
	}
	return s.name
}

// look notes that the plan changes at t, if t is still to come.
func (p *planner) look(t time.Time) {
	if t.After(p.now) && (p.recheck.IsZero() || t.Before(p.recheck)) {
		p.recheck = t
	}
}

// suspended says whether nobody is to be admitted or removed, by the user's word or
// because somebody else is at work.
func (p *planner) suspended() bool {
	return p.spec.Suspend || p.in.Suspended || p.in.Contested != ""
}

// heldFor is what everybody is told who is held for an error.
func heldFor(err error) string { return "held: " + bounded(err.Error()) }

// frozen is the plan when there is no telling what may be done: everything stays.
func (p *planner) frozen(cause error) Plan {
	why := heldFor(cause)
	for i := range p.units {
		u := &p.units[i]
		if !u.member {
			continue
		}
		u.state, u.reason = Waiting, why
		switch {
		case u.record != nil:
			u.state = u.record.State
		case u.c.UpToDate && u.c.Running == p.target:
			u.state, u.reason = Unchanged, "runs the target"
		}
	}
	plan := Plan{
		Ledger: p.in.Ledger, Phase: v1alpha1.PhaseHeld, Message: why, Outcome: Pending,
		Clusters: p.clusterPlans(), Counts: p.counts(),
	}
	if errors.Is(cause, ErrCorruptLedger) {
		plan.Message = why + "; no cluster is admitted until status.ledger is repaired or emptied"
	}
	return plan
}
