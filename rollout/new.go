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
	// unknownGroup is what keeps everybody where they are, in whichever track they are: a
	// mandatory group that no placement has.
	unknownGroup error
	// stored are the reservations of whole steps in the ledger.
	stored []allWave
	// strangers stand in the ledger and are in the install set no more.
	strangers []*unit
	// vanished are those of them that were admitted to the target, and not done.
	vanished []*unit
	// nowhere has the clusters that are in no step; their entries are settled there.
	nowhere        step
	unstagedReason string
	removal        *v1alpha1.RemovalBudget

	grants  []grant
	moved   int // retargets and removals, which no limit cuts
	actions []Action
	recheck time.Time
	guard   string
	// confirming: an approval waits until decisions that are not settled go on missing
	// somebody.
	confirming bool
	words      phrases
}

// New plans for the input. The plan is the same whatever order the input comes in,
// and planning again after it was carried out plans nothing.
//
// The error is ErrInvalidStrategy, ErrUnknownDecisionGroup or ErrCorruptLedger: the
// user, or for the last an operator, must change something. The plan returned with it
// is to be carried out and reported all the same: it admits nobody and removes
// nobody, and says so for every cluster.
func New(in Input) (Plan, error) {
	p := newPlanner(&in)
	stored, err := decode(in.Ledger)
	if err == nil {
		p.attach(stored)
		err = validPolicy(in.Spec)
	}
	if p.rebuilds() {
		p.useApproval()
	}
	p.assignRoles()
	if err != nil {
		return p.frozen(err), err
	}
	p.unknownGroup = p.buildTracks()
	p.bind()
	p.partStrangers()
	p.rebuild()
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

// attach gives the clusters their entries.
func (p *planner) attach(stored record) {
	at := p.cursor()
	for name, e := range stored.entries {
		own := *e
		if u := at.find(name); u != nil {
			u.entry = &own
		} else {
			p.strangers = append(p.strangers, &unit{c: &Cluster{Name: name}, entry: &own})
		}
	}
	at = p.cursor()
	for name, since := range stored.departed {
		if u := at.find(name); u != nil {
			u.departed = since
		}
	}
	p.stored = stored.all
}

// rebuild makes a ledger for an empty status from what runs: whoever differs from the
// stable revision, or has works at all before there is one, is in flight from now.
// Never started over: those clusters hold slots and soak like anybody admitted now.
func (p *planner) rebuild() {
	if !p.rebuilds() {
		return
	}
	for i := range p.units {
		u := &p.units[i]
		running := u.c.Running
		if !u.member || running == "" || running == Foreign || p.stable != "" && u.c.UpToDateStable {
			continue
		}
		if running == Mixed {
			running = p.target
		}
		if running != "" {
			u.entry = &entry{revision: running, stage: u.step.title(), admittedAt: p.second}
		}
	}
}

// rebuilds tells whether the status is empty: whether there is a ledger to rebuild.
func (p *planner) rebuilds() bool {
	return p.in.Previous.Target == "" && len(p.in.Ledger.Waves)+len(p.in.Ledger.Parked) == 0
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
		case u.entry != nil && u.entry.parked:
			u.state = Parked
		case u.entry != nil:
			u.state = Admitted
		case u.c.UpToDate && u.c.Running == p.target:
			u.state, u.reason = Succeeded, "runs the target"
		}
	}
	plan := Plan{
		Ledger: p.in.Ledger, Phase: v1alpha1.PhaseHeld, Message: why, Outcome: Pending,
		Clusters: p.clusterPlans(), Counts: p.counts(),
	}
	if errors.Is(cause, ErrCorruptLedger) {
		plan.Message = why + "; nobody is admitted until status.ledger is repaired or emptied"
	}
	return plan
}
