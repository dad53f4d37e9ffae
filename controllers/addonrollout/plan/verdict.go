package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Verdict is the content of the conditions, without the phase.
type Verdict struct {
	// Stalled is the reason of a problem that only the user can fix; "": there is none.
	Stalled string
	// Waiting is the reason of a wait that ends by itself; "": there is none.
	Waiting string
	Message string
	// Place is FILE:LINE of the problem, Object the object there; "": Git does not declare it.
	Place, Object string
}

// Text is the message with the place.
func (v Verdict) Text() string {
	if v.Place == "" {
		return v.Message
	}
	return v.Message + " at " + v.Place + ": " + v.Object
}

// BlamesOthers reports whether a problem that only the user can fix is not in the content that is rolled out.
func (v Verdict) BlamesOthers() bool {
	return v.Stalled != "" && v.Stalled != v1alpha1.RolloutFailedReason && v.Stalled != v1alpha1.RolledBackReason
}

// verdictOf turns an error of observing or planning into a verdict.
func verdictOf(err error) (Verdict, bool) {
	switch {
	case errors.Is(err, rollout.ErrInvalidStrategy), errors.Is(err, rollout.ErrUnknownDecisionGroup):
		return Verdict{Stalled: v1alpha1.InvalidRolloutStrategyReason, Message: err.Error()}, true
	case errors.Is(err, ErrInvalidTenants):
		return Verdict{Stalled: v1alpha1.InvalidTenantsReason, Message: err.Error()}, true
	case errors.Is(err, ErrTenantDenied):
		return Verdict{Stalled: v1alpha1.TenantDeniedReason, Message: err.Error()}, true
	case errors.Is(err, render.ErrInvalidHealth):
		return Verdict{Stalled: v1alpha1.InvalidHealthReason, Message: err.Error()}, true
	case errors.Is(err, rollout.ErrCorruptLedger):
		return Verdict{Stalled: v1alpha1.InvalidLedgerReason, Message: err.Error()}, true
	case errors.Is(err, errFenced):
		return Verdict{Waiting: v1alpha1.OwnershipConflictReason, Message: err.Error()}, true
	case errors.Is(err, ErrOwnership):
		return Verdict{Stalled: v1alpha1.OwnershipConflictReason, Message: err.Error()}, true
	}
	return Verdict{}, false
}

// locate adds the place where Git declares the pace. No commit declares the pace of an add-on that is being removed,
// or fields that another writer changed.
func (v *Verdict) locate(ro *v1alpha1.AddOnRollout) {
	if !ro.SpecEdited() && ro.Spec.Removal == nil {
		v.Place, v.Object = ro.Annotations[v1alpha1.PacePlaceAnnotation], ro.Annotations[v1alpha1.PaceObjectAnnotation]
	}
}

// guardMessage says why a removal is held, and how to lift the guard.
func guardMessage(p rollout.Plan) string {
	if p.GuardHint == "" {
		return p.Guard
	}
	return p.Guard + "; " + p.GuardHint
}

// waitsFor says for what a valid plan waits, besides the turn of its clusters: for example a missing revision, a
// placement without decisions, a guard, or a user who must look at clusters that failed after the success of the
// rollout.
func waitsFor(o *Observation, in rollout.Input, plan rollout.Plan, next v1alpha1.AddOnRolloutStatus) Verdict {
	v, ro := Verdict{}, o.Rollout
	switch {
	case o.stranded() != "":
		v = Verdict{Stalled: v1alpha1.RolledBackReason, Message: o.stranded()}
	case len(o.Cycle) > 0:
		v = Verdict{Stalled: v1alpha1.DependencyCycleReason, Message: o.cycleMessage()}
	case in.TargetMissing != "":
		v = Verdict{Waiting: v1alpha1.RevisionMissingReason, Message: missingMessage(o, in, plan)}
	case plan.Halted:
		v = Verdict{Stalled: v1alpha1.RolloutFailedReason, Message: plan.Message}
	case ro.DeletionTimestamp != nil && ro.Spec.Removal == nil && !ro.Releasing():
		v = keptVerdict(o.Uninstalling, in, plan)
	case ro.Spec.Removal == nil && plan.Phase == v1alpha1.PhaseHeld && plan.Outcome == rollout.Pending && absent(in.Placements):
		v = Verdict{Waiting: v1alpha1.ReferenceNotFoundReason, Message: plan.Message}
	case ro.Spec.Removal == nil && plan.Phase == v1alpha1.PhaseHeld && plan.Outcome == rollout.Pending && !AllSettled(in.Placements):
		v = Verdict{Waiting: v1alpha1.PlacementUndecidedReason, Message: plan.Message}
	case plan.Guard == "":
	case next.Phase == v1alpha1.PhaseFailed:
		v = Verdict{Stalled: v1alpha1.RolloutFailedReason, Message: next.Message}
	case next.Phase == v1alpha1.PhaseRolledBack:
		v = Verdict{Stalled: v1alpha1.RolledBackReason, Message: next.Message}
	default:
		return Verdict{Waiting: v1alpha1.DeletionGuardReason, Message: guardMessage(plan)}
	}
	if plan.Guard != "" {
		v.Message += "; " + guardMessage(plan)
	}
	return v
}

// keptVerdict says why a rollout that is being deleted still exists, and when the wait ends. cause is the reason for
// which all rollouts are deleted; "": only this one is deleted.
func keptVerdict(cause string, in rollout.Input, plan rollout.Plan) Verdict {
	have := 0
	for i := range in.Clusters {
		if c := &in.Clusters[i]; c.Installed != "" && c.Installed != rollout.NotInstalled {
			have++
		}
	}
	message := fmt.Sprintf("%s; the AddOnRollout is being deleted: it stays and works as before while a cluster has the add-on (now %s); "+
		"to keep the add-on, do nothing; to remove it, remove it from Git", plan.Message, brief.Count(have, "cluster"))
	if cause != "" {
		message = fmt.Sprintf("%s; %s is being deleted: the add-on stays on %s; %s", plan.Message, cause, brief.Count(have, "cluster"), v1alpha1.UninstallAdvice)
	}
	if plan.Phase == v1alpha1.PhaseFailed {
		return Verdict{Stalled: v1alpha1.RolloutFailedReason, Message: message}
	}
	return Verdict{Waiting: v1alpha1.DeletionGuardReason, Message: message}
}

func absent(placements []rollout.Placement) bool {
	return slices.ContainsFunc(placements, func(p rollout.Placement) bool { return p.Settlement == rollout.Missing })
}

// missingMessage says which revision is missing, which clusters wait for it, and how to restore
// it.
func missingMessage(o *Observation, in rollout.Input, plan rollout.Plan) string {
	ro := o.Rollout
	held := slices.DeleteFunc(slices.Clone(plan.Clusters), func(c rollout.ClusterPlan) bool {
		return c.Revision != o.Target.Digest || c.State == rollout.Removing || c.State == rollout.Gone
	})
	return fmt.Sprintf("%s: %s; if source %s still declares this content, restore it: addonflow reconcile source %[3]s -n %[4]s",
		in.TargetMissing, heldText(held), ro.Spec.Target.Source, ro.Namespace)
}

// heldText counts the clusters that run the missing revision and names the first of them.
func heldText(held []rollout.ClusterPlan) string {
	if len(held) == 0 {
		return "no cluster runs it, and no cluster is admitted"
	}
	var names []string
	for _, c := range held[:min(brief.Shown, len(held))] {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("its content stays, without repair, on %s (%s), and no cluster is admitted", brief.Count(len(held), "cluster"), brief.NamesOf(len(held), names))
}

// Summaries are the statuses of the add-on and its stages on a commit. If the rollout cannot be planned, the add-on
// says why, and the stages have no status.
func (p *Plan) Summaries() []rollout.Summary {
	all := p.summaries()
	if mistaken := p.Observed.Mistaken(); mistaken != "" {
		all[0].Description = mistaken + "; " + all[0].Description
	}
	for _, aside := range p.asides() {
		if !strings.Contains(all[0].Description, aside) {
			all[0].Description += "; " + aside
		}
	}
	return all
}

func (p *Plan) summaries() []rollout.Summary {
	if override := p.Observed.Override; p.Err == nil && override.Returns() {
		if why := p.Observed.stranded(); why != "" {
			return []rollout.Summary{{State: rollout.Failure, Description: why}}
		}
		said := p.Next
		if p.Planned.Halted {
			said.Phase = v1alpha1.PhaseFailed
		}
		said.Override = override // an order to unblock removed it from the status, and no cluster has the content yet
		text := backText(said, way{p.Stay(), v1alpha1.LastCommit(p.Observed.Rollout.Annotations, p.Observed.Target)})
		if said.Phase == v1alpha1.PhaseFailed { // the problem comes first, because a description has no room for the reason
			text = problemText(p.Planned.Message, p.Planned.Counts) + "; " + wayText(said, p.Stay())
		}
		return []rollout.Summary{{State: rollout.Failure, Description: text}}
	}
	if p.Err == nil {
		said := p.Planned
		if said.Outcome == rollout.Success && p.recovers() {
			said.Outcome = rollout.Pending
		}
		if p.Verdict.Stalled != "" && said.Outcome != rollout.Failure { // no commit is greener than its rollout
			said.Outcome, said.Message = rollout.Failure, p.Verdict.Message
		}
		return rollout.Summarise(said)
	}
	s := rollout.Summary{State: rollout.Pending, Description: p.Verdict.Message}
	if p.Verdict.Stalled != "" {
		s.State = rollout.Failure
	}
	return []rollout.Summary{s}
}

// recovers reports whether a rollout was halted after its end, and clusters do not have the content again yet.
func (p *Plan) recovers() bool {
	stored, c := rollout.Outcome(p.Observed.Rollout.Status.Outcome), p.Planned.Counts
	return p.Input.Ended && (stored == rollout.Failure || stored == rollout.Pending) && c.InFlight+c.Waiting > 0
}

// asides are further facts for the user: which clusters keep bad content because no stage moves them, and which
// writes besides the status the hub refused.
func (p *Plan) asides() []string {
	o, bad, names := p.Observed, map[string]bool{}, []string(nil)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		if c.Planned.State != rollout.Unstaged {
			continue
		}
		runs := c.Running()
		if _, known := bad[runs]; !known {
			_, bad[runs] = o.barredBy(o.known(runs))
		}
		if bad[runs] {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return o.RefusedWrites
	}
	shown := names[:min(len(names), failingKept)]
	if more := len(names) - len(shown); more > 0 {
		shown = append(slices.Clone(shown), fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("%d in no stage with quarantined or blocked content (%s)", len(names), strings.Join(shown, ", "))
	return slices.Insert(slices.Clone(o.RefusedWrites), 0, text)
}

// AllSettled reports whether the decisions of every placement are complete. Otherwise the stages of its decision
// groups may be missing for a moment.
func AllSettled(placements []rollout.Placement) bool {
	return !slices.ContainsFunc(placements, func(p rollout.Placement) bool { return p.Settlement != rollout.Settled })
}
