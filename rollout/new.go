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

// planner is the state of one call of New.
type planner struct {
	in   *Input
	spec v1alpha1.AddOnRolloutSpec
	fleet

	// now is compared with stored times. second is now rounded up, as the ledger stores it.
	now, second    time.Time
	target, stable string
	// missing says why the target's content is not available; "": it is.
	missing string
	// selector selects clusters by label; nil: labels install nothing.
	selector labels.Selector
	// install placements as observed, in declared order.
	install []Placement

	tracks []*track
	// steps of the tracks, in order; named has them by name.
	steps []*step
	named map[string]*step
	// unknownGroup is a mandatory group that no placement has; it holds every track.
	unknownGroup error
	// names are the names in the stored ledger. absent are clusters that have a record but are not in the input.
	names  []string
	absent []*unit
	// revert: clusters that run other content move back to a proven target. revertOpen: that revert has not ended.
	revert, revertOpen bool
	// nowhere is the step of clusters without a step. It has no soak and no deadline.
	nowhere        step
	unstagedReason string
	// removed is the stored record of removals, removal the plan of this call.
	removed removal.Record
	removal removal.Plan

	admissions []*unit // clusters that were adopted or admitted to a free slot, in order
	retargeted int     // number of clusters in flight that move to the target in their slot; admissions does not have them
	actions    []Action
	asks       []Ask
	passed     []Ask
	promotions map[string]int // number of soaks that orders ended, by stage
	recheck    time.Time
}

// New plans for the input. The plan does not depend on the order of the input. After the plan was carried out, a
// second plan has no actions.
//
// The error is ErrInvalidStrategy, ErrUnknownDecisionGroup or ErrCorruptLedger; the user must fix the policy or the
// ledger. The caller carries out and reports the plan that is returned with the error, too. That plan admits and
// removes no cluster, and gives each cluster the reason.
func New(in Input) (Plan, error) {
	p := newPlanner(&in)
	err := p.attach(in.Ledger)
	if err == nil {
		err = validPolicy(in.Spec)
	}
	p.passBy()
	p.assignRoles()
	if err != nil {
		return p.frozen(err), err
	}
	p.carryOver()
	p.relinquish()
	tried := p.retry()
	p.unknownGroup = p.buildTracks()
	p.restage(tried)
	p.adopt()
	p.completeSteps()
	p.remove()
	p.observe()
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
		revert:  in.TargetProven && in.Reverting, promotions: map[string]int{},
	}
	p.revertOpen = p.revert && !in.Ended && !in.Returned
	if in.Spec.Target != nil {
		p.target = in.Spec.Target.Digest
	}
	if in.Spec.ClusterLabelSelector != nil && in.Spec.Removal == nil {
		// An invalid selector selects no cluster; validPolicy reports it.
		p.selector, _ = metav1.LabelSelectorAsSelector(in.Spec.ClusterLabelSelector)
	}
	if p.byPlacements() && p.spec.Removal == nil {
		for _, ip := range p.spec.Install.Placements {
			p.install = append(p.install, p.placementOf(ip.PlacementReference))
		}
	}
	return p
}

// validPolicy returns all findings of Validate as one error.
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
	if t.After(p.now) {
		p.recheck = clock.First(p.recheck, t)
	}
}

// suspended reports whether no cluster may be admitted or removed, because the user suspended
// the rollout or the add-on has another owner.
func (p *planner) suspended() bool {
	return p.spec.Suspend || p.in.Suspended || p.in.Contested != ""
}

// heldFor is the reason of clusters that an error holds.
func heldFor(err error) string { return "held: " + bounded(err.Error()) }

// frozen is the plan for a policy or ledger that cannot be read: nothing changes.
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
