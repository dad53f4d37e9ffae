package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Choose decides which content the fleet is to run. Usually it is the content of Git. If that content is quarantined
// or blocked, it is the content of the newest success, or of the newest order that names content. With onNewCommit
// Finish, it is the content whose rollout has not ended. Only Confirm can withdraw the choice. The choice follows
// from the spec, the revisions on the hub, and the status, which keeps facts about deleted revisions. The caller
// lists the revisions before, and reads their bodies afterwards.
func (o *Observation) Choose() Choice {
	chosen := *o
	chosen.choose()
	return chosen.Choice
}

// choose makes the choice of Choose in the observation itself.
func (o *Observation) choose() {
	declared := *o.Rollout.Spec.Target
	o.Choice = Choice{Target: declared, Quarantined: o.quarantines(), everSucceeded: o.successes()}
	o.permit()
	if o.Rollout.Spec.Removal != nil {
		return
	}
	leaves := declared
	override, barred := o.barredBy(declared)
	if first := o.unfinished(declared); !barred && first != nil {
		leaves = *first
		if override, barred = o.barredBy(leaves); !barred {
			o.Target = *o.Rollout.Status.Target
			o.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideFinish, Declared: declared, Reason: "onNewCommit is Finish"}
			return
		}
		override.Declared, override.From = declared, first
	}
	if !barred {
		return
	}
	o.Override = &override
	if to := o.refuge(leaves); to != "" {
		o.Target = o.known(to)
	} else {
		o.keep("no other revision succeeded here")
	}
}

// permit leaves in Succeeded the revisions that succeeded and are neither quarantined nor blocked.
func (o *Observation) permit() {
	o.Succeeded = slices.DeleteFunc(slices.Clone(o.everSucceeded), func(s Success) bool {
		_, barred := o.barredBy(o.known(s.Digest))
		return barred
	})
}

// keep leaves the content of the clusters unchanged, because there is no content to which they can move back.
func (o *Observation) keep(why string) {
	o.Target, o.Barrier = o.Override.Leaves(), why
	if s := o.Rollout.Status.Target; s != nil {
		o.Target = *s
	}
}

// unfinished is the content whose rollout or rollback has to end before the declared content is
// rolled out; nil: the declared content does not wait.
func (o *Observation) unfinished(declared v1alpha1.Target) *v1alpha1.Target {
	s := &o.Rollout.Status
	if o.Rollout.Spec.OnNewCommit != v1alpha1.OnNewCommitFinish || s.Target == nil || s.Target.Digest == declared.Digest || o.Succeeded.Has(declared.Revision) ||
		!slices.ContainsFunc(o.Stored, func(t v1alpha1.Target) bool { return t.Revision == s.Target.Revision }) { // without its revision, the rollout would never end
		return nil
	}
	_, barred := o.barredBy(*s.Target)
	_, quarantined := o.quarantine(s.Target.Digest)
	switch {
	case quarantined && !s.Override.Returns() && o.refuge(*s.Target) != "":
		return s.Target // the fleet is about to move back from it
	case barred, s.Phase == v1alpha1.PhaseHeld && o.heldAtShare(), slices.Contains(endedPhases(), s.Phase):
		return nil
	case s.Override.Returns():
		from := s.Override.Leaves()
		return &from
	}
	return s.Target
}

// heldAtShare reports whether the share of clusters that the strategy moves has the content. A rollout that is held
// for another reason has not ended.
func (o *Observation) heldAtShare() bool {
	strategy, stages := o.Rollout.Spec.Strategy, o.Rollout.Status.Stages
	return strategy != nil && strategy.Type == v1alpha1.StrategyRollingUpdateWithPlacement && len(stages) > 0 && stages[0].Phase == rollout.StageComplete
}

// endedPhases are the phases of a rollout that has ended.
func endedPhases() []v1alpha1.Phase {
	return []v1alpha1.Phase{v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseRolledBack, v1alpha1.PhaseRemoved}
}

// barredBy says why no cluster may run the content of a target: it is quarantined or blocked.
func (o *Observation) barredBy(t v1alpha1.Target) (v1alpha1.Override, bool) {
	if q, ok := o.quarantine(t.Digest); ok {
		kind := v1alpha1.OverrideRollback
		if q.Order != "" {
			kind = v1alpha1.OverrideRecall
		}
		return v1alpha1.Override{Kind: kind, Declared: t, Reason: q.Reason, Author: q.Author, Proposed: q.Proposed}, true
	}
	if b := o.blocks(t); b != nil {
		return v1alpha1.Override{Kind: v1alpha1.OverrideBlocked, Declared: t, Reason: b.Reason}, true
	}
	return v1alpha1.Override{}, false
}

// blocks is the entry of spec.blocked that names the content of a target, by any of its commits; nil: there is none.
func (o *Observation) blocks(t v1alpha1.Target) *v1alpha1.BlockedContent {
	for i := range o.Rollout.Spec.Blocked {
		b := &o.Rollout.Spec.Blocked[i]
		names := func(k v1alpha1.Target) bool { return k.Digest == t.Digest && b.Blocks(k) }
		if b.Blocks(t) || slices.ContainsFunc(o.targets(), names) {
			return b
		}
	}
	return nil
}

// Mistaken names the entries of spec.blocked that match no content of this hub, and lists the content that the hub
// knows; "": every entry matches.
func (o *Observation) Mistaken() string {
	if o.Rollout.Spec.Removal != nil {
		return ""
	}
	var entries, known []string
	for i, b := range o.Rollout.Spec.Blocked {
		if !slices.ContainsFunc(o.targets(), b.Blocks) {
			entries = append(entries, fmt.Sprintf("blocked[%d]: %s introduced no content known here", i, cmp.Or(b.Commit, b.Digest)))
		}
	}
	if len(entries) == 0 {
		return ""
	}
	for _, t := range o.targets() {
		if name := shortOf(t); !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return strings.Join(entries, "; ") + "; known: " + brief.Names(known)
}

// quarantines are the quarantines of the stored revisions, and of revisions that were deleted, even if they were
// created again. If a revision was not deleted, a missing quarantine means that it was lifted, and that the status is
// old.
func (o *Observation) quarantines() map[string]v1alpha1.RememberedQuarantine {
	all := maps.Clone(o.MarkedQuarantined)
	for i := range o.Rollout.Status.History {
		h := &o.Rollout.Status.History[i]
		if q, name := h.Quarantine, h.Target.Revision; q != nil && o.StoredAs[name] != q.RevisionUID {
			if _, known := all[name]; !known {
				all[name] = *q
			}
		}
	}
	return all
}

// successes are the successes of the stored revisions, from their annotations and from the status. The write of an
// annotation may be lost, or a user may delete it.
func (o *Observation) successes() Succeeded {
	s, all := &o.Rollout.Status, slices.Clone(o.MarkedSucceeded)
	add := func(t v1alpha1.Target, at metav1.Time) {
		found := Success{Name: t.Revision, Digest: t.Digest, At: at.UTC().Format(time.RFC3339)}
		if _, stored := o.StoredAs[t.Revision]; stored && all.at(t.Digest) < found.At {
			all = append(slices.DeleteFunc(all, func(x Success) bool { return x.Digest == t.Digest }), found)
		}
	}
	for i := range s.History {
		h := &s.History[i]
		ended := h.Phase == v1alpha1.PhaseSucceeded || h.Phase == v1alpha1.PhaseRolledBack
		if ended && h.Finished != nil && h.Counts.Updated > 0 {
			add(h.Target, *h.Finished)
		}
	}
	if s.Stable != nil && s.TargetSince != nil && all.at(s.Stable.Digest) == "" {
		add(*s.Stable, *s.TargetSince) // its rollout is no longer in the history
	}
	slices.SortStableFunc(all, func(a, b Success) int { return cmp.Or(strings.Compare(b.At, a.At), strings.Compare(a.Name, b.Name)) })
	return all
}

// unmarked are the successes without an annotation. succeeded: the rollout of the target ends Succeeded in this turn.
func (o *Observation) unmarked(succeeded bool) Succeeded {
	lost := slices.DeleteFunc(slices.Clone(o.everSucceeded), func(s Success) bool { return o.MarkedSucceeded.at(s.Digest) == s.At })
	if succeeded {
		lost = slices.DeleteFunc(lost, func(s Success) bool { return s.Digest == o.Target.Digest })
		lost = append(lost, Success{Name: o.Target.Revision, Digest: o.Target.Digest, At: o.InOrder(o.Look.Wall).Format(time.RFC3339)})
	}
	return lost
}

// remembered is the history with the quarantine of each content.
func (o *Observation) remembered(history []v1alpha1.HistoryEntry) []v1alpha1.HistoryEntry {
	history = slices.Clone(history)
	for i := range history {
		history[i].Quarantine = nil
		if q, ok := o.Quarantined[history[i].Target.Revision]; ok {
			history[i].Quarantine = &q
		}
	}
	return history
}

// remembering is the history with the quarantines that this turn writes. If the revisions are deleted before the next
// turn, no turn sees the annotations.
func (o *Observation) remembering(history []v1alpha1.HistoryEntry, changes []QuarantineChange) []v1alpha1.HistoryEntry {
	history = slices.Clone(history)
	for _, w := range changes {
		for i := range history {
			if h := &history[i]; w.Quarantine != nil && h.Target.Revision == w.Revision {
				h.Quarantine = &v1alpha1.RememberedQuarantine{Quarantine: *w.Quarantine, RevisionUID: o.StoredAs[w.Revision]}
			}
		}
	}
	return history
}

// restored quarantines the revisions that were created again.
func (o *Observation) restored(history []v1alpha1.HistoryEntry) []QuarantineChange {
	var again []QuarantineChange
	for i := range history {
		name, q := history[i].Target.Revision, history[i].Quarantine
		if uid, stored := o.StoredAs[name]; q != nil && stored && uid != q.RevisionUID {
			again = append(again, QuarantineChange{Revision: name, Quarantine: &q.Quarantine})
		}
	}
	return again
}

// quarantine reads the quarantine of a digest.
func (o *Observation) quarantine(digest string) (v1alpha1.RememberedQuarantine, bool) {
	q, ok := o.Quarantined[render.RevisionName(o.Rollout.Name, digest)]
	return q, ok
}

// refuge is the digest of the content to which clusters move back from other content; "": there is none. It is the
// content that succeeded last, or that a later order named.
func (o *Observation) refuge(from v1alpha1.Target) string {
	if lost := o.lostRefuge(from); lost != "" {
		return lost
	}
	to := o.Succeeded.before(from.Digest)
	since := o.Succeeded.at(to)
	for _, q := range o.Quarantined {
		if at := q.Time.UTC().Format(time.RFC3339); q.To != from.Digest && o.Succeeded.at(q.To) != "" && at > since {
			to, since = q.To, at
		}
	}
	return to
}

// lostRefuge is the digest of the content to which clusters would move back, if its revision was deleted and no
// order names other content; "": otherwise. The annotation of its success was deleted with the revision. The
// clusters are held, as for any missing revision, because no user asked for older content.
func (o *Observation) lostRefuge(from v1alpha1.Target) string {
	s := &o.Rollout.Status
	to := s.Stable
	if s.Override.Returns() && s.Override.Leaves().Digest == from.Digest && s.Target != nil && s.Target.Digest != from.Digest {
		to = s.Target
	}
	if q, _ := o.quarantine(from.Digest); to == nil || to.Digest == from.Digest || o.Succeeded.at(q.To) != "" {
		return ""
	}
	if _, barred := o.barredBy(*to); barred || o.everSucceeded.Has(to.Revision) {
		return ""
	}
	return to.Digest
}

// known is the target of a digest, with its commit if the rollout knows it.
func (o *Observation) known(digest string) v1alpha1.Target {
	for _, t := range o.targets() {
		if t.Digest == digest {
			return t
		}
	}
	return v1alpha1.Target{
		Source: o.Rollout.Spec.Target.Source, Revision: render.RevisionName(o.Rollout.Name, digest), Digest: digest,
	}
}

// targets are the contents whose commits are known: those of the rollout, the newest first, then those of the stored
// revisions.
func (o *Observation) targets() []v1alpha1.Target {
	var known []v1alpha1.Target
	s := &o.Rollout.Status
	for _, t := range []*v1alpha1.Target{o.Rollout.Spec.Target, s.Target, s.Stable} {
		if t != nil {
			known = append(known, *t)
		}
	}
	for i := range s.History {
		known = append(known, s.History[i].Target)
	}
	return append(known, o.Stored...)
}

// stranded says why no cluster is admitted to the declared content and none can be rolled back; otherwise "".
func (o *Observation) stranded() string {
	if o.Barrier == "" {
		return ""
	}
	leaves, kept := o.Override.Leaves(), "it"
	if o.Target.Digest != leaves.Digest {
		kept = o.Target.Revision
	}
	return "revision " + leaves.Revision + " is quarantined or blocked (" + o.Override.Reason + "), and the clusters keep " + kept + ": " + o.Barrier
}

// Kept reports whether the clusters keep content to which no cluster may be admitted, because they cannot move back.
func (p *Plan) Kept() bool { return p.Observed.stranded() != "" }

// returned is the phase of a rollout to content that Git does not declare.
func returned(phase v1alpha1.Phase) v1alpha1.Phase {
	if phase == v1alpha1.PhaseProgressing {
		return v1alpha1.PhaseRollingBack
	}
	if phase == v1alpha1.PhaseSucceeded {
		return v1alpha1.PhaseRolledBack
	}
	return phase
}

// obstacle says why a failed rollout cannot be rolled back; "": it can. Without a stable revision, clusters can only
// move back to content that a cluster runs: content that succeeded before a removal was never on the clusters of this
// installation.
func (o *Observation) obstacle(stable *v1alpha1.Target) string {
	to := o.refuge(o.Target)
	switch {
	case to == "":
		return "no other revision succeeded here"
	case stable == nil && !slices.ContainsFunc(o.Members, func(m *Member) bool { return o.Succeeded.at(m.Running()) != "" }):
		return "there is no stable revision"
	case stable != nil && stable.Digest == o.Target.Digest:
		return "it is the stable revision"
	case o.Succeeded.Has(o.Target.Revision):
		return "Git already reverted " + titleOf(o.known(to))
	}
	return o.preventing(o.Target.Digest, to, o.policyChangesDefinitions())
}

// policyChangesDefinitions reports whether the policy permits that a rollback changes a
// CustomResourceDefinition.
func (o *Observation) policyChangesDefinitions() bool {
	policy := o.Rollout.Spec.Rollback
	return policy != nil && policy.WithCRDs
}

// mayChangeDefinitions reports whether the policy or an order permits that the rollback to the target changes a
// CustomResourceDefinition. The order is the newest decision to roll content back. Its permission ends when other
// content succeeds.
func (o *Observation) mayChangeDefinitions() bool {
	var newest v1alpha1.Quarantine
	for _, q := range o.Quarantined {
		if newest.Time.Before(&q.Time) {
			newest = q.Quarantine
		}
	}
	return o.policyChangesDefinitions() || newest.WithCRDs && !slices.ContainsFunc(o.everSucceeded, func(s Success) bool {
		return s.Digest != o.Target.Digest && s.At > newest.Time.UTC().Format(time.RFC3339)
	})
}

// Confirm checks a rollback before its first turn, after all reads about the clusters. If a CustomResourceDefinition
// prevents the rollback, it returns the choice that the clusters keep their content, and true.
func (o *Observation) Confirm() (Choice, bool) {
	known := o.Rollout.Status.Target
	if !o.Override.Returns() || o.Barrier != "" || known != nil && known.Digest == o.Target.Digest {
		return o.Choice, false
	}
	why := o.definitionsLost(o.Override.Leaves().Digest, o.Target.Digest, o.mayChangeDefinitions())
	if why == "" {
		return o.Choice, false
	}
	kept := *o
	kept.keep(why)
	return kept.Choice, true
}

// preventing says why the clusters cannot be moved back from one content to another; "": they can.
func (o *Observation) preventing(from, to string, mayChange bool) string {
	name := o.known(from).Revision
	if _, stored := o.StoredAs[name]; !stored {
		return "revision " + name + " is missing and cannot be quarantined; name it in spec.blocked"
	}
	return o.definitionsLost(from, to, mayChange)
}

// definitionsLost says which CustomResourceDefinition prevents a move back from one revision to another, on which
// clusters, and how to resolve it; "": none. A cluster that does not run the revision prevents no move of other
// clusters: see keeps.
func (o *Observation) definitionsLost(from, to string, mayChange bool) string {
	back, err := o.Renderer(to)
	if err != nil {
		return err.Error()
	}
	var lost loss
	var names []string
	leaves := o.leaves(from)
	for _, m := range o.Members {
		if !leaves(m) {
			continue
		}
		l, err := o.lossOf(m, m.renderInput(nil), back, mayChange)
		if err != nil {
			return err.Error()
		}
		if l.definition == "" {
			continue
		}
		if len(names) == 0 {
			lost = l
		}
		if l == lost {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "it would " + lost.verb() + " of " + brief.Names(names) + "; " + lost.remedy()
}

// leaves reports whether a rollback moves a cluster away from a revision. It does if the works of the cluster are of
// that revision. It also does if the works are half written or lost a mark, and the cluster was admitted to that
// revision. A cluster that no stage selects and that was not admitted to its content keeps it.
func (o *Observation) leaves(from string) func(*Member) bool {
	selected, known := o.staged()
	admitted := map[string]string{}
	if records, err := rollout.Records(o.Rollout.Status.Ledger); err == nil {
		for i := range records {
			admitted[records[i].Cluster] = records[i].Revision
		}
	}
	return func(m *Member) bool {
		runs := m.Running()
		if runs == rollout.Mixed {
			runs = admitted[m.Name]
		}
		deleted := m.AddOn != nil && m.AddOn.DeletionTimestamp != nil
		return runs == from && !deleted && (!known || selected[m.Name] || admitted[m.Name] == runs)
	}
}

// staged are the clusters that a stage selects. They are not known without stages, or while a placement is not
// settled.
func (o *Observation) staged() (selected map[string]bool, known bool) {
	if len(o.Rollout.Spec.Stages) == 0 || !AllSettled(o.Placements) {
		return nil, false
	}
	selected = map[string]bool{}
	for _, st := range o.Rollout.Spec.Stages {
		for _, p := range o.Placements {
			if p.Namespace != st.Placement.Namespace || p.Name != st.Placement.Name {
				continue
			}
			for _, g := range p.Groups {
				for _, name := range g.Clusters {
					selected[name] = true
				}
			}
		}
	}
	return selected, true
}

// held reports whether the ManagedCluster of a member holds it now.
func (o *Observation) held(m *Member) bool {
	if m.Cluster == nil {
		return false
	}
	held, until := v1alpha1.HeldByAnnotation(m.Cluster.Annotations)
	return held && (until.IsZero() || o.Look.Wall.Before(until))
}

// loss is a CustomResourceDefinition that a rollback would remove from a cluster, or change there.
type loss struct {
	definition string
	changed    bool
}

func (l loss) verb() string {
	if l.changed {
		return "change CustomResourceDefinition " + l.definition
	}
	return "remove CustomResourceDefinition " + l.definition
}

// remedy says how to roll back in spite of the loss.
func (l loss) remedy() string {
	if l.changed {
		return "to permit that, set rollback.withCRDs, or order it with --with-crds"
	}
	return "a revert in Git does that, a rollback never does"
}

// lossOf is the loss of a cluster when it moves to a revision, compared with the objects in its works. The error is
// that the revision cannot be rendered now.
func (o *Observation) lossOf(m *Member, in render.Cluster, back *render.Renderer, mayChange bool) (loss, error) {
	gone, changed, err := o.displaced(m, in, back)
	switch {
	case errors.Is(err, render.ErrInterrupted):
		return loss{}, err
	case err != nil:
		return loss{}, nil //nolint:nilerr // the works are not written, and the planner reports it
	case len(gone) > 0:
		return loss{definition: gone[0]}, nil
	case len(changed) > 0 && !mayChange:
		return loss{definition: changed[0], changed: true}, nil
	}
	return loss{}, nil
}

// displaced compares the CustomResourceDefinitions of a cluster with those that another revision renders for it: gone
// are absent there, changed differ. If the works equal the rendering of their revision, it compares two cached
// renderings. Otherwise (half written, a lost mark, a missing revision) it reads the works.
func (o *Observation) displaced(m *Member, in render.Cluster, back *render.Renderer) (gone, changed []string, err error) {
	present, err := o.Renderer(m.Health.Revision)
	if err != nil {
		return back.Displaces(in, m.Works)
	}
	if digest, err := present.Digest(in); err != nil || digest != m.Health.Digest {
		return back.Displaces(in, m.Works)
	}
	before, err := present.Definitions(in)
	after, refused := back.Definitions(in)
	if err := cmp.Or(err, refused); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch there, stays := after[name]; {
		case stays && there.Sum != before[name].Sum:
			changed = append(changed, name)
		case !stays && (!before[name].Orphaned || !m.Health.Applied): // an agent that did not apply it may still own it
			gone = append(gone, name)
		}
	}
	return gone, changed, nil
}

// keeps says which CustomResourceDefinition prevents a rollback from moving this one cluster, and how to resolve it;
// "": none. Such a cluster ran other content than the others, or its works differed.
func (t *turn) keeps(j *Judged) string {
	runs := j.Running()
	if !t.Override.Returns() || runs == "" || runs == t.target.digest || t.target.Renderer == nil || !available(j.Cluster) {
		return ""
	}
	lost, err := t.lossOf(j.Member, j.RenderInput(), t.target.Renderer, t.mayChangeDefinitions())
	switch {
	case err != nil:
		return err.Error()
	case lost.definition == "":
		return ""
	}
	return "going back would " + lost.verb() + "; " + lost.remedy()
}

// way has two parts of a message about a rollout to content that Git does not declare: the text of Stay, and the last
// commit that declared the content.
type way struct{ stay, last string }

func (o *Observation) way(d Decided) way {
	return way{o.stay(d), v1alpha1.LastCommit(o.Rollout.Annotations, o.Target)}
}

// overridden is the message of a rollout to content that Git does not declare.
func overridden(s v1alpha1.AddOnRolloutStatus, w way) string {
	if s.Phase == v1alpha1.PhaseFailed { // the problem first
		return problemText(s.Message, s.Counts) + "; " + backText(s, w)
	}
	return backText(s, w) + "; " + s.Message
}

// problemText is the message of a halted rollout, without the count of the waiting clusters. In a rollback these
// clusters are not untouched: they keep the content that the others leave, and Stay counts them.
func problemText(message string, c v1alpha1.Counts) string {
	return strings.Replace(message, fmt.Sprintf(", %d untouched", c.Waiting), "", 1)
}

// wayText names the content that the clusters leave and the content to which they move. stay names the clusters that
// keep their content. If the previous rollout ended Succeeded with the same content, no cluster moves.
func wayText(s v1alpha1.AddOnRolloutStatus, stay string) string {
	if h := s.History; len(h) > 1 && h[1].Target.Digest == s.Target.Digest && h[1].Phase == v1alpha1.PhaseSucceeded {
		return "keeps " + titleOf(*s.Target) + " instead of " + titleOf(s.Override.Leaves()) + stay
	}
	verb := "rolling back"
	if s.Phase == v1alpha1.PhaseRolledBack {
		verb = "rolled back"
	}
	if s.Phase == v1alpha1.PhaseFailed {
		verb = "stopped rolling back"
	}
	return verb + " to " + titleOf(*s.Target) + " from " + titleOf(s.Override.Leaves()) + stay
}

// backText is wayText with two additions: how to make Git declare the content that the clusters run, and why they
// move back. The reason comes last, because it may be long. For blocked content no command is needed, because Git
// itself names it.
func backText(s v1alpha1.AddOnRolloutStatus, w way) string {
	text := wayText(s, w.stay)
	switch {
	case s.Override.Waits(), s.Phase == v1alpha1.PhaseFailed: // not all clusters run it
	case s.Override.Kind == v1alpha1.OverrideBlocked:
	case s.Override.Proposed != "":
		text += " (pull request " + strings.TrimPrefix(path.Base(s.Override.Proposed), "#") + " makes Git agree)"
	case strings.Contains(w.last, "sha1:"):
		text += " (" + v1alpha1.RestoreCommand(shortSHA(w.last)) + ")"
	}
	return text + ": " + s.Override.Reason
}

// Stay names the clusters that keep the content from which the fleet moves back, such as ", 2 held by annotation (c1,
// c2)"; "": no cluster keeps it, or the fleet does not move back.
func (p *Plan) Stay() string { return p.Observed.stay(p.Decided) }

func (o *Observation) stay(d Decided) string {
	if !o.Override.Returns() {
		return ""
	}
	stopped := d.Planned.Halted || d.Planned.Phase == v1alpha1.PhaseFailed
	ended := d.Planned.Phase == v1alpha1.PhaseSucceeded
	because := map[string][]string{}
	for i := range d.Clusters {
		c := &d.Clusters[i]
		why := ""
		switch {
		case c.Cluster == nil || c.Planned.Stage == "" || c.Running() == "" || c.Running() == o.Target.Digest:
			continue
		case o.held(c.Member):
			why = heldByAnnotation
		case c.Keeps != "":
			why = heldByCRD
		case c.unwritable():
			why = notWritable
		case ended, stopped && !c.Planned.State.InFlight():
			why = notMoved
		default:
			continue
		}
		because[why] = append(because[why], c.Name)
	}
	var text strings.Builder
	for _, why := range []string{heldByAnnotation, heldByCRD, notWritable, notMoved} {
		if names := because[why]; len(names) > 0 {
			fmt.Fprintf(&text, ", %d %s (%s)", len(names), why, brief.Names(names))
		}
	}
	return text.String()
}

// Reasons why a cluster keeps the content from which the fleet moves back.
const (
	heldByAnnotation = "held by annotation"
	heldByCRD        = "held by a CRD"
	notWritable      = "cannot be written"
	notMoved         = "not moved"
)

// unwritable reports whether the cluster lacks works of the target that cannot be written, or could not be written in
// time.
func (c *Cluster) unwritable() bool {
	s := c.Planned.State
	return c.Hindered != nil || c.Refused != nil || c.HostingProblem() != "" || c.Planned.NotApplied != "" || s == rollout.Failed || s == rollout.TimedOut
}

// failureText is the message of a failed rollout whose clusters move back. Clusters that wait for the content and run
// other content that never succeeded leave that content, too.
func (o *Observation) failureText(message string, d Decided) string {
	to := o.Succeeded.newest().Digest
	moving, what := 0, ""
	for i := range d.Clusters {
		c := &d.Clusters[i]
		runs := c.Running()
		if c.Planned.State != rollout.Waiting || slices.Contains([]string{"", rollout.Mixed, rollout.Foreign, to, o.Target.Digest}, runs) {
			continue
		}
		if title := titleOf(o.known(runs)); moving == 0 || what == title {
			what = title
		} else {
			what = "other content"
		}
		moving++
	}
	if moving == 0 {
		return message
	}
	waiting := int(d.Planned.Counts.Waiting)
	message = problemText(message, d.Planned.Counts)
	if rest := waiting - moving; rest > 0 {
		message += fmt.Sprintf(", %d untouched", rest)
	}
	verb := "leave"
	if moving == 1 {
		verb = "leaves"
	}
	return fmt.Sprintf("%s, %s %s %s", message, brief.Count(moving, "cluster"), verb, what)
}

// Postponed says which rollout the declared content waits for; "": it does not wait.
func Postponed(s *v1alpha1.AddOnRolloutStatus) string {
	o := s.Override
	switch {
	case !o.Waits():
		return ""
	case o.Returns():
		return shortOf(o.Declared) + " waits for the rollback from " + shortOf(o.Leaves()) + " (onNewCommit is Finish)"
	}
	return shortOf(o.Declared) + " waits for " + shortOf(*s.Target) + " (onNewCommit is Finish)"
}

// shortOf is main@9f3c2ab, otherwise the revision of a target.
func shortOf(t v1alpha1.Target) string {
	ref, _, found := strings.Cut(t.Commit, "@sha")
	sha := v1alpha1.CommitOf(t.Commit)
	if !found {
		return titleOf(t)
	}
	return ref + "@" + sha[:min(len(sha), 7)]
}

// titleOf is the short sha of a target's commit, otherwise its revision.
func titleOf(t v1alpha1.Target) string { return cmp.Or(shaOf(t), t.Revision) }

// shaOf is the short sha of a target's commit; "": it is not known.
func shaOf(t v1alpha1.Target) string { return shortSHA(t.Commit) }

// shortSHA is the short sha of a revision <ref>@sha1:<commit>; "" without a commit.
func shortSHA(revision string) string {
	sha := v1alpha1.CommitOf(revision)
	return sha[:min(len(sha), 10)]
}
