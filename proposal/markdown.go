package proposal

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

// markdownLimit is how many bytes a proposal has as Markdown at most. GitHub stores 65,536
// characters in a comment.
const markdownLimit = 60_000

// Bounds of parts that are not cut as a whole.
const (
	shownProblems = 20
	problemBytes  = 500
	shownCut      = 50
	// tail is the room for the line that names what was cut.
	tail = 4000
)

// Markdown returns the proposal for a comment on a forge, in at most markdownLimit bytes. Objects that do not fit are
// left out of the diffs and counted, and add-ons that do not fit are named in the last line. Texts of the author of
// the change are shown only as code, where no forge reads mentions, links or HTML.
func (p Proposal) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### AddonFlow plan: %s\n\n%s\n", code(p.Head+" into "+p.Base), p.headline())
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\n%s\n", code(note))
	}
	b.WriteString(list("Nothing of the change would be applied:", p.Refused))
	b.WriteString(list("Warnings:", p.Warnings))
	shown, cut := fitted(p.sections(), markdownLimit-tail-b.Len())
	b.WriteString(shown)
	if len(cut) > 0 {
		names := strings.Join(cut[:min(len(cut), shownCut)], ", ")
		fmt.Fprintf(&b, "\n**Not shown, because the comment would be too long (%d):** %s. `addonflow plan -o json` shows everything.\n", len(cut), names)
	}
	return b.String()
}

// headline is the whole in one line.
func (p Proposal) headline() string {
	switch {
	case len(p.Refused) > 0:
		return "**Would be refused.**"
	case !p.Accepted():
		return "**Would not be rolled out.**"
	case len(p.AddOns) == 0 && len(p.Objects) == 0:
		return fmt.Sprintf("**Nothing to roll out.** %s unchanged.", brief.Count(p.Unchanged, "add-on"))
	}
	return "**" + p.Summary() + ".**"
}

// Summary is the proposal in a few words, as a commit status has them.
func (p Proposal) Summary() string {
	if barred := p.barred(); len(barred) > 0 {
		text := "would not be rolled out: " + brief.OneLine(barred[0])
		if more := len(barred) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		return text
	}
	if len(p.Refused) > 0 {
		text := "would be refused: " + brief.OneLine(p.Refused[0].String())
		if more := len(p.Refused) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		return text
	}
	if len(p.AddOns) == 0 {
		return "nothing to roll out"
	}
	changed, removed, unknown, uncompared := 0, 0, 0, 0
	var names []string
	for i := range p.AddOns {
		a := &p.AddOns[i]
		names = append(names, a.Name)
		if a.Change == Removed {
			removed++
		}
		if a.Change == Unknown {
			uncompared++
		}
		switch {
		case a.Clusters == nil, a.Change == Unknown:
			unknown++
		case a.Change == Added:
			changed += a.Clusters.Total
		default:
			changed += a.Clusters.Changed + a.Clusters.Joining + a.Clusters.Leaving
		}
	}
	text := brief.Count(len(names), "add-on")
	if uncompared > 0 { // before the names, which a commit status may cut
		text += fmt.Sprintf(", %d not compared", uncompared)
	}
	text += ": " + brief.Names(names)
	if !p.Assumed && unknown == 0 {
		text += "; " + brief.Count(changed, "cluster change")
	}
	if removed > 0 {
		text += fmt.Sprintf("; %d removed", removed)
	}
	return text
}

// list is problems in a block of code.
func list(title string, problems problem.List) string {
	if len(problems) == 0 {
		return ""
	}
	var lines []string
	for i, p := range problems {
		if i == shownProblems {
			lines = append(lines, fmt.Sprintf("... and %d more", len(problems)-i))
			break
		}
		lines = append(lines, brief.Cut(brief.OneLine(p.String()), problemBytes))
	}
	return "\n" + title + "\n" + fenced("text", lines)
}

// markdown is one add-on without its diffs.
func (a *AddOn) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n#### %s: %s\n\n", code(a.Name), a.headline())
	if len(a.Stages) > 0 {
		b.WriteString("| stage | clusters | at once | waits | soak | begins | ends |\n|---|---|---|---|---|---|---|\n")
		for _, st := range a.Stages {
			fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | %s | %s |\n", code(st.Name), st.Clusters, st.AtOnce,
				codes(st.Gates), orNone(st.Soak), orNone(st.Begins), orNone(st.Ends))
		}
		b.WriteString("\n")
		for _, st := range a.Stages {
			if len(st.Names) > 0 {
				fmt.Fprintf(&b, "- clusters of %s: %s\n", code(st.Name), code(brief.Names(st.Names)))
			}
		}
	}
	if a.Unstaged > 0 {
		fmt.Fprintf(&b, "- %s in no stage\n", brief.Count(a.Unstaged, "cluster"))
	}
	if a.Duration != "" {
		measured := ""
		if a.Measured > 0 {
			measured = ", the median of " + brief.Count(a.Measured, "cluster") + " before"
		}
		fmt.Fprintf(&b, "- about %s if every cluster takes %s%s, without the waits\n", a.Duration, a.PerCluster, measured)
	}
	for _, hold := range a.Holds {
		fmt.Fprintf(&b, "- **held:** %s\n", code(hold))
	}
	for _, line := range a.Comments {
		fmt.Fprintf(&b, "- once this is merged, a comment here approves: %s\n", code(line))
	}
	for _, note := range a.Notes {
		fmt.Fprintf(&b, "- %s\n", code(note))
	}
	return b.String()
}

// headline is the change of an add-on in a few words.
func (a *AddOn) headline() string {
	words := map[Change]string{
		Added: "new", Removed: "**removed**", Content: "new content", Policy: "only the policy changes", Unknown: "not compared",
	}
	parts := []string{words[a.Change]}
	if n := a.Clusters; n != nil {
		switch a.Change {
		case Content:
			parts = append(parts, fmt.Sprintf("%d of %s change", n.Changed, brief.Count(n.Total, "cluster")))
		case Added, Policy, Unknown:
			parts = append(parts, brief.Count(n.Total, "cluster"))
		case Removed:
		}
		if n.Joining > 0 && a.Change != Added {
			parts = append(parts, brief.Count(n.Joining, "cluster")+" more")
		}
		if n.Leaving > 0 {
			parts = append(parts, "**"+brief.Count(n.Leaving, "cluster")+" less**")
		}
	}
	return strings.Join(parts, ", ")
}

// title says on which clusters something changes.
func (d *Diff) title() string {
	var parts []string
	if d.Clusters > 0 {
		parts = append(parts, brief.Count(d.Clusters, "cluster"))
	} else {
		parts = append(parts, "Clusters")
	}
	if d.Cluster != "" {
		parts = append(parts, "such as "+d.Cluster)
	}
	if len(d.Placements) > 0 {
		parts = append(parts, "selected by "+strings.Join(d.Placements, " and "))
	} else {
		parts = append(parts, "with the default configuration")
	}
	return strings.Join(parts, ", ")
}

// folded is a diff that a click opens; "" without lines.
func folded(title string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "\n<details><summary>" + strings.NewReplacer("<", "", ">", "", "&", "").Replace(brief.OneLine(title)) + "</summary>\n\n" +
		fenced("diff", lines) + "\n</details>\n"
}

// fenced is a block of code. Its fence is longer than every run of backquotes in it.
func fenced(language string, lines []string) string {
	fence := "```"
	for _, line := range lines {
		for strings.Contains(line, fence) {
			fence += "`"
		}
	}
	var b strings.Builder
	b.WriteString(fence + language + "\n")
	for _, line := range lines {
		b.WriteString(brief.Visible(line) + "\n")
	}
	b.WriteString(fence + "\n")
	return b.String()
}

// code is a text as code in one line, also in a cell of a table.
func code(text string) string {
	text = strings.NewReplacer("`", "'", "|", "/").Replace(brief.OneLine(text))
	return "`" + cmp.Or(text, " ") + "`"
}

func codes(texts []string) string {
	out := make([]string, 0, len(texts))
	for _, text := range texts {
		out = append(out, code(text))
	}
	return cmp.Or(strings.Join(out, ", "), "–")
}

func orNone(text string) string { return cmp.Or(text, "–") }
