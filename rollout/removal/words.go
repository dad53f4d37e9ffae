package removal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

// shownHandMade is how many hand-made ManagedClusterAddOns a text names. The owner of each must act.
const shownHandMade = 10

const fullText = v1alpha1.LedgerFullReason + ": the ledger has no room; its grace period starts later"

// cause is why a cluster is to lose the add-on.
func (p *planner) cause() string {
	switch {
	case p.whole && p.in.Removal.Deleting != "":
		return p.in.Removal.Deleting + " is being deleted"
	case p.whole:
		return "the add-on left Git"
	}
	return "it left the install set"
}

func (p *planner) leavesText(d Departure) string {
	if d.Approved {
		return "removed: approved for commit " + p.commit
	}
	return "removed: " + p.cause()
}

func (p *planner) graceText(end time.Time) string {
	return p.cause() + ": grace period until " + clock.Text(end, p.in.Now)
}

func (p *planner) confirmText(at time.Time) string {
	return fmt.Sprintf("approved; waits until %s because %s", clock.Text(at, p.in.Now), p.in.Untrusted)
}

func (p *planner) budgetText() string {
	return fmt.Sprintf("%s: budget of %d per %s spent: next at %s",
		p.cause(), p.budget(), p.in.Grace, clock.Text(p.waits.budgeted, p.in.Now))
}

// heldText is why no cluster is removed at all.
func (p *planner) heldText() string {
	if p.in.Held != "" {
		return p.in.Held + ": no cluster is removed"
	}
	if p.whole && p.in.Removal.Uninstalls() {
		return p.cause() + ", which removes no add-on; " + v1alpha1.UninstallAdvice
	}
	annotate := "annotate the rollout with " + v1alpha1.ApproveRemovalAnnotation + ": " + p.commit
	if p.whole && p.in.Removal.Deleting != "" {
		return p.cause() + ", which approves no removal: to keep the add-on, run addonflow release; to remove it, " + annotate
	}
	if p.whole {
		return "removal waits for approval: to keep the add-on, restore its files in Git or run addonflow release; to remove it, set prune: true on the source, or " + annotate
	}
	return "removal waits for approval: set prune: true on the source, or " + annotate
}

// guard says in words what holds removals back.
func (p *planner) guard() string {
	w, now := p.waits, p.in.Now
	var parts []string
	if n := len(w.refused); n > 0 {
		parts = append(parts, fmt.Sprintf("%s to remove: the hub refuses: %s", brief.Count(n, "cluster"), brief.ReasonsOf(n, named(w.refused))))
	}
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, text)
		}
	}
	add(w.held, p.heldText())
	add(w.confirm, fmt.Sprintf("%s to remove: approved, and %s: next at %s", brief.Count(w.confirm, "cluster"), p.in.Untrusted, clock.Text(w.confirmed, now)))
	switch {
	case p.silent():
		add(w.unsettled, p.in.Untrusted+": no cluster is removed")
	case w.held == 0 && w.confirm == 0:
		add(w.unsettled, p.in.Untrusted+": no cluster is removed without approval")
	}
	add(w.needed, fmt.Sprintf("%s to remove: wait until %s removed there", brief.Count(w.needed, "cluster"), addOns(slices.Sorted(maps.Keys(w.by)))))
	add(w.budget, fmt.Sprintf("%s to remove, %d per %s: next at %s", brief.Count(w.budget, "cluster"), p.budget(), p.in.Grace, clock.Text(w.budgeted, now)))
	add(w.grace, fmt.Sprintf("%s to remove: grace period until %s", brief.Count(w.grace, "cluster"), clock.Text(w.graced, now)))
	add(w.full, fmt.Sprintf("%s to remove: %s: the ledger has no room", brief.Count(w.full, "cluster"), v1alpha1.LedgerFullReason))
	return strings.Join(parts, "; ")
}

// hint says how to remove the waiting clusters at once.
func (p *planner) hint() string {
	w := p.waits
	switch {
	case p.commit == "" || p.in.Held != "" || p.silent() || w.confirm > 0 || w.unsettled+w.budget+w.grace == 0:
		return ""
	case p.record.UsedApproval != "":
		return "the approval of " + p.commit + " was used: set it again to remove them now"
	}
	return v1alpha1.ApproveRemovalAnnotation + ": " + p.commit + " removes them now"
}

// Text is what the removal of the whole add-on still waits for, in words.
func (r Remaining) Text() string {
	var parts []string
	if r.Ours > 0 {
		parts = append(parts, fmt.Sprintf("%d still to be removed", r.Ours))
	}
	if n := r.Deleting + r.Gone; n > 0 {
		parts = append(parts, fmt.Sprintf("%d being deleted", n))
	}
	if n := len(r.HandMade); n > 0 {
		names := strings.Join(r.HandMade[:min(n, shownHandMade)], ", ")
		if n > shownHandMade {
			names += fmt.Sprintf(" and %d more", n-shownHandMade)
		}
		parts = append(parts, "hand-made ones stay until their owner removes them: "+names)
	}
	return strings.Join(parts, ", ")
}

// OverdueText is "2 not removed yet (c1: reason; c2: reason)"; "": no deletion is overdue.
func (p Plan) OverdueText() string {
	if len(p.Overdue) == 0 {
		return ""
	}
	return fmt.Sprintf("%d not removed yet (%s)", len(p.Overdue), brief.ReasonsOf(len(p.Overdue), named(p.Overdue)))
}

// named is "c1: reason" of each cluster.
func named(clusters []v1alpha1.ClusterReason) []string {
	parts := make([]string, 0, len(clusters))
	for _, c := range clusters {
		parts = append(parts, c.Cluster+": "+c.Reason)
	}
	return parts
}

// refusedText is "; the hub refuses: reason"; "" if the hub refused nothing.
func refusedText(c Cluster) string {
	if c.Refused == "" {
		return ""
	}
	return "; the hub refuses: " + c.Refused
}

// addOns is "agent, which depends on it, is", or the same text for several add-ons.
func addOns(names []string) string {
	if len(names) == 1 {
		return names[0] + ", which depends on it, is"
	}
	return brief.Names(names) + ", which depend on it, are"
}
