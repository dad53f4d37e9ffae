package addonsource

import (
	"slices"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
)

// finishing is a commit whose rollouts end before newer content follows (spec.onNewCommit Finish).
type finishing struct {
	// fleet has the add-ons of the commit whose rollouts are running or have ended.
	fleet
	// finishes: spec.onNewCommit of one of the add-ons is Finish.
	finishes bool
	// superseded: newer content replaced the content of a rollout of the commit before the rollout ended.
	superseded bool
	// back: the clusters leave its content.
	back bool
}

// finish adds the rollouts of one add-on to their commits, by sha. A commit finishes if the policy of one of its
// add-ons is onNewCommit: Finish; then the commit is reported until the rollouts of all its add-ons have ended. The
// policy decides, because the rollout may not have observed the newer content yet.
func (f *fleet) finish(ro *v1alpha1.AddOnRollout) {
	if ro == nil {
		return
	}
	seen := map[string]bool{}
	for i := range ro.Status.History {
		h := &ro.Status.History[i]
		sha := v1alpha1.CommitOf(h.Target.Commit)
		if seen[sha] {
			continue // the commit has an older rollout
		}
		seen[sha] = true
		if f.finishing == nil {
			f.finishing = map[string]*finishing{}
		}
		if f.finishing[sha] == nil {
			f.finishing[sha] = &finishing{fleet: fleet{counted: f.counted}}
		}
		c := f.finishing[sha]
		c.finishes = c.finishes || ro.Spec.OnNewCommit == v1alpha1.OnNewCommitFinish
		c.updated, c.total = c.updated+h.Counts.Updated, c.total+h.Counts.Total
		switch from := ro.Status.Override; {
		case from.Waits() && from.Returns() && v1alpha1.CommitOf(from.Leaves().Commit) == sha:
			// No count and no phase, because the newer content may follow before the source sees the end of the
			// rollback.
			c.failed, c.back = append(c.failed, addOnStanding{ro.Name, ro.Name + ": content " + bars(from.Kind) + ": " + from.Reason}), true
		case h.SupersededBy != "":
			c.superseded = true
		case h.Phase == v1alpha1.PhaseSucceeded:
			c.upToDate++
		case h.Phase == v1alpha1.PhaseFailed:
			c.failed = append(c.failed, addOnStanding{ro.Name, ro.Name + ": " + h.Reason})
		case i == 0:
			c.stand(ro, ro.Name)
		default:
			c.superseded = true
		}
	}
}

// bars says why clusters leave content.
func bars(kind v1alpha1.OverrideKind) string {
	if kind == v1alpha1.OverrideBlocked {
		return "blocked"
	}
	return "quarantined"
}

// finished returns the statuses of commits whose rollouts still end although a newer commit is applied. Such a commit
// is not superseded before that. Its verdict is final, but the text of a failure may change while the clusters leave
// the content: an old text may be from the time when the commit was the newest, with the counts of that time. Live
// commits are left out, because their statuses are about the whole fleet.
func (p *pass) finished(book *forge.Book, f fleet, live []string) []commitstatus.Want {
	var wants []commitstatus.Want
	for _, m := range book.Marks() {
		c := f.finishing[m.SHA]
		if c == nil || !c.finishes || slices.Contains(live, m.SHA) || m.Context != forge.ContextName(p.source) {
			continue
		}
		if judged := commitstatus.Judged(m); judged && (!c.back || commitstatus.Last(m).State != string(commitstatus.Failure)) || c.superseded && c.state() != commitstatus.Pending {
			continue
		}
		if c.state() == commitstatus.Failure {
			c.onHold, c.moving = nil, nil // nothing will report how these add-ons end
		}
		want := p.want(m.SHA, c.state(), c.text("applied"))
		want.Progress, want.Held = c.progress(), c.held()
		if c.back {
			want.Content = digestOfTexts(want.Description)
		}
		wants = append(wants, want)
	}
	return wants
}
