package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
)

// rowsShown is how many rollouts or clusters one page shows.
const rowsShown = 200

// Fleet is the page of all rollouts and sources.
type Fleet struct {
	Frame
	// Standing is one sentence about all rollouts.
	Standing string
	Rollouts []RolloutRow
	// More counts the rollouts that are not listed.
	More    int
	Sources []SourceRow
	Notes   []string
}

// RolloutRow is one rollout of a fleet.
type RolloutRow struct {
	Mark                                    Mark
	Rollout                                 Link
	Commit, Stage, Counts, Message, Started string
	Updated, Total                          int32
}

// SourceRow is one source of a fleet.
type SourceRow struct {
	Mark             Mark
	Source           Link
	Applied, Message string
	AddOns           int
}

// NewFleet is the page of the rollouts and sources that the viewer may get. notes name the omitted parts.
func NewFleet(f Frame, rollouts []v1alpha1.AddOnRollout, sources []v1alpha1.AddOnSource, notes []string, now time.Time) Fleet {
	f.Title, f.Live = "Rollouts", true
	p := Fleet{Frame: f, Notes: notes}
	byNeed := make([]*v1alpha1.AddOnRollout, len(rollouts))
	for i := range rollouts {
		byNeed[i] = &rollouts[i]
	}
	slices.SortFunc(byNeed, func(a, b *v1alpha1.AddOnRollout) int {
		return cmp.Or(cmp.Compare(need(a), need(b)), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	needs := 0
	for i, r := range byNeed {
		if need(r) <= needsUser {
			needs++
		}
		if i < rowsShown {
			p.Rollouts = append(p.Rollouts, rolloutRow(r, now))
		}
	}
	p.More = len(rollouts) - len(p.Rollouts)
	refused := 0
	for i := range sources {
		if show.SourceOutcome(&sources[i]) == show.Failed {
			refused++
		}
		p.Sources = append(p.Sources, sourceRow(&sources[i]))
	}
	slices.SortStableFunc(p.Sources, func(a, b SourceRow) int {
		return cmp.Or(cmp.Compare(toneOrder(a.Mark.Tone), toneOrder(b.Mark.Tone)), strings.Compare(a.Source.Text, b.Source.Text))
	})
	need := "need"
	if needs == 1 {
		need = "needs"
	}
	p.Standing = fmt.Sprintf("%s, %d %s attention; %s, %d refused.", brief.Count(len(rollouts), "rollout"), needs, need, brief.Count(len(sources), "source"), refused)
	return p
}

// needsUser is the last rank of need in which a rollout waits for a user.
const needsUser = 2

// need ranks a rollout by how much attention it needs. The first rank needs the most.
func need(r *v1alpha1.AddOnRollout) int {
	switch show.OutcomeOf(r) {
	case show.Failed:
		return 0
	case show.Waiting:
		if r.Status.Phase == v1alpha1.PhaseRolledBack {
			return 1
		}
		return needsUser
	case show.Running:
		for _, st := range r.Status.Stages {
			if slices.ContainsFunc(st.Gates, func(g v1alpha1.GateStatus) bool {
				return g.Since != nil && (g.Type == v1alpha1.GateApproval && g.State == v1alpha1.GateWaiting || g.State == v1alpha1.GateError)
			}) {
				return needsUser
			}
		}
		return needsUser + 1
	case show.Succeeded:
	}
	return needsUser + 2
}

// toneOrder ranks tones: states that need a user come first.
func toneOrder(tone string) int {
	return slices.Index([]string{"bad", "held", "moving", "idle", "good"}, tone)
}

func rolloutRow(r *v1alpha1.AddOnRollout, now time.Time) RolloutRow {
	word, mark := show.Headline(r)
	row := RolloutRow{
		Mark: markOf(word, mark), Rollout: Link{r.Namespace + "/" + r.Name, RolloutPath(r.Namespace, r.Name, CurrentCommit(r))},
		Stage: show.StagePosition(r.Status.Stages), Counts: show.Counted(r.Status.Counts), Message: show.Message(r),
		Started: show.Age(now, r.Status.TargetSince), Updated: r.Status.Counts.Updated, Total: r.Status.Counts.Total, Commit: "–",
	}
	if r.Spec.Target != nil {
		row.Commit = show.ShortCommit(r.Spec.Target.Commit)
	}
	return row
}

func sourceMark(s *v1alpha1.AddOnSource) Mark {
	switch show.SourceOutcome(s) {
	case show.Failed:
		return Mark{"✗", "Failed", "bad"}
	case show.Waiting:
		return Mark{"‖", "Suspended", "held"}
	case show.Running:
		return Mark{"⟳", "Reconciling", "moving"}
	case show.Succeeded:
	}
	return Mark{"✔", "Ready", "good"}
}

func sourceRow(s *v1alpha1.AddOnSource) SourceRow {
	row := SourceRow{
		Mark: sourceMark(s), Source: Link{s.Namespace + "/" + s.Name, SourcePath(s.Namespace, s.Name, "")},
		Applied: cmp.Or(show.ShortCommit(s.Status.LastAppliedRevision), "–"), AddOns: len(s.Status.AddOns),
	}
	if ready := apimeta.FindStatusCondition(s.Status.Conditions, meta.ReadyCondition); ready != nil {
		row.Message = show.FirstLine(ready.Message)
	}
	return row
}

// Source is the page of one source.
type Source struct {
	Frame
	Namespace, Name, URL, Folder string
	Mark                         Mark
	Standing                     string
	// Trouble has every line of the problem.
	Trouble            string
	Applied, Attempted Commit
	AddOns             []SourcedRow
	Next               []show.Advice
}

// SourcedRow is an add-on of a source.
type SourcedRow struct {
	Rollout Link
	Commit  Commit
}

// NewSource is the page of a source.
func NewSource(f Frame, s *v1alpha1.AddOnSource) Source {
	f.Live = true
	p := Source{
		Frame: f, Namespace: s.Namespace, Name: s.Name, URL: s.Spec.Address(), Folder: s.Spec.Path, Mark: sourceMark(s),
		Applied: f.commit(s.Status.LastAppliedRevision, s), Attempted: f.commit(s.Status.LastAttemptedRevision, s),
	}
	p.Title = fmt.Sprintf("Source %s: %s", s.Name, p.Mark.Word)
	row := sourceRow(s)
	p.Standing = sentence(cmp.Or(row.Message, "nothing was read yet"))
	if refusal := show.Refusal(s); refusal != "" {
		p.Standing = "The source " + sentence(refusal)
		p.Next = show.NextOfSource(program, s)
	}
	for _, name := range []string{meta.StalledCondition, meta.ReadyCondition} {
		c := apimeta.FindStatusCondition(s.Status.Conditions, name)
		if c != nil && (name == meta.StalledCondition) == (c.Status == metav1.ConditionTrue) && p.Trouble == "" {
			p.Trouble = c.Message
		}
	}
	if now := show.ReadNow(program, s); !slices.ContainsFunc(p.Next, func(a show.Advice) bool { return a.Command == now }) {
		p.Next = append(p.Next, show.Advice{Text: "Read the repository now.", Command: now})
	}
	for _, a := range s.Status.AddOns {
		p.AddOns = append(p.AddOns, SourcedRow{Link{a.Name, RolloutPath(s.Namespace, a.Name, v1alpha1.CommitOf(a.Commit))}, f.commit(a.Commit, s)})
	}
	return p
}

// Cluster is the page of one cluster, with the state of each of its add-ons and the reason.
type Cluster struct {
	Frame
	Name     string
	Standing string
	AddOns   []ClusterRow
	Notes    []string
}

// ClusterRow is one add-on of a cluster, or one cluster of an add-on.
type ClusterRow struct {
	Mark                            Mark
	Name                            Link
	Stage, Reason, Revision, Ending string
	Next                            show.Advice
}

// On is a cluster in the plan of a rollout.
type On struct {
	Rollout *v1alpha1.AddOnRollout
	Plan    rollout.ClusterPlan
}

// NewCluster is the page of a cluster.
func NewCluster(f Frame, name string, on []On, notes []string) Cluster {
	f.Title, f.Live = "Cluster "+name, true
	p := Cluster{Frame: f, Name: name, Notes: notes}
	bad := 0
	for _, o := range on {
		row := clusterRow(o.Rollout, o.Plan)
		row.Name = Link{o.Rollout.Namespace + "/" + o.Rollout.Name, RolloutPath(o.Rollout.Namespace, o.Rollout.Name, CurrentCommit(o.Rollout))}
		if row.Mark.Tone == "bad" {
			bad++
			row.Next = show.Advice{Text: "Try it again here with the same content.", Command: show.Command(program, "retry", o.Rollout.Name, name, "-n", o.Rollout.Namespace, "-m", show.OrderReason)}
		}
		p.AddOns = append(p.AddOns, row)
	}
	slices.SortStableFunc(p.AddOns, func(a, b ClusterRow) int {
		return cmp.Compare(toneOrder(a.Mark.Tone), toneOrder(b.Mark.Tone))
	})
	p.Standing = fmt.Sprintf("%s, %d failed.", brief.Count(len(on), "add-on"), bad)
	return p
}

func clusterRow(r *v1alpha1.AddOnRollout, c rollout.ClusterPlan) ClusterRow {
	seen := show.ClusterOf(r, c)
	row := ClusterRow{Mark: stateMark(c.State), Name: Link{c.Name, clusterPath(c.Name)}, Stage: c.Stage, Reason: c.Reason, Revision: seen.Revision}
	switch {
	case seen.SoakingUntil != nil:
		row.Ending = "soaking until " + momentOf(*seen.SoakingUntil).Text
	case seen.Deadline != nil:
		row.Ending = "deadline " + momentOf(*seen.Deadline).Text
	}
	return row
}

// Clusters is a page of the clusters of a rollout.
type Clusters struct {
	Frame
	Rollout Link
	// Of names the clusters in the list.
	Of       string
	Clusters []ClusterRow
	// Total is the number of these clusters. Next is the following page.
	Total int
	Next  string
}

// ClustersOf selects clusters of a rollout: of a stage, in a state, beginning with a name.
type ClustersOf struct{ Stage, State, From string }

// NewClusters lists clusters of a rollout by name.
func NewClusters(f Frame, s Subject, of ClustersOf) Clusters {
	r := s.Rollout
	p := Clusters{Frame: f, Rollout: Link{r.Namespace + "/" + r.Name, RolloutPath(r.Namespace, r.Name, CurrentCommit(r))}}
	p.Title = "Clusters of " + r.Name
	p.Of = "All clusters"
	if of.Stage != "" {
		p.Of = "Clusters of stage " + of.Stage
	}
	if of.State != "" {
		p.Of += " that are " + of.State
	}
	if s.Plan == nil {
		return p
	}
	for _, c := range s.Plan.Clusters {
		if c.State == rollout.Ignored || of.Stage != "" && c.Stage != of.Stage || of.State != "" && string(c.State) != of.State {
			continue
		}
		p.Total++
		switch {
		case c.Name < of.From:
		case len(p.Clusters) < rowsShown:
			p.Clusters = append(p.Clusters, clusterRow(r, c))
		case p.Next == "":
			p.Next = clustersPath(r, ClustersOf{of.Stage, of.State, c.Name})
		}
	}
	return p
}
