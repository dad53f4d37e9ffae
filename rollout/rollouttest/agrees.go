package rollouttest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// counts puts every cluster in one of the counts.
func (n *naive) counts(fates map[string]Fate) v1alpha1.Counts {
	var c v1alpha1.Counts
	for name, f := range fates {
		o := n.clusters[name]
		staged := n.in.Spec.Removal != nil || f.Kind != "unstaged"
		if _, in := n.stepOf(name); !in && len(n.steps) > 0 {
			staged = false
		}
		switch {
		case n.leaving(name), !o.Gone && o.Installed == rollout.Deleting:
			c.Removing++
		case f.Kind == "outside":
			if !o.Gone && n.chosen[name] {
				c.Ignored++
			}
		case !staged:
			c.Unstaged++
		default:
			c.Total++
			n.count(&c, name, f)
		}
	}
	return c
}

func (n *naive) count(c *v1alpha1.Counts, name string, f Fate) {
	reachable := n.clusters[name].Reachable
	switch f.Kind {
	case fateFlying:
		c.InFlight++
	case fateParked, "away":
		c.Parked++
	case fateDone, fateUnchanged:
		c.Updated++
	case fateFailed:
		switch {
		case f.ours:
			c.Failed++
		case reachable:
			c.Waiting++ // failed at what came before
		default:
			c.Parked++
		}
	default:
		c.Waiting++
	}
}

// phase is where the rollout as a whole stands; "" for a removal, which is none.
func (n *naive) phase(fates map[string]Fate) v1alpha1.Phase {
	complete, spent, flying := n.sum(fates)
	switch {
	case n.in.Spec.Removal != nil:
		return ""
	case n.target() == "":
		return v1alpha1.PhaseProgressing
	case n.ended() && !n.widened(fates):
		return v1alpha1.PhaseSucceeded // it stays so while others catch up
	case spent:
		return v1alpha1.PhaseFailed
	case complete:
		return n.completePhase(fates)
	case n.in.Contested != "":
		return v1alpha1.PhaseHeld
	case n.suspended():
		return v1alpha1.PhaseSuspended
	case n.heldShare(fates):
		return v1alpha1.PhaseHeld
	case n.in.TargetMissing != "":
		return v1alpha1.PhaseProgressing
	case flying == 0 && n.everyTrackHeld(fates):
		return v1alpha1.PhaseHeld
	}
	return v1alpha1.PhaseProgressing
}

// completePhase is the phase where all steps are complete.
func (n *naive) completePhase(fates map[string]Fate) v1alpha1.Phase {
	if c := n.counts(fates); n.provenTarget() && c.Updated == 0 && c.Total > 0 {
		return v1alpha1.PhaseProgressing
	}
	return v1alpha1.PhaseSucceeded
}

// widened tells whether somebody moves who was in no step when the rollout ended.
func (n *naive) widened(fates map[string]Fate) bool {
	total := 0
	for i, s := range n.steps {
		moving := n.moving(i, fates)
		if moving > 0 && !slices.Contains(n.in.Previous.Stages, s.Name) {
			return true
		}
		total += moving
	}
	c := n.counts(fates)
	return total > 0 && c.Unstaged < n.in.Previous.Unstaged && c.Total > n.in.Previous.Total
}

// moving counts the members of a step that are to get the target yet, stay, and do not join.
func (n *naive) moving(i int, fates map[string]Fate) int {
	count := 0
	for _, name := range n.steps[i].Members {
		f := fates[name]
		joins := f.InLedger && f.joining || n.class(name, f) == "joiner"
		open := f.Kind == fateFlying || f.Kind == fateWaiting || f.Kind == fateFailed && !f.ours && n.clusters[name].Reachable
		if open && !joins && !n.leaving(name) {
			count++
		}
	}
	return count
}

// sum is over all steps: whether all are complete, any is spent, and how many are in flight.
func (n *naive) sum(fates map[string]Fate) (complete, spent bool, flying int) {
	complete = true
	for i := range n.steps {
		complete = complete && n.completed(i, fates)
		spent = spent || n.spent(i, fates)
		_, _, _, f := n.stands(i, fates)
		flying += f
	}
	return complete, spent, flying
}

// heldShare tells whether RollingUpdateWithPlacement has moved its share.
func (n *naive) heldShare(fates map[string]Fate) bool {
	if len(n.steps) != 2 || !n.steps[1].ByStrategy || !n.completed(0, fates) || n.completed(1, fates) {
		return false
	}
	_, _, _, flying := n.stands(1, fates)
	return flying == 0
}

// everyTrackHeld tells whether the first step of every track that is not complete is held.
func (n *naive) everyTrackHeld(fates map[string]Fate) bool {
	for i, s := range n.steps {
		first := !slices.ContainsFunc(s.Before, func(j int) bool { return !n.completed(j, fates) })
		if first && !n.completed(i, fates) && !s.Held && !n.abandoned(i, fates) {
			return false
		}
	}
	return true
}

// Agrees compares a plan with the oracle's forecast: the ledger, every cluster, counts and
// phase; refused is the planner's error. A plan that was cut to the ledger's limit cannot be
// compared.
func (f Forecast) Agrees(plan rollout.Plan, refused error) error {
	admissions, err := rollout.Admissions(plan.Ledger)
	if err != nil {
		return err
	}
	ledger, whole := map[string]rollout.Admission{}, []rollout.Admission(nil)
	for _, a := range admissions {
		if a.Cluster == "" {
			whole = append(whole, a)
		} else {
			ledger[a.Cluster] = a
		}
	}
	slices.SortFunc(f.Whole, func(a, b rollout.Admission) int {
		return cmp.Or(strings.Compare(a.Stage, b.Stage), strings.Compare(a.Revision, b.Revision))
	})
	if Snapshot(whole) != Snapshot(f.Whole) {
		return fmt.Errorf("whole stages: the ledger has %+v, the oracle says %+v", whole, f.Whole)
	}
	for _, c := range plan.Clusters {
		if err := f.agrees(c, ledger); err != nil {
			return fmt.Errorf("%s: %w (plan %+v, oracle %+v)", c.Name, err, c, f.Fates[c.Name])
		}
	}
	if plan.Counts != f.Counts {
		return fmt.Errorf("counts are %+v, the oracle says %+v", plan.Counts, f.Counts)
	}
	if refused != nil {
		f.Phase = v1alpha1.PhaseHeld // a mandatory group that is unknown
	}
	if f.Phase != "" && plan.Phase != f.Phase {
		return fmt.Errorf("phase is %s (%s), the oracle says %s", plan.Phase, plan.Message, f.Phase)
	}
	return nil
}

func (f Forecast) agrees(c rollout.ClusterPlan, ledger map[string]rollout.Admission) error {
	want := f.Fates[c.Name]
	got, named := ledger[c.Name]
	if got.Failed && want.Kind == fateFailed {
		return nil // it is let go with this plan, which the oracle does not know
	}
	switch {
	case named != (want.InLedger && !want.Covered):
		return fmt.Errorf("in the ledger: %t", named)
	case named && (got.Revision != want.Revision || got.Parked != want.Parked || !got.VerifiedAt.Equal(want.VerifiedAt)):
		return fmt.Errorf("the ledger has %+v", got)
	case named && !got.Parked && !got.AdmittedAt.Equal(want.AdmittedAt):
		return fmt.Errorf("admitted at %s", got.AdmittedAt)
	}
	if kind := kindOf(c); want.Kind != "outside" && c.State != rollout.Removing && kind != want.Kind {
		return fmt.Errorf("is %s", c.State)
	}
	return nil
}

func kindOf(c rollout.ClusterPlan) string {
	switch {
	case c.State.InFlight():
		return fateFlying
	case c.State == rollout.Failed || c.State == rollout.TimedOut:
		return fateFailed
	case c.State == rollout.Succeeded:
		return "done"
	case c.State == rollout.Unreachable || c.State == rollout.HeldBack:
		return "away"
	}
	return map[rollout.State]string{
		rollout.Unchanged: fateUnchanged, rollout.Parked: fateParked, rollout.Waiting: fateWaiting, rollout.Unstaged: "unstaged",
	}[c.State]
}
