package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// branch is one line of the tree, in columns.
type branch struct {
	twig     string // connects it to its parent
	mark     Mark
	name     string
	status   string
	clusters string
	bar      string
	// remark replaces clusters and bar, up to the end of the line.
	remark string
}

func (b branch) label() string { return b.twig + b.mark.Icon + " " + b.name }

// Tree draws a rollout: its target, its stages with bars, and the clusters that fail with their reasons.
//
//	Rollout   default/hello   ⟳ Progressing   stage 2/2 everyone
//	Commit    main@9f3c2ab (4m ago)   stable main@51d07e9   commit status reported ✔
//	Message   everyone 9/22, 6 in flight
//
//	NAME              STATUS         CLUSTERS             PROGRESS
//	⟳ hello           Progressing    11/24  6 in flight   █████████░░░░░░░░░░░
//	├─ ✔ canary       Complete       2/2                  ████████████████████
//	└─ ⟳ everyone     Progressing    9/22  6 in flight    ████████░░░░░░░░░░░░
func (s Style) Tree(r *v1alpha1.AddOnRollout, now time.Time) string {
	var b strings.Builder
	s.head(&b, r, now)
	b.WriteString("\n")
	s.table(&b, branches(r))
	if s.Width == 0 && s.Height == 0 {
		return b.String()
	}
	return s.Cut(b.String())
}

// head writes the lines above the tree.
func (s Style) head(b *strings.Builder, r *v1alpha1.AddOnRollout, now time.Time) {
	word, m := Headline(r)
	fmt.Fprintf(b, "Rollout   %s   %s", s.paint(bold, r.Namespace+"/"+r.Name), s.paint(m.colour, m.Icon+" "+word))
	if len(r.Status.Stages) > 0 {
		b.WriteString("   stage " + StagePosition(r.Status.Stages))
	}
	target := cmp.Or(r.Spec.Target, r.Status.Target)
	fmt.Fprintf(b, "\nCommit    %s", s.paint(bold, commitOf(target)))
	if moving := r.Status.Target; Current(r) && moving != nil && target != nil && moving.Digest == target.Digest {
		var notes []string
		if r.Status.TargetSince != nil {
			notes = append(notes, Age(now, r.Status.TargetSince)+" ago")
		}
		if r.Status.Reverting {
			notes = append(notes, "succeeded here before")
		}
		if len(notes) > 0 {
			b.WriteString(" (" + strings.Join(notes, ", ") + ")")
		}
	}
	fmt.Fprintf(b, "   stable %s%s\n", commitOf(r.Status.Stable), s.reported(r))
	if text := Message(r); text != "" {
		fmt.Fprintf(b, "Message   %s\n", text)
	}
	if o := r.Status.Override; o.Returns() && o.Proposed != "" {
		fmt.Fprintf(b, "Proposed  %s\n", o.Proposed)
	}
}

// reported says whether the forge shows every commit status.
func (s Style) reported(r *v1alpha1.AddOnRollout) string {
	c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.CommitStatusReportedCondition)
	switch {
	case c == nil:
		return ""
	case c.Status == metav1.ConditionTrue:
		return "   commit status reported " + s.paint(green, "✔")
	case c.Status == metav1.ConditionFalse:
		return "   commit status " + s.paint(red, "✗ not delivered")
	}
	return "   commit status " + s.paint(dim, "… being delivered")
}

// branches are the lines of the tree: the rollout, its stages, the failing clusters.
func branches(r *v1alpha1.AddOnRollout) []branch {
	status := r.Status
	word, m := PhaseOf(r)
	out := []branch{{
		mark: m, name: r.Name, status: word,
		clusters: share(status.Counts), bar: progressBar(status.Counts.Updated, status.Counts.Total),
	}}
	culprit := failingStage(status)
	for i, stage := range status.Stages {
		last := i == len(status.Stages)-1 && (culprit >= 0 || len(status.Failing) == 0)
		out = append(out, stageBranch(stage, last))
		flying := halted(r, stage)
		out = append(out, gateBranches(stage, trunk(last), len(flying) == 0 && (i != culprit || len(status.Failing) == 0))...)
		if i == culprit {
			out = append(out, failingBranches(status, trunk(last), len(flying) == 0)...)
		}
		out = append(out, flyingBranches(flying, trunk(last))...)
	}
	if culprit < 0 {
		out = append(out, failingBranches(status, "", true)...)
	}
	return out
}

// gateBranches are the gates of a stage that were asked for, below the trunk. ends: no line follows below the trunk.
func gateBranches(stage v1alpha1.StageStatus, trunk string, ends bool) []branch {
	asked := slices.DeleteFunc(slices.Clone(stage.Gates), func(g v1alpha1.GateStatus) bool { return g.Since == nil })
	out := make([]branch, 0, len(asked))
	for i, g := range asked {
		out = append(out, branch{
			twig: trunk + fork(ends && i == len(asked)-1), mark: GateMark(g.State), name: string(g.Type) + " " + g.Name,
			status: string(g.State), remark: FirstLine(g.Reason),
		})
	}
	return out
}

// failingStage is the index of the stage of the failing clusters. It is -1 if several stages have failing clusters,
// because the status does not assign clusters to stages.
func failingStage(status v1alpha1.AddOnRolloutStatus) int {
	found := -1
	for i, stage := range status.Stages {
		if stage.Counts.Failed == 0 {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

func stageBranch(stage v1alpha1.StageStatus, last bool) branch {
	b := branch{
		twig: fork(last), mark: StageMark(stage.Phase), name: stage.Name, status: stage.Phase,
		clusters: share(stage.Counts), bar: progressBar(stage.Counts.Updated, stage.Counts.Total),
	}
	if remark := StageRemark(stage); remark != "" {
		b.bar += "  " + remark
	}
	return b
}

// StageRemark returns the part of a stage's message that is not in its phase and counts. The failed clusters have
// separate lines below the stage. A finished stage has a remark if some of its clusters do not have the content.
func StageRemark(stage v1alpha1.StageStatus) string {
	if finished(stage.Phase) && stage.Counts.Updated == stage.Counts.Total || stage.Phase == rollout.StageFailed {
		return ""
	}
	text := strings.TrimPrefix(FirstLine(stage.Message), fmt.Sprintf("%d/%d", stage.Counts.Updated, stage.Counts.Total))
	text = strings.TrimPrefix(text, ", ")
	if text == Counted(stage.Counts) {
		return ""
	}
	return strings.TrimPrefix(text, Counted(stage.Counts)+", ")
}

// halted are the records in flight of a halted stage. Besides the failed clusters, the user needs the clusters that
// run the content.
func halted(r *v1alpha1.AddOnRollout, stage v1alpha1.StageStatus) []rollout.Record {
	if stage.Phase != rollout.StageFailed || stage.Counts.InFlight == 0 || r.Status.Target == nil {
		return nil
	}
	records, err := rollout.Records(r.Status.Ledger)
	if err != nil {
		return nil // the phase and its message show it
	}
	return slices.DeleteFunc(records, func(rec rollout.Record) bool {
		return !rec.InFlight() || rec.Stage != stage.Name || rec.Revision != r.Status.Target.Digest
	})
}

// flyingShown is how many clusters in flight are drawn.
const flyingShown = 10

// flyingBranches are clusters in flight, below the given trunk.
func flyingBranches(flying []rollout.Record, trunk string) []branch {
	var out []branch
	more := len(flying) - flyingShown
	for i, a := range flying[:min(len(flying), flyingShown)] {
		b := branch{
			twig: trunk + fork(i == len(flying)-1), mark: Mark{"⟳", blue}, name: a.Cluster, status: string(a.State),
			remark: "in flight since " + timestamp(metav1.NewTime(a.Admitted)) + " UTC",
		}
		if a.State == rollout.Soaking {
			b.mark = Mark{"◌", blue}
		}
		out = append(out, b)
	}
	if more > 0 {
		out = append(out, branch{twig: trunk + fork(true), mark: Mark{"⟳", blue}, name: fmt.Sprintf("and %d more", more)})
	}
	return out
}

// failingBranches are the lines of the failing clusters below the trunk. The last line has the number of failing
// clusters that the status does not name. ends: no line follows below the trunk.
func failingBranches(status v1alpha1.AddOnRolloutStatus, trunk string, ends bool) []branch {
	var out []branch
	more := int(status.Counts.Failed) - len(status.Failing)
	for i, f := range status.Failing {
		last := ends && i == len(status.Failing)-1 && more <= 0
		out = append(out, branch{
			twig: trunk + fork(last), mark: Mark{"✗", red}, name: f.Cluster, status: "Failed", remark: FirstLine(f.Reason),
		})
	}
	if more > 0 && len(status.Failing) > 0 {
		out = append(out, branch{twig: trunk + fork(ends), mark: Mark{"✗", red}, name: fmt.Sprintf("and %d more", more)})
	}
	return out
}

func fork(last bool) string {
	if last {
		return "└─ "
	}
	return "├─ "
}

func trunk(last bool) string {
	if last {
		return "   "
	}
	return "│  "
}

func (s Style) table(b *strings.Builder, rows []branch) {
	head := branch{name: "NAME", status: "STATUS", clusters: "CLUSTERS", bar: "PROGRESS"}
	first, second, third := visible(head.name), visible(head.status), visible(head.clusters)
	for _, row := range rows {
		first, second = max(first, visible(row.label())), max(second, visible(row.status))
		third = max(third, visible(row.clusters))
	}
	fmt.Fprintf(b, "%s   %s   %s   %s\n", pad(head.name, first), pad(head.status, second), pad(head.clusters, third), head.bar)
	for _, row := range rows {
		rest := row.remark
		if rest == "" && row.bar != "" {
			rest = pad(row.clusters, third) + "   " + row.bar
		}
		line := fmt.Sprintf("%s   %s   %s", s.painted(row, first), s.paint(row.mark.colour, pad(row.status, second)), rest)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// painted is the first column with the colour on the icon.
func (s Style) painted(row branch, width int) string {
	name := pad(row.label(), width)
	return row.twig + s.paint(row.mark.colour, row.mark.Icon) + strings.TrimPrefix(name, row.twig+row.mark.Icon)
}
