package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
)

// Subject has the objects of a page of a rollout.
type Subject struct {
	Rollout *v1alpha1.AddOnRollout
	// Source of the rollout; nil: it does not exist, or the viewer may not get it.
	Source *v1alpha1.AddOnSource
	// Plan of every cluster; if it is nil, Unplanned says why.
	Plan      *rollout.Plan
	Unplanned string
	// Change has the changes of the content on one cluster; if it is nil, Unchanged says why.
	Change    *Change
	Unchanged string
	// Asked is the sha of the commit in the address of the page; "": the current one.
	Asked string
	// Now is the time.
	Now time.Time
}

// Change has the changes of content on one cluster.
type Change struct {
	Cluster string
	// From is the content of Before; nil: not known.
	From          *v1alpha1.Target
	Before, After []*unstructured.Unstructured
}

// Rollout is the page of a rollout, or of one commit in its history.
type Rollout struct {
	Frame
	Namespace, Name string
	Commit          Commit
	// Author and Subject of the commit; "": not known.
	Author, Subject string
	Source          Link
	// Mark and Standing are the state of the rollout in a word and in a sentence; Since is when the rollout began.
	Mark     Mark
	Standing string
	Since    Moment
	Took     string
	// Notes are about the page itself: the parts that it does not show, and why.
	Notes  []string
	Stages []Stage
	// Others are clusters in no stage.
	Others *Squares
	Why    *Why
	What   *What
	Next   []show.Advice
	When   []Entry
	// Earlier are the entries that are hidden until the user opens them.
	Earlier []Entry
	Before  []Past
	// Past is set on the page of a commit that is not being rolled out any more.
	Past *Past
}

// Stage is one stage of a rollout.
type Stage struct {
	Name string
	Mark Mark
	// Counts, Pace and Remark are texts; Updated of Total is the bar.
	Counts, Pace, Remark string
	Updated, Total       int32
	Soaking              Moment
	Gates                []Gate
	// Squares are nil if the clusters are not known.
	Squares *Squares
}

// Gate is a gate of a stage with its verdict.
type Gate struct {
	Mark
	Name, When, Type, Reason string
	Since                    Moment
}

// Why says why clusters failed, or why the fleet is rolled back.
type Why struct {
	Title string
	// First is the cluster with that reason. If it has no text, the reason is not of a single cluster.
	First  Link
	Reason string
	// Same counts the other failed clusters with the same reason.
	Same string
	// Others are further reasons.
	Others []Group
}

// What is the rendered difference on one cluster.
type What struct {
	Cluster Link
	// From names the content before. Same: the cluster ran the same content before.
	From  string
	Same  bool
	Lines []show.DiffLine
	// Cut counts the omitted lines.
	Cut int
}

// Entry is one decision of the journal.
type Entry struct {
	At                              Moment
	Decision, Stage, Reason, Commit string
	Clusters                        int32
}

// Past is one rollout of the history.
type Past struct {
	Commit               Commit
	To                   string
	Mark                 Mark
	Started              Moment
	Took, Counts, Reason string
	Superseded           Link
	Stages               []PastStage
	Failing              []v1alpha1.ClusterReason
	Revision             string
	// Now says what the clusters do with the commit at present. Current is the rollout that is running or ended last.
	Now     string
	Current Link
}

// PastStage is a stage of a past rollout.
type PastStage struct {
	Name    string
	Mark    Mark
	Started Moment
	Took    string
}

const (
	// diffLines is how many lines of the difference are shown.
	diffLines = 400
	// entriesOpen is how many decisions are shown without a click.
	entriesOpen = 12
)

// Content is the content of the current rollout: the content of Git, or the content from which the fleet is rolled
// back. If the declared content waits for the end of a rollout, it is the content of that rollout. nil: there is none
// yet.
func Content(r *v1alpha1.AddOnRollout) *v1alpha1.Target {
	switch o := r.Status.Override; {
	case r.Spec.Target == nil:
		return r.Status.Target
	case o == nil || o.Declared != *r.Spec.Target: // there is no plan for the newest commit yet
		return r.Spec.Target
	case o.Returns():
		return new(o.Leaves())
	}
	return r.Status.Target
}

// CurrentCommit is the sha of the commit of the current rollout; "": it has none yet.
func CurrentCommit(r *v1alpha1.AddOnRollout) string {
	if c := Content(r); c != nil {
		return v1alpha1.CommitOf(c.Commit)
	}
	return ""
}

// Concerns reports the relation of a commit to a rollout. current: its page is that of the current rollout. Otherwise
// its page is that of the history entry with the index; false and -1: it has no page.
func Concerns(r *v1alpha1.AddOnRollout, source *v1alpha1.AddOnSource, sha string) (current bool, past int) {
	matches := func(revision string) bool {
		return len(sha) >= 7 && strings.HasPrefix(v1alpha1.CommitOf(revision), sha)
	}
	if c := Content(r); c != nil && matches(c.Commit) {
		return true, -1
	}
	if past := begunBy(r, matches); past >= 0 {
		return false, past
	}
	shown := []string{r.Spec.PolicyCommit} // commits without a rollout of their own
	if r.Spec.Target != nil {
		shown = append(shown, r.Spec.Target.Commit)
	}
	if source != nil {
		shown = append(shown, source.Status.LastAppliedRevision, source.Status.LastAttemptedRevision)
	}
	if r.Spec.Removal != nil {
		shown = append(shown, "sha1:"+r.Spec.Removal.Commit)
	}
	return slices.ContainsFunc(shown, matches), -1
}

// begunBy is the index of the newest rollout in the history that a commit began; -1: none. A rollback to the commit
// is another rollout of its content: it counts only if the history has no other one.
func begunBy(r *v1alpha1.AddOnRollout, matches func(revision string) bool) int {
	rollback := -1
	for i := range r.Status.History {
		h := &r.Status.History[i]
		switch {
		case !matches(h.Target.Commit):
		case h.Phase != v1alpha1.PhaseRollingBack && h.Phase != v1alpha1.PhaseRolledBack && (i > 0 || !r.Status.Override.Returns()):
			return i
		case rollback < 0:
			rollback = i
		}
	}
	return rollback
}

// NewRollout is the page of the current rollout.
func NewRollout(f Frame, s Subject) Rollout {
	r := s.Rollout
	p := begun(f, s)
	word, mark := show.PhaseOf(r)
	p.Mark, p.Live = markOf(word, mark), true
	p.Author, p.Subject = said(s, p.Commit)
	p.Standing = standing(r)
	p.Since = metaMoment(r.Status.TargetSince)
	p.Notes = asked(s)
	if r.Status.Reverting && r.Status.Target != nil {
		p.Notes = append(p.Notes, show.ShortCommit(r.Status.Target.Commit)+" succeeded here before: clusters move to it without soaks and gates.")
	}
	for _, text := range []string{s.Unplanned, s.Unchanged} {
		if text != "" && !slices.Contains(p.Notes, text) {
			p.Notes = append(p.Notes, text)
		}
	}
	p.stages(s)
	p.Why = why(s)
	p.What = what(s)
	if s.Source != nil && show.Refusal(s.Source) != "" {
		p.Next = append([]show.Advice{{Text: "The source has no newer content: " + show.Refusal(s.Source) + "."}}, show.NextOfSource(program, s.Source)...)
	}
	p.Next = append(p.Next, show.Next(program, r)...)
	p.When = entries(r, "")
	if len(p.When) > entriesOpen+1 {
		p.When, p.Earlier = p.When[:entriesOpen], p.When[entriesOpen:]
	}
	for i := range r.Status.History {
		if i > 0 || r.Status.Target == nil || r.Status.History[0].Target != *r.Status.Target {
			p.Before = append(p.Before, past(f, s, i))
		}
	}
	p.Title = fmt.Sprintf("%s: %s", r.Name, word)
	return p
}

// NewPast is the page of a commit that is in the history only.
func NewPast(f Frame, s Subject, index int) Rollout {
	p := begun(f, s)
	entry := past(f, s, index)
	h := s.Rollout.Status.History[index]
	p.Past, p.Commit, p.Mark = &entry, entry.Commit, entry.Mark
	p.Author, p.Subject = said(s, p.Commit)
	p.Since, p.Took = entry.Started, entry.Took
	entry.Now, entry.Current = "This commit is not rolled out any more.", Link{"The current rollout", RolloutPath(p.Namespace, p.Name, CurrentCommit(s.Rollout))}
	if t := s.Rollout.Status.Target; t != nil && t.Commit == h.Target.Commit {
		entry.Now, p.Live = standing(s.Rollout), true
	}
	p.Standing = fmt.Sprintf("%d of %s ran it when its rollout ended", h.Counts.Updated, brief.Count(int(h.Counts.Total), "cluster"))
	if text := show.FirstLine(h.Reason); text != "" {
		p.Standing += ": " + text
	}
	p.Standing = sentence(p.Standing)
	p.When = entries(s.Rollout, entry.Commit.SHA)
	p.Title = fmt.Sprintf("%s: %s, %s", s.Rollout.Name, entry.Commit.Short, h.Phase)
	return p
}

// said returns author and subject of a commit, if the source has them.
func said(s Subject, c Commit) (author, subject string) {
	if s.Source == nil || c.SHA == "" {
		return "", ""
	}
	for _, a := range s.Source.Status.AddOns {
		if v1alpha1.CommitOf(a.Commit) == c.SHA {
			return a.Author, a.Subject
		}
	}
	return "", ""
}

// asked says how the commit in the address relates to the content of the page.
func asked(s Subject) []string {
	if s.Asked == "" || strings.HasPrefix(CurrentCommit(s.Rollout), s.Asked) {
		return nil
	}
	short := s.Asked[:min(len(s.Asked), 7)]
	if o := s.Rollout.Status.Override; o.Waits() && strings.HasPrefix(v1alpha1.CommitOf(o.Declared.Commit), s.Asked) {
		return []string{"Commit " + short + " waits until this rollout has ended. This page is about the commit that it waits for."}
	}
	if s.Source != nil && s.Source.Status.Refused() && strings.HasPrefix(v1alpha1.CommitOf(s.Source.Status.LastAttemptedRevision), s.Asked) {
		return []string{"Commit " + short + " is refused by source " + s.Source.Name + ", so that nothing of it is applied. This page is about the content before it."}
	}
	return []string{"Commit " + short + " did not change the content of this add-on. This page is about the commit that did."}
}

func begun(f Frame, s Subject) Rollout {
	r := s.Rollout
	p := Rollout{Frame: f, Namespace: r.Namespace, Name: r.Name}
	if target := Content(r); target != nil {
		p.Commit = f.commit(target.Commit, s.Source)
		p.Source = Link{target.Source, SourcePath(r.Namespace, target.Source, "")}
	}
	return p
}

// standing is one sentence about the state of a rollout. It names the content of the counts, which is not the
// declared content while the fleet is rolled back from that content.
func standing(r *v1alpha1.AddOnRollout) string {
	switch {
	case !show.Current(r) && len(r.Status.CarriedOut) > 0:
		return sentence("The rollout " + show.Message(r))
	case !show.Current(r):
		return "The operator has not planned the newest commit yet."
	}
	content := "the content"
	if r.Status.Target != nil {
		content = show.ShortCommit(r.Status.Target.Commit)
	}
	text := fmt.Sprintf("%d of %s run %s", r.Status.Counts.Updated, brief.Count(int(r.Status.Counts.Total), "cluster"), content)
	if o := r.Status.Override; o.Returns() {
		return text + ", rolled back from " + show.ShortCommit(o.Leaves().Commit) + "."
	}
	if message := show.Message(r); message != "" {
		text += ": " + message
	}
	return sentence(text)
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// stages adds the stages, with their clusters if the plan is known.
func (p *Rollout) stages(s Subject) {
	r := s.Rollout
	members := map[string][]rollout.ClusterPlan{}
	var all []rollout.ClusterPlan
	if s.Plan != nil {
		for _, c := range s.Plan.Clusters {
			if c.State == rollout.Ignored {
				continue
			}
			members[c.Stage] = append(members[c.Stage], c)
			all = append(all, c)
		}
	}
	room := roomOf(all)
	squares := func(stage string) *Squares {
		if len(members[stage]) == 0 {
			return nil
		}
		drawing := drawn(r, stage, members[stage], room)
		delete(members, stage)
		return &drawing
	}
	for _, st := range r.Status.Stages {
		view := Stage{
			Name: st.Name, Mark: markOf(st.Phase, show.StageMark(st.Phase)), Counts: show.Counted(st.Counts), Remark: show.StageRemark(st),
			Updated: st.Counts.Updated, Total: st.Counts.Total, Soaking: metaMoment(st.SoakingUntil), Squares: squares(st.Name),
		}
		declared := slices.IndexFunc(r.Spec.Stages, func(d v1alpha1.Stage) bool { return d.Name == st.Name })
		if declared >= 0 {
			view.Pace = paceOf(r.Spec.Stages[declared])
			view.Gates = gates(r, r.Spec.Stages[declared].Gates, st.Gates)
		}
		p.Stages = append(p.Stages, view)
	}
	var rest []rollout.ClusterPlan // clusters of no stage, or of a stage that the status does not have yet
	for _, clusters := range members {
		rest = append(rest, clusters...)
	}
	if len(rest) > 0 {
		slices.SortFunc(rest, func(a, b rollout.ClusterPlan) int { return strings.Compare(a.Name, b.Name) })
		drawing := drawn(r, "", rest, room)
		p.Others = &drawing
	}
}

// paceOf is the declared pace of a stage in words.
func paceOf(st v1alpha1.Stage) string {
	parts := []string{"its clusters at once"}
	if st.MaxConcurrency != nil {
		parts[0] = st.MaxConcurrency.String() + " at once"
	}
	if st.MinSuccessTime.Duration > 0 {
		parts = append(parts, "soak "+brief.Duration(st.MinSuccessTime.Duration))
	}
	parts = append(parts, "deadline "+cmp.Or(st.ProgressDeadline, "1h"))
	failures := "0"
	if st.MaxFailures != nil {
		failures = st.MaxFailures.String()
	}
	return strings.Join(append(parts, failures+" may fail"), ", ")
}

// gates are the declared gates with their verdicts. A revert evaluates none.
func gates(r *v1alpha1.AddOnRollout, declared *v1alpha1.Gates, verdicts []v1alpha1.GateStatus) []Gate {
	if declared == nil {
		return nil
	}
	var out []Gate
	unasked := Mark{"○", "not asked yet", "idle"}
	if r.Status.Reverting {
		unasked.Word = "not asked in a revert"
	}
	for _, group := range []struct {
		when  v1alpha1.GateMoment
		gates []v1alpha1.Gate
	}{{v1alpha1.GateBefore, declared.Before}, {v1alpha1.GateDuring, declared.During}} {
		for _, g := range group.gates {
			view := Gate{Mark: unasked, Name: g.Name, When: strings.ToLower(string(group.when)), Type: string(g.Type)}
			at := slices.IndexFunc(verdicts, func(v v1alpha1.GateStatus) bool { return v.Name == g.Name && v.When == group.when })
			if at >= 0 && verdicts[at].Since != nil {
				v := verdicts[at]
				view.Mark, view.Reason, view.Since = markOf(string(v.State), show.GateMark(v.State)), v.Reason, metaMoment(v.Since)
				if v.By != "" {
					view.Reason = strings.TrimPrefix(view.Reason+", by "+v.By, ", ")
				}
			}
			out = append(out, view)
		}
	}
	return out
}

// why explains the failures: the first cluster that the status names, with the message of its workload, and how many
// clusters failed for the same reason.
func why(s Subject) *Why {
	failing := s.Rollout.Status.Failing
	switch o := s.Rollout.Status.Override; {
	case !show.Current(s.Rollout):
		return nil
	case len(failing) == 0 && o.Returns() && o.Reason != "":
		return &Why{Title: "Why it was rolled back", Reason: o.Reason}
	case len(failing) == 0:
		return nil
	}
	first := failing[0]
	w := &Why{Title: "Why clusters failed", First: Link{first.Cluster, clusterPath(first.Cluster)}, Reason: first.Reason}
	alikeFirst := 0
	others := map[groupKey][]string{}
	var order []groupKey
	add := func(state rollout.State, reason, cluster string) {
		key := groupKey{state, alike(reason)}
		switch {
		case cluster == first.Cluster:
			return
		case key.reason == alike(w.Reason):
			alikeFirst++
			return
		case others[key] == nil:
			order = append(order, key)
		}
		others[key] = append(others[key], cluster)
	}
	if s.Plan != nil {
		if c, ok := s.Plan.Why(first.Cluster); ok && c.Reason != "" {
			w.Reason = c.Reason
		}
		for _, c := range s.Plan.Clusters {
			if show.ClusterMark(c.State).Tone() == "bad" {
				add(c.State, c.Reason, c.Name)
			}
		}
	} else {
		for _, f := range failing {
			add(rollout.Failed, f.Reason, f.Cluster)
		}
	}
	if alikeFirst > 0 {
		w.Same = fmt.Sprintf("The same on %d more.", alikeFirst)
	}
	slices.SortStableFunc(order, func(a, b groupKey) int { return cmp.Compare(len(others[b]), len(others[a])) })
	for _, key := range order[:min(len(order), groupsShown)] {
		g := groupOf(key, others[key])
		g.All = clustersPath(s.Rollout, ClustersOf{State: string(key.state)})
		w.Others = append(w.Others, g)
	}
	return w
}

// what is the change on one cluster as a unified diff.
func what(s Subject) *What {
	if s.Change == nil {
		return nil
	}
	lines, err := show.DiffLines(s.Change.Before, s.Change.After)
	if err != nil {
		return nil // rendered objects can be printed
	}
	w := &What{Cluster: Link{s.Change.Cluster, clusterPath(s.Change.Cluster)}, Lines: lines}
	if from := s.Change.From; from != nil {
		w.From, w.Same = cmp.Or(show.ShortCommit(from.Commit), from.Revision), from.Digest == Content(s.Rollout).Digest
	}
	if len(lines) > diffLines {
		w.Lines, w.Cut = lines[:diffLines], len(lines)-diffLines
	}
	return w
}

// entries are the decisions, newest first; with a sha, only those about its commit.
func entries(r *v1alpha1.AddOnRollout, sha string) []Entry {
	var out []Entry
	for _, e := range slices.Backward(r.Status.Journal) {
		if sha == "" || e.Commit != "" && strings.HasPrefix(sha, e.Commit) {
			out = append(out, Entry{
				At: momentOf(e.At.Time), Decision: e.Decision, Stage: e.Stage, Reason: e.Reason, Clusters: e.Clusters,
				Commit: e.Commit[:min(len(e.Commit), 7)],
			})
		}
	}
	return out
}

// past is one entry of the history.
func past(f Frame, s Subject, index int) Past {
	r := s.Rollout
	h := &r.Status.History[index]
	phase := show.PhaseMark(h.Phase)
	p := Past{
		Commit: f.commit(h.Target.Commit, s.Source), Mark: markOf(string(h.Phase), phase), Started: momentOf(h.Started.Time),
		Took:   show.Took(s.Now, h.Started, h.Finished),
		Counts: fmt.Sprintf("%d/%d", h.Counts.Updated, h.Counts.Total), Reason: show.FirstLine(h.Reason), Failing: h.Failing,
		Revision: h.Target.Revision,
	}
	if more := show.Counted(h.Counts); more != "" {
		p.Counts += ", " + more
	}
	p.To = RolloutPath(r.Namespace, r.Name, p.Commit.SHA)
	if h.SupersededBy != "" {
		p.Superseded = Link{show.ShortCommit(h.SupersededBy), RolloutPath(r.Namespace, r.Name, v1alpha1.CommitOf(h.SupersededBy))}
	}
	for _, st := range h.Stages {
		p.Stages = append(p.Stages, PastStage{
			Name: st.Name, Mark: markOf(st.Phase, show.StageMark(st.Phase)), Started: momentOf(st.Started.Time), Took: show.Took(s.Now, st.Started, cmp.Or(st.Finished, h.Finished)),
		})
	}
	return p
}
