package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// noteDepartures brings up to date who departed when. A cluster that is selected
// again, or is not ours any more, is struck off; so is everybody where a placement is
// missing, since it may be theirs. While one is in motion nobody new is noted.
func (p *planner) noteDepartures() {
	missing := slices.ContainsFunc(p.install, func(pl Placement) bool { return pl.Existence != Exists })
	for i := range p.units {
		u := &p.units[i]
		switch {
		case p.spec.Removal != nil, missing, !p.selective(), !u.member, u.c.Installed != Ours, u.selected(), p.kept(u):
			u.departed = time.Time{}
		case u.leaving && u.departed.IsZero():
			u.departed = p.second
			p.begun()
		}
	}
	p.noteReturns()
	if r := p.removal; r != nil && r.Lifted != nil && r.Lifted.Commit != p.in.ApprovedRemoval {
		r.Lifted = nil
	}
}

// noteReturns takes those off the list of the removed that have the add-on again, so
// that leaving once more is leaving anew.
func (p *planner) noteReturns() {
	r := p.removal
	if r == nil || len(r.Removed) == 0 || p.spec.Removal != nil {
		return
	}
	at := p.cursor()
	kept := r.Removed[:0:0]
	for _, name := range r.Removed {
		if u := at.find(name); u != nil && u.selected() {
			r.Returned++
			continue
		}
		kept = append(kept, name)
	}
	r.Removed = kept
}

// begun is the record of the removal, which begins now if there is none. That of
// single clusters is not that of the whole add-on.
func (p *planner) begun() *v1alpha1.RemovalBudget {
	commit := ""
	if p.spec.Removal != nil {
		commit = p.spec.Removal.Commit
	}
	r := p.removal
	if r == nil {
		r = &v1alpha1.RemovalBudget{}
		p.removal = r
	}
	if r.Total == 0 || r.Commit != commit {
		r.Since, r.Total, r.Commit = metav1.NewTime(p.second), p.installed(), commit
	}
	return r
}

// anyDeparted tells whether somebody is on the list of the departed.
func (p *planner) anyDeparted() bool {
	for i := range p.units {
		if !p.units[i].departed.IsZero() {
			return true
		}
	}
	return false
}

// ripe parts those whose grace period is over from the others.
func (p *planner) ripe(leavers []*unit) (ripe, waiting []*unit) {
	for _, u := range leavers {
		if p.now.Before(p.graceOf(u)) {
			waiting = append(waiting, u)
		} else {
			ripe = append(ripe, u)
		}
	}
	return ripe, waiting
}

// graceOf is the end of a leaver's grace period.
func (p *planner) graceOf(u *unit) time.Time {
	since := u.departed
	if p.spec.Removal != nil {
		since = p.removal.Since.Time
	}
	return since.Add(p.in.RemovalGrace)
}

// waitForGrace says of each of them until when it stays at least, and of all of them
// when the first may go.
func (p *planner) waitForGrace(waiting []*unit) {
	if len(waiting) == 0 {
		return
	}
	first := p.graceOf(waiting[0])
	for _, u := range waiting {
		end := p.graceOf(u)
		u.leaveFor(p.whyUnwanted() + ": grace period until " + clock(end, p.now))
		if end.Before(first) {
			first = end
		}
	}
	p.look(first)
	text := fmt.Sprintf("%s to leave: grace period until %s", clusters(len(waiting)), clock(first, p.now))
	if p.guard != "" {
		text = p.guard + "; " + text
	}
	p.guard = text
}

// guardHint says how those that the guard holds are let go at once.
func (p *planner) guardHint() string {
	r, commit := p.removal, p.removalCommit()
	switch {
	case p.guard == "" || p.confirming || p.suspended() || commit == "" || p.silent() != "" || p.spec.Removal != nil && !p.spec.Removal.Approved:
		return ""
	case r == nil && p.untrusted(p.install) == "":
		return ""
	case r != nil && r.Lifted != nil:
		return "the approval of " + commit + " was used: set it again to let them go now"
	}
	return v1alpha1.ApproveRemovalAnnotation + ": " + commit + " lets them go now"
}

// lift lets go of those that had departed when the approval was first acted upon, and
// returns the others. It is used once: left standing, it must not let a placement that
// flaps a month later take the whole fleet with it.
func (p *planner) lift(leavers []*unit) []*unit {
	if p.spec.Removal != nil || !p.removalLifted() {
		return leavers
	}
	r := p.begun()
	first := r.Lifted == nil
	if first {
		r.Lifted = &v1alpha1.LiftedRemoval{Commit: p.in.ApprovedRemoval, At: metav1.NewTime(p.second)}
	}
	var going, left []*unit
	for _, u := range leavers {
		if u.departed.After(r.Lifted.At.Time) {
			left = append(left, u)
		} else {
			going = append(going, u)
		}
	}
	confirmed := p.confirmed(going)
	if first || p.untrusted(p.install) != "" {
		p.departing += len(confirmed)
	}
	p.leave(confirmed, "leaves: its removal is approved for the commit")
	return left
}

// lifts tells whether the approval is about the cluster: it is until it is used, and then
// about those that had departed by then.
func (p *planner) lifts(u *unit) bool {
	r := p.removal
	if r == nil || r.Lifted == nil || r.Lifted.Commit != p.in.ApprovedRemoval {
		return true
	}
	return !u.departed.IsZero() && !u.departed.After(r.Lifted.At.Time)
}

// confirmed are those of the approved that go now. While decisions are not settled a
// cluster may be missing from them for an instant only: it goes once it has been missing
// for a while.
func (p *planner) confirmed(going []*unit) []*unit {
	why := p.untrusted(p.install)
	if why == "" {
		return going
	}
	var sure, waiting []*unit
	for _, u := range going {
		if p.now.Before(p.sureAt(u)) {
			waiting = append(waiting, u)
		} else {
			sure = append(sure, u)
		}
	}
	if len(waiting) > 0 {
		end := p.sureAt(waiting[0])
		for _, u := range waiting {
			if at := p.sureAt(u); at.Before(end) {
				end = at
			}
		}
		p.look(end)
		p.confirming = true
		p.guard = fmt.Sprintf("%s to leave: approved, and %s: at %s, unless it is selected again", clusters(len(waiting)), why, clock(end, p.now))
		p.stay(waiting, p.guard)
	}
	return sure
}

// confirmFor is how long a cluster is missing from decisions that are not settled before
// an approval lets it go; never longer than its grace period.
const confirmFor = 30 * time.Second

// sureAt is when it has been missing for so long.
func (p *planner) sureAt(u *unit) time.Time {
	return u.departed.Add(min(confirmFor, p.in.RemovalGrace))
}

// departures is the list of the departed as it is stored, oldest first.
func (p *planner) departures() []v1alpha1.Departed {
	bySecond := map[int64][]string{}
	for i := range p.units {
		if u := &p.units[i]; !u.departed.IsZero() {
			at := u.departed.Unix()
			bySecond[at] = append(bySecond[at], u.c.Name)
		}
	}
	var out []v1alpha1.Departed
	for at, names := range bySecond {
		d := v1alpha1.Departed{Since: metav1.NewTime(time.Unix(at, 0).UTC())}
		d.Clusters = names
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b v1alpha1.Departed) int { return cmp.Compare(a.Since.Unix(), b.Since.Unix()) })
	return out
}

// forgetDepartures strikes half of those that departed last off the list, because the
// ledger has no room for them: they stay, and their grace period starts later.
func (p *planner) forgetDepartures() {
	var newest []*unit
	for i := range p.units {
		u := &p.units[i]
		switch {
		case u.departed.IsZero() || len(newest) > 0 && u.departed.Before(newest[0].departed):
		case len(newest) > 0 && u.departed.Equal(newest[0].departed):
			newest = append(newest, u)
		default:
			newest = []*unit{u}
		}
	}
	for _, u := range newest[len(newest)/2:] {
		u.departed = time.Time{}
		u.leaveFor(v1alpha1.LedgerFullReason + ": the ledger has no room; its grace period starts later")
	}
	p.removal.Departed = p.departures()
}
