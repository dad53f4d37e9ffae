package rollout

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/removal"
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
	// steps of the tracks, in order; named has them by name.
	steps []*step
	named map[string]*step
	// unknownGroup holds every cluster of every track: a mandatory group that no placement has.
	unknownGroup error
	// absent have a record and are not in the input any more.
	absent []*unit
	// revert: the target succeeded here before and is gone back to.
	revert bool
	// nowhere is the step of clusters that are in none: no soak, no deadline.
	nowhere        step
	unstagedReason string
	// removed is what the ledger remembers of removals, removal what is planned now.
	removed removal.Record
	removal removal.Plan

	admissions []*unit // that need a slot, in the order in which they were given
	retargeted int     // admissions in a slot that the cluster has
	actions    []Action
	recheck    time.Time
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
	err := p.attach(in.Ledger)
	if err == nil {
		err = validPolicy(in.Spec)
	}
	p.assignRoles()
	if err != nil {
		return p.frozen(err), err
	}
	p.carryOver()
	p.unknownGroup = p.buildTracks()
	p.remove()
	p.adopt()
	p.settle()
	p.admit()
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
		now: in.Now, second: clock.RoundUp(in.Now, time.Second), stable: in.Stable,
		missing: bounded(in.TargetMissing),
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
			u.state = u.record.shown()
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
