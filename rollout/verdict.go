package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// verdict is the phase of the whole rollout, with its text and outcome.
type verdict struct {
	phase   v1alpha1.Phase
	message string
	outcome Outcome
	// complete: every step of every track is complete.
	complete bool
	// halted: the rollout ended Succeeded, and later a breach stopped the clusters that came afterwards.
	halted bool
	// abandoned: the rollout is Failed although neither a cluster nor a gate failed.
	abandoned bool
}

// judge reads the tallies. A breach makes the rollout Failed at once, even while clusters are in flight. A rollout
// that ended Succeeded stays Succeeded while joiners and returning clusters catch up. If a breach stops them, the
// rollout is halted, and the commit gets a new status.
func (p *planner) judge(counts v1alpha1.Counts) verdict {
	if p.spec.Removal != nil {
		return p.judgeRemoval()
	}
	if p.target == "" {
		return verdict{phase: v1alpha1.PhaseProgressing, message: "there is no revision to roll out yet"}
	}
	v := verdict{complete: p.complete()}
	t, i := p.firstBreach()
	switch {
	case p.in.Ended:
		v.phase, v.message, v.halted = v1alpha1.PhaseSucceeded, p.caughtUpText(counts), t != nil
	case t != nil:
		v.phase, v.message, v.abandoned = v1alpha1.PhaseFailed, p.haltedText(t, i, counts), !p.failed()
	case p.in.Aborted != "":
		v.phase, v.message = v1alpha1.PhaseFailed, p.in.Aborted+"; "+cmp.Or(p.openText(), updatedText(counts))
	case v.complete:
		v.phase, v.message = p.completePhase(counts), p.successText(counts)
	case p.in.Contested != "":
		v.phase, v.message = v1alpha1.PhaseHeld, "held: "+bounded(p.in.Contested)+"; "+p.openText()
	case p.suspended():
		v.phase, v.message = v1alpha1.PhaseSuspended, "suspended; "+p.openText()
	case p.heldByStrategy():
		v.phase, v.message = v1alpha1.PhaseHeld, heldText(int(counts.Updated), int(counts.Total))
		v.outcome = Success
	case p.missing != "":
		v.phase, v.message = v1alpha1.PhaseProgressing, p.missing+"; "+p.openText()
	case p.held():
		v.phase, v.message = v1alpha1.PhaseHeld, p.openText()
	default:
		v.phase, v.message = v1alpha1.PhaseProgressing, p.openText()
	}
	v.outcome = cmp.Or(v.outcome, v.commitOutcome())
	return v
}

// completePhase is the phase when every step is complete. A revert that no cluster verified has not succeeded. If
// clusters fail, it failed, although these failures do not count against the budget. Otherwise no cluster is
// available, and the revert is still Progressing.
func (p *planner) completePhase(counts v1alpha1.Counts) v1alpha1.Phase {
	switch {
	case !p.revertOpen || counts.Updated > 0 || counts.Total == 0:
		return v1alpha1.PhaseSucceeded
	case counts.Failed > 0:
		return v1alpha1.PhaseFailed
	}
	return v1alpha1.PhaseProgressing
}

// commitOutcome is the outcome that follows from the phase.
func (v verdict) commitOutcome() Outcome {
	switch {
	case v.phase == v1alpha1.PhaseFailed, v.halted:
		return Failure
	case v.phase == v1alpha1.PhaseSucceeded:
		return Success
	default:
		return Pending
	}
}

// complete reports whether every step of every track is complete.
func (p *planner) complete() bool {
	for _, t := range p.tracks {
		for i := range t.steps {
			if !t.complete(i) {
				return false
			}
		}
	}
	return true
}

func (p *planner) firstBreach() (*track, int) {
	for _, t := range p.tracks {
		for i := range t.steps {
			if t.breached(i) {
				return t, i
			}
		}
	}
	return nil, 0
}

// failed reports whether a step failed for another reason than that its clusters left.
func (p *planner) failed() bool {
	for _, t := range p.tracks {
		for i := range t.steps {
			if t.failed(i) {
				return true
			}
		}
	}
	return false
}

// current is the first step of a track that is not complete; nil: every step is complete.
func (t *track) current() *step {
	for i, s := range t.steps {
		if !t.complete(i) {
			return s
		}
	}
	return nil
}

// heldByStrategy reports whether the share of the strategy was moved, and the strategy holds
// the rest.
func (p *planner) heldByStrategy() bool {
	if len(p.tracks) != 1 {
		return false
	}
	s := p.tracks[0].current()
	share := p.tracks[0].steps[0].tally
	return s != nil && s.byStrategy && !p.starts(s) && !p.moves(s) && share.done+share.updated > 0
}

// starts reports whether a cluster waits that the strategy does not hold.
func (p *planner) starts(s *step) bool {
	return s.byStrategy && slices.ContainsFunc(s.members, func(u *unit) bool { return u.state == Waiting && p.unprotected(u) })
}

// moves reports whether a cluster of the step is in flight to the target. A cluster that joins at the stable revision
// is not.
func (p *planner) moves(s *step) bool {
	return s.tally.flying > 0 && slices.ContainsFunc(s.members, func(u *unit) bool { return u.record.InFlight() && u.record.Revision == p.target })
}

// held reports whether no cluster is in flight to the target and every incomplete track is held.
func (p *planner) held() bool {
	for _, t := range p.tracks {
		if slices.ContainsFunc(t.steps, p.moves) {
			return false
		}
		if s := t.current(); s != nil && (s.holding() == "" || s.hold == "" && s.remeasured || p.starts(s)) {
			return false
		}
	}
	return true
}

// openText is the text of the current step of each track that is not complete.
func (p *planner) openText() string {
	var open []*step
	var parts []string
	for _, t := range p.tracks {
		if s := t.current(); s != nil && !slices.Contains(open, s) {
			open, parts = append(open, s), append(parts, p.standing(s))
		}
	}
	return strings.Join(parts, "; ")
}

func (p *planner) successText(c v1alpha1.Counts) string {
	return updatedText(c) + p.failuresText(c, ", within the budget: ") + p.asideText(c)
}

// failuresText names the failures: first, after separator, those that count against the budget; then the excused
// ones.
func (p *planner) failuresText(c v1alpha1.Counts, separator string) string {
	text, excused := "", p.excusedFailures()
	if n := int(c.Failed) - len(excused); n > 0 {
		text = separator + failedText(n, p.countedFailures())
	}
	return text + excusedText(excused)
}

func updatedText(c v1alpha1.Counts) string {
	if c.Total == 0 {
		return "no cluster to roll out to"
	}
	return fmt.Sprintf("%d/%d updated", c.Updated, c.Total)
}

// asideText counts the clusters that the rollout does not wait for.
func (p *planner) asideText(c v1alpha1.Counts) string {
	away := p.away()
	text := awayText(away)
	if n := int(c.Parked) - len(away); n > 0 {
		text = fmt.Sprintf(", %d not available (updated on return)", n) + text
	}
	var held []*unit
	for _, s := range p.steps {
		held = append(held, s.tally.held...)
	}
	return text + onHoldText(held) + unstagedText(c)
}

// away are the parked clusters with Cluster.Away set, by name.
func (p *planner) away() []*unit {
	var found []*unit
	for i := range p.units {
		u := &p.units[i]
		if u.c.Away != "" && u.step != nil && u.state == Parked {
			found = append(found, u)
		}
	}
	return found
}

func unstagedText(c v1alpha1.Counts) string {
	if c.Unstaged == 0 {
		return ""
	}
	return fmt.Sprintf(", %d in no stage", c.Unstaged)
}

// caughtUpText is successText with the current counts. It also counts the clusters that came after the success, or
// lost their works after it.
func (p *planner) caughtUpText(c v1alpha1.Counts) string {
	text := updatedText(c)
	if behind := c.InFlight + c.Waiting; behind > 0 {
		text = fmt.Sprintf("now %s, %d to update", text, behind)
	}
	text += p.failuresText(c, ", ")
	if t, i := p.firstBreach(); t != nil {
		text = strings.TrimPrefix(text, "now ") + ", halted in " + t.steps[i].name
	}
	return text + p.asideText(c)
}

// failing are the first clusters that failed with the target. Failures that count against the budget come first.
func (p *planner) failing() []*unit {
	found := slices.Concat(p.countedFailures(), p.excusedFailures())
	return found[:min(len(found), shownFailures)]
}

// countedFailures are the first clusters, by step and name, whose failures count against the budget.
func (p *planner) countedFailures() []*unit {
	return p.failures(func(t *tally) []*unit { return t.failures })
}

// excusedFailures are the clusters, by step and name, whose failures do not count against the budget.
func (p *planner) excusedFailures() []*unit {
	return p.failures(func(t *tally) []*unit { return t.excused })
}

// failures are clusters of every tally, each once: a failure of a removed stage counts in several tallies.
func (p *planner) failures(of func(*tally) []*unit) []*unit {
	var found []*unit
	seen := map[*unit]bool{}
	for _, s := range p.steps {
		for _, u := range of(&s.tally) {
			if !seen[u] {
				seen[u], found = true, append(found, u)
			}
		}
	}
	return found
}

// judgeRemoval is the verdict on the removal of the whole add-on. The
// ClusterManagementAddOn is deleted last, when no ManagedClusterAddOn is left.
func (p *planner) judgeRemoval() verdict {
	r := p.removal.Remaining
	v := verdict{phase: v1alpha1.PhaseRemoving, outcome: Pending}
	approved := p.spec.Removal.Approved || p.in.ApprovedRemoval == p.spec.Removal.Commit
	switch {
	case r.Empty():
		v.phase, v.outcome, v.message = v1alpha1.PhaseRemoved, Success, "removed from every cluster"
	case p.removal.Guard != "" && r.Deleting == 0 && !approved:
		v.phase, v.message = v1alpha1.PhaseHeld, p.removal.Guard
	case p.in.Contested != "" && r.Ours > 0:
		v.phase, v.message = v1alpha1.PhaseHeld, p.removal.Guard+"; "+r.Text()
	case p.suspended() && r.Ours > 0:
		v.phase, v.message = v1alpha1.PhaseSuspended, "suspended; "+r.Text()
	default:
		v.message = r.Text()
	}
	return v
}
