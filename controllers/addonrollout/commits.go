package addonrollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/rollout"
)

// bookKey names the marks of a rollout's commit statuses.
func bookKey(key client.ObjectKey) forge.Key {
	return forge.Key{Kind: v1alpha1.AddOnRolloutKind, NamespacedName: key}
}

// contentRemoved is the content of a commit that no longer declares the add-on.
const contentRemoved = "removed"

// commits are the commits on which a rollout reports.
type commits struct {
	// target introduced the content, policy the rest of the spec. newest is the newest commit with both. Often all
	// three are the same commit.
	target, policy, newest string
	// refused is the newest commit if its source refused it; otherwise "".
	refused string
	// content names the content of target and newest.
	content string
}

// commitsOf returns the commits on which a rollout reports. The source writes the spec of a rollout before its own
// status. While the status of the source is about another spec of the rollout, older or newer, the newest commit
// that is known to have the present spec is the commit that the spec names.
func commitsOf(source *v1alpha1.AddOnSource, ro *v1alpha1.AddOnRollout) commits {
	c := commits{target: v1alpha1.CommitOf(ro.Spec.Target.Commit), content: contentOf(ro.Spec.Target.Digest)}
	c.policy = cmp.Or(v1alpha1.CommitOf(ro.Spec.PolicyCommit), c.target)
	c.newest = c.policy
	applied, attempted := v1alpha1.CommitOf(source.Status.LastAppliedRevision), v1alpha1.CommitOf(source.Status.LastAttemptedRevision)
	declared := slices.ContainsFunc(source.Status.AddOns, func(a v1alpha1.SourcedAddOn) bool {
		return a.Name == ro.Name && a.Declares(&ro.Spec)
	})
	switch {
	case ro.Spec.Removal != nil && v1alpha1.CommitOf(ro.Spec.Target.Commit) != ro.Spec.Removal.Commit && ro.Spec.Removal.Commit != "":
		c.newest, c.content = ro.Spec.Removal.Commit, contentRemoved
		if applied != "" && !slices.ContainsFunc(source.Status.AddOns, func(a v1alpha1.SourcedAddOn) bool { return a.Name == ro.Name }) {
			c.newest = applied
		}
	case declared && applied != "":
		c.newest = applied
	default:
		return c
	}
	if source.Status.Refused() && attempted != applied {
		c.refused = attempted
	}
	return c
}

// live returns the commits whose statuses are derived.
func (c commits) live() []string {
	var out []string
	if c.content != contentRemoved {
		out = append(out, c.target)
	}
	out = append(out, c.newest)
	if c.refused != "" {
		out = append(out, c.refused)
	}
	return out
}

// blamed returns the commit for which the plan is a verdict, besides the newest one. It is the target's commit, or
// the policy's commit if the policy cannot work. A policy that was edited on the hub belongs to no commit: while the
// edit lasts, only the newest commit shows it.
func (c commits) blamed(p *plan.Plan) string {
	switch {
	case !v1alpha1.BlamesPolicy(p.Verdict.Stalled):
		return c.target
	case p.Observed.Rollout.SpecEdited() && c.content != contentRemoved:
		return c.newest
	}
	return c.policy
}

// contentOf returns the part of a digest that distinguishes contents of one add-on.
func contentOf(digest string) string {
	hex := digest[strings.LastIndex(digest, ":")+1:]
	return hex[:min(len(hex), 10)]
}

// openBook enters the statuses of the add-on and its stages on commits. It is a function of the turn, of the source's
// status and of the marks:
//
//	the commit that introduced the content   add-on and stages; if a newer commit has the
//	                                         content, no progress, and nothing after the verdict
//	the newest commit with the content       the same, while the rollout is not finished
//	the commit that introduced the policy    the add-on, while the policy cannot work and was not
//	                                         edited on the hub; older commits with the same
//	                                         content wait meanwhile
//	a newer commit that was refused          the add-on, while the rollout is not finished: "not applied"
//	any other commit                         see commitstatus.Overtake
func (r *Reconciler) openBook(p *plan.Plan) *forge.Book {
	o, ro := p.Observed, p.Observed.Rollout
	b := r.Desk.Open(bookKey(client.ObjectKeyFromObject(ro)), o.Source, ro.Status.CommitStatuses)
	if o.Source == nil || ro.Spec.Target == nil {
		return b
	}
	b.Retry(o.Source, plan.RequestedAt(ro))
	c, whole := commitsOf(o.Source, ro), contextName(o, "")
	if o.Override.Waits() {
		return r.bookRunning(b, p, c)
	}
	wants := wantsOf(p, c.content)
	origin, live, follow := c.target, c.live(), wants
	if blamed := c.blamed(p); blamed != c.target {
		origin, live, follow = blamed, append(live, blamed), nil
	}
	older := make([]commitstatus.Want, 0, len(wants))
	for _, w := range wants {
		w.SHA, w.Older = origin, c.newest != origin
		if w.Older && ended(b.Marks(), origin, whole) && !commitstatus.Shown(b.Marks(), origin, w.Context) {
			continue // a newer commit declared the stage
		}
		if w.Older && w.Context == contextName(o, rollout.RemovalContext) {
			w.State, w.Description = commitstatus.Success, "continued on "+c.newest[:min(len(c.newest), 10)]
		}
		older = append(older, w)
	}
	if c.content != contentRemoved {
		b.Enter(detailed(b, p, older)...)
		enterEnded(b, p, origin, older)
	}
	if c.newest != origin {
		newest := slices.DeleteFunc(withSHA(wants, c.newest), func(w commitstatus.Want) bool { return !mirrors(b, p, w) })
		b.Enter(detailed(b, p, newest)...)
		enterEnded(b, p, c.newest, withSHA(wants, c.newest))
	}
	if c.refused != "" && (!finished(p.Next.Phase) || commitstatus.Shown(b.Marks(), c.refused, whole)) {
		b.Enter(detailed(b, p, []commitstatus.Want{{
			SHA: c.refused, Context: whole, State: commitstatus.Failure, Content: "refused",
			Description: "not applied: the commit is refused, see " + forge.ContextName(o.Source),
		}})...)
	}
	by := c.target
	if c.content == contentRemoved {
		by = c.newest
	}
	b.Overtake(commitstatus.Succession{Live: live, Contents: []string{c.content}, By: by, Whole: whole, Wants: follow})
	return b
}

// ended reports whether a commit has its verdict in a context.
func ended(marks []commitstatus.Mark, sha, context string) bool {
	return slices.ContainsFunc(marks, func(m commitstatus.Mark) bool {
		return m.SHA == sha && m.Context == context && commitstatus.Judged(m)
	})
}

// finished reports whether a rollout in this phase has no cluster to move or to remove.
func finished(phase v1alpha1.Phase) bool {
	return phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseRemoved
}

// bookRunning replaces openBook while the declared content waits for the current rollout (onNewCommit: Finish). The
// commits of the current rollout report that rollout, and the newest commit says what it waits for.
func (r *Reconciler) bookRunning(b *forge.Book, p *plan.Plan, c commits) *forge.Book {
	o, whole := p.Observed, contextName(p.Observed, "")
	reports, what := o.Target, "rollout of "
	if o.Override.Returns() {
		reports, what = o.Override.Leaves(), "rollback from "
	}
	running, content := v1alpha1.CommitOf(reports.Commit), contentOf(reports.Digest)
	wants := withSHA(wantsOf(p, content), running)
	text := "waits until the " + what + running[:min(len(running), 10)] + " has ended"
	b.Enter(detailed(b, p, wants)...)
	enterEnded(b, p, running, wants)
	b.Enter(detailed(b, p, []commitstatus.Want{
		{SHA: c.newest, Context: whole, State: commitstatus.Pending, Content: c.content, Description: text, Held: text},
	})...)
	b.Overtake(commitstatus.Succession{Live: append(c.live(), running), Contents: []string{content}, By: c.newest, Whole: whole, Wants: wants})
	return b
}

// detailed returns the wants that commitStatus.detail asks for. If a commit already shows a context, the context is
// continued until newer content replaces the commit, because the forge would otherwise show it as pending for ever. A
// stage that was complete keeps its verdict.
func detailed(b *forge.Book, p *plan.Plan, wants []commitstatus.Want) []commitstatus.Want {
	o := p.Observed
	asked := func(w commitstatus.Want) bool {
		switch o.Source.Spec.CommitStatus.DetailOrDefault() {
		case v1alpha1.DetailSource:
			return false
		case v1alpha1.DetailAddOn:
			return !slices.ContainsFunc(p.Planned.Stages, func(st v1alpha1.StageStatus) bool { return w.Context == contextName(o, st.Name) })
		default:
			return true
		}
	}
	return slices.DeleteFunc(slices.Clone(wants), func(w commitstatus.Want) bool {
		return !asked(w) && !commitstatus.Shown(b.Marks(), w.SHA, w.Context) || completed(b, p, w)
	})
}

// completed reports whether a context belongs to a stage that was complete with its content before the rollout failed
// or was aborted elsewhere. Now the stage only waits: for a placement whose decisions are incomplete, or for clusters
// that it selected later.
func completed(b *forge.Book, p *plan.Plan, w commitstatus.Want) bool {
	waits := w.State == commitstatus.Failure && slices.ContainsFunc(p.Planned.Stages, func(st v1alpha1.StageStatus) bool {
		return w.Context == contextName(p.Observed, st.Name) && (st.Phase == rollout.StageHeld || st.Phase == rollout.StageWaiting)
	})
	return waits && slices.ContainsFunc(b.Marks(), func(m commitstatus.Mark) bool {
		last := commitstatus.Last(m)
		return m.SHA == w.SHA && m.Context == w.Context && last != nil && last.State == string(commitstatus.Success) && last.Content == w.Content
	})
}

// withSHA returns the wants for another commit.
func withSHA(wants []commitstatus.Want, sha string) []commitstatus.Want {
	out := slices.Clone(wants)
	for i := range out {
		out[i].SHA = sha
	}
	return out
}

// mirrors reports whether the newest commit, which did not change the add-on, shows a context. It shows a context
// that it has shown before. It shows every context while the rollout is not Succeeded, with one exception: a commit
// that was a success as a whole is not pending again for clusters that join.
func mirrors(b *forge.Book, p *plan.Plan, w commitstatus.Want) bool {
	if commitstatus.Shown(b.Marks(), w.SHA, w.Context) || w.Context == contextName(p.Observed, "") && p.Observed.Mistaken() != "" {
		return true
	}
	if w.State == commitstatus.Success {
		return !finished(p.Next.Phase)
	}
	succeeded := slices.ContainsFunc(p.Observed.Source.Status.CommitStatuses, func(m v1alpha1.CommitMark) bool {
		last := commitstatus.Last(m)
		return m.SHA == w.SHA && m.Context == forge.ContextName(p.Observed.Source) && last != nil && last.State == string(commitstatus.Success)
	})
	return w.State != commitstatus.Pending || !succeeded || w.Context == contextName(p.Observed, rollout.RemovalContext)
}

// wantsOf has the statuses of the add-on and its stages, without a commit.
func wantsOf(p *plan.Plan, content string) []commitstatus.Want {
	said := p.Summaries()
	if p.Err == nil && p.Observed.Override.Returns() {
		// After a failure, these are news: the clusters move back, they have moved back, and a pull request restores
		// Git.
		content += " " + string(p.Next.Phase) + p.Observed.Override.Proposed
	}
	if v := p.Verdict; v.Place != "" {
		said[0].Description = commitstatus.Refusal{Problem: said[0].Description, Place: v.Place, Object: v.Object}.Text(commitstatus.DescriptionLimit)
	}
	content += p.Observed.Mistaken() + strings.Join(p.Observed.RefusedWrites, "; ")
	wants := make([]commitstatus.Want, 0, len(said))
	for _, s := range said {
		want := commitstatus.Want{
			Context: contextName(p.Observed, s.Context), State: commitstatus.State(s.State), Description: s.Description,
			Progress: s.Percent, Content: content + p.Stay(), Held: held(p, s),
		}
		if s.State == rollout.Success && p.Planned.Counts.Total == 0 {
			want.Content = "" // no cluster has verified the content: the first joiner may change the verdict
		}
		wants = append(wants, want)
	}
	if p.Err == nil && p.Observed.Override.Returns() && !p.Planned.Undivided {
		for _, st := range p.Next.Stages { // even for a commit whose marks are lost
			wants = append(wants, duringRollback(p, wants[0], contextName(p.Observed, st.Name)))
		}
	}
	return wants
}

// duringRollback is the status of the context of a stage during a rollback, with the state of the add-on.
func duringRollback(p *plan.Plan, whole commitstatus.Want, context string) commitstatus.Want {
	back, w := backOf(p, context), whole
	w.Context, w.Held = context, ""
	w.Description, w.Content = back+"; see "+whole.Context, whole.Content+back
	return w
}

// held says what a summary waits for, or what failed; "": its clusters move. A summary waits while works are not
// applied, while no cluster moves, or while a missing revision or the user holds the rollout. A stage that has not
// begun waits for the stage before it.
func held(p *plan.Plan, s rollout.Summary) string {
	stage := slices.IndexFunc(p.Planned.Stages, func(st v1alpha1.StageStatus) bool { return st.Name == s.Context })
	switch {
	case s.State == rollout.Failure:
		return failed(p.Planned, s.Context)
	case s.State != rollout.Pending:
	case notApplied(p.Planned, s.Context) != "":
		return notApplied(p.Planned, s.Context)
	case p.Err != nil, s.Context == rollout.RemovalContext,
		s.Context == "" && (p.Verdict.Waiting != "" || p.Planned.Phase == v1alpha1.PhaseSuspended || !moves(p.Planned, "")),
		stage >= 0 && p.Planned.Stages[stage].Phase != rollout.StageWaiting && !moves(p.Planned, s.Context):
		return s.Description
	}
	return ""
}

// notApplied names the first cluster of a stage whose works are not applied, and why; "": all works are applied. For
// stage "", it searches all stages.
func notApplied(planned rollout.Plan, stage string) string {
	for _, c := range planned.Clusters {
		if c.NotApplied != "" && (stage == "" || c.Stage == stage) {
			return c.Name + ": " + c.NotApplied
		}
	}
	return ""
}

// moves reports whether a cluster of the stage is in flight and reachable. The stage "" means all stages.
func moves(planned rollout.Plan, stage string) bool {
	return slices.ContainsFunc(planned.Clusters, func(c rollout.ClusterPlan) bool {
		return c.State.InFlight() && c.State != rollout.Lost && (stage == "" || c.Stage == stage)
	})
}

// enterEnded ends the contexts of a live commit that the rollout no longer reports: removals that are over, stages
// that a change of policy dropped, and all stages of a rollout that cannot be planned or that rolls the content back.
// Such a context ends when the context of the add-on ends, and gets the same state. If it ended earlier, a required
// check would turn green without proof, or stay red on a good commit. A verdict stays, unless its content is rolled
// back.
func enterEnded(b *forge.Book, p *plan.Plan, sha string, wants []commitstatus.Want) {
	whole := wants[0]
	for _, m := range b.Marks() {
		if m.SHA != sha || slices.ContainsFunc(wants, func(w commitstatus.Want) bool { return w.Context == m.Context }) {
			continue
		}
		w := whole
		w.SHA, w.Context, w.Held = sha, m.Context, ""
		switch {
		case m.Context == contextName(p.Observed, ""):
			continue
		case m.Context == contextName(p.Observed, rollout.RemovalContext):
			if p.Err != nil || commitstatus.Judged(m) {
				continue
			}
			w.State, w.Description = commitstatus.Success, rollout.RemovalOver().Description
		case m.Context == contextName(p.Observed, rollout.OverdueContext):
			if p.Err != nil {
				continue
			}
			w.State, w.Description = commitstatus.Success, "no removal is overdue any more"
		case p.Err == nil && p.Observed.Override.Returns():
			w = duringRollback(p, w, m.Context)
		case p.Err != nil && whole.State == commitstatus.Failure:
			if commitstatus.Judged(m) {
				continue
			}
			w.Description = "stopped: " + whole.Description
		case p.Err != nil || commitstatus.Judged(m) || !plan.AllSettled(p.Observed.Placements) || !whole.State.Terminal():
			continue
		default:
			w.Description = "stage removed; see " + whole.Context
		}
		b.Enter(w)
	}
}

// backOf says how far a rollback is in the stage of a context. It has the counts only when no cluster moves any more,
// because each new text is a post.
func backOf(p *plan.Plan, context string) string {
	if p.Kept() {
		return "the clusters keep the content"
	}
	i := slices.IndexFunc(p.Next.Stages, func(st v1alpha1.StageStatus) bool { return contextName(p.Observed, st.Name) == context })
	if i < 0 {
		return "the content is rolled back"
	}
	switch c := p.Next.Stages[i].Counts; {
	case c.Updated == c.Total:
		return "the content is rolled back"
	case p.Next.Phase == v1alpha1.PhaseRolledBack, p.Next.Phase == v1alpha1.PhaseFailed:
		return fmt.Sprintf("rolled back on %d/%d", c.Updated, c.Total)
	}
	return "the content is not rolled back yet"
}

// failed names the clusters that failed in a stage; in all stages for "". It also says whether others are in flight,
// because their outcome is not known yet.
func failed(planned rollout.Plan, stage string) string {
	var names []string
	for _, c := range planned.Clusters {
		if (c.State == rollout.Failed || c.State == rollout.TimedOut) && (stage == "" || c.Stage == stage) {
			names = append(names, c.Name)
		}
	}
	if moves(planned, stage) {
		names = append(names, "and others in flight")
	}
	return strings.Join(names, " ")
}

// contextName is the context of the add-on, or of a part of it.
func contextName(o *plan.Observation, part string) string {
	if part == "" {
		return forge.ContextName(o.Source, o.Rollout.Name)
	}
	return forge.ContextName(o.Source, o.Rollout.Name, part)
}
