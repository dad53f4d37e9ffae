package proposal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/forecast"
)

// mostGroups is how many groups of clusters of one add-on are rendered and compared. A template
// that names a label can give each cluster content of its own.
const mostGroups = 20

// comparison compares one add-on on both sides. base or head is nil if that side does not declare it.
type comparison struct {
	name          string
	base, head    *load.AddOn
	before, after *view
	fleet         Fleet
	charts        chart.Engine
	// blind: the base is refused, so the head cannot be compared with it.
	blind bool
	// inexact: the digests are not those of the operator.
	inexact bool
}

// addOn returns what changes; nil: nothing.
func (c comparison) addOn() (*AddOn, error) {
	out := &AddOn{Name: c.name}
	if c.base != nil && !c.inexact {
		out.From = c.base.Digest
	}
	if c.head == nil {
		out.Change = Removed
		c.leave(out)
		return out, nil
	}
	if !c.inexact {
		out.To = c.head.Digest
	}
	policy := c.head.Policy()
	same := c.base != nil && sameContent(c.base, c.head)
	switch missing := slices.Concat(c.head.Missing, missingOf(c.base)); {
	case c.blind:
		out.Change = Unknown
		out.Notes = append(out.Notes, "the base is refused, so that there is nothing to compare with")
	case !same && chartOf(c.base)+chartOf(c.head) != "":
		out.Change = Unknown
		out.Notes = append(out.Notes, fmt.Sprintf("chart %s was not read from its registry: what changes on the clusters is not known", cmp.Or(chartOf(c.head), chartOf(c.base))))
	case !same && len(missing) > 0:
		out.Change = Unknown
		out.Notes = append(out.Notes, fmt.Sprintf("%s is only on the hub: what changes on the clusters is not known", missing[0]))
	case c.base == nil:
		out.Change = Added
	case !same:
		out.Change = Content
	case !equality.Semantic.DeepEqual(c.base.Policy(), policy) || c.moved(policy):
		out.Change = Policy
	default:
		return nil, nil // nothing changes, and nothing is wrong
	}
	if out.Change == Content || out.Change == Policy {
		lines, err := linesOf(policyObject(c.base), policyObject(c.head))
		if err != nil {
			return nil, err
		}
		out.Policy = lines
	}
	return out, c.clusters(out, policy)
}

// sameContent reports whether two commits have equal content of an add-on, also if some of it is not known.
func sameContent(a, b *load.AddOn) bool {
	return a.Digest == b.Digest && a.Declared == b.Declared && a.Digest+a.Declared != ""
}

// chartOf is the chart of an add-on that is in a registry and was not read; "": none.
func chartOf(addOn *load.AddOn) string {
	if addOn == nil {
		return ""
	}
	return addOn.Unfetched
}

func missingOf(addOn *load.AddOn) []load.Reference {
	if addOn == nil {
		return nil
	}
	return addOn.Missing
}

// moved reports whether the placements of the head select other clusters, under an equal policy.
func (c comparison) moved(policy v1alpha1.AddOnRolloutSpec) bool {
	before, err := c.before.fleet(c.name, policy)
	if err != nil {
		return false // the placements are not known; their diff is shown
	}
	after, err := c.after.fleet(c.name, policy)
	return err == nil && !equality.Semantic.DeepEqual(before.Placements, after.Placements)
}

func policyObject(addOn *load.AddOn) []*unstructured.Unstructured {
	policy := addOn.Policy()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.AddOnRollout{Spec: policy})
	if err != nil {
		return nil
	}
	spec, _, _ := unstructured.NestedFieldNoCopy(content, "spec")
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(v1alpha1.GroupVersion.String())
	o.SetKind(v1alpha1.AddOnRolloutKind)
	o.SetName(addOn.Name)
	return []*unstructured.Unstructured{o}
}

// leave describes the effects of the add-on's removal.
func (c comparison) leave(out *AddOn) {
	if fleet, err := c.before.fleet(c.name, c.base.Policy()); err == nil {
		out.Clusters = &Clusters{Leaving: len(fleet.Clusters)}
	}
	out.Notes = append(out.Notes, "the removal waits until it is approved, or follows at the pace of removals if the source prunes")
}

// clusters describes the effects of the change on the clusters, and the times.
func (c comparison) clusters(out *AddOn, policy v1alpha1.AddOnRolloutSpec) error {
	fleet, err := c.after.fleet(c.name, policy)
	if err != nil {
		out.Notes = append(out.Notes, "the clusters are not known: "+err.Error())
		return c.assumed().clusters(out, policy)
	}
	out.Assumed = c.after.assumed
	out.Holds = append(out.Holds, stopped(c.name, policy, c.fleet, c.head.Digest)...)
	if out.Change != Policy { // otherwise the fleet has the content, and the change may be what blocks it
		out.Barred = barred(c.name, policy, c.fleet, c.head.Digest)
	}
	if !c.after.assumed || out.Change != Policy {
		out.Notes = append(out.Notes, c.said(fleet.Notes)...)
	}
	out.Clusters = &Clusters{Total: len(fleet.Clusters)}
	was := selection{}
	if c.base != nil {
		basePolicy := c.base.Policy()
		base, err := c.before.fleet(c.name, basePolicy)
		if err == nil {
			was = selectionOf(basePolicy, base)
			fleet.Took = c.took(basePolicy, base)
			out.Clusters.Joining, out.Clusters.Leaving = difference(base.Clusters, fleet.Clusters)
		}
	}
	switch {
	case out.Change == Content && c.head.Digest == c.fleet.Standings[c.name].Back:
		for i := range fleet.Clusters {
			fleet.Clusters[i].UpToDate = true
		}
		out.Notes = append(out.Notes, "a rollback moves the clusters back to this content already")
	case out.Change == Added || out.Change == Content:
		if err := c.diffs(out, &fleet, was, selectionOf(policy, fleet)); err != nil {
			return err
		}
		if len(out.Diffs) == 0 && !c.after.assumed {
			if err := c.assumed().unseen(out, policy); err != nil {
				return err
			}
		}
	}
	c.forecast(out, policy, fleet)
	c.history(out)
	return nil
}

// assumed is the comparison on an assumed fleet, which has clusters for every policy.
func (c comparison) assumed() comparison {
	c.before, c.after = c.before.assume(), c.after.assume()
	return c
}

// unseen adds the diffs of content that changes no known cluster: a reviewer decides about it all the same.
func (c comparison) unseen(out *AddOn, policy v1alpha1.AddOnRolloutSpec) error {
	assumed := AddOn{Name: c.name, Change: out.Change}
	if err := c.clusters(&assumed, policy); err != nil {
		return err
	}
	out.Diffs, out.MoreDiffs = assumed.Diffs, assumed.MoreDiffs
	if len(out.Diffs) > 0 {
		out.Notes = append(out.Notes, "no known cluster changes: the diff is that of assumed clusters")
	}
	return nil
}

// said returns the notes about a fleet. For an assumed fleet they are marked as assumptions.
func (c comparison) said(notes []string) []string {
	if !c.after.assumed {
		return notes
	}
	return []string{"assumed: " + strings.Join(notes, "; ")}
}

// difference counts the clusters that only one of two sorted lists has.
func difference(before, after []rollout.Cluster) (joining, leaving int) {
	names := map[string]int{}
	for i := range before {
		names[before[i].Name]--
	}
	for i := range after {
		names[after[i].Name]++
	}
	for _, n := range names {
		switch {
		case n > 0:
			joining++
		case n < 0:
			leaving++
		}
	}
	return joining, leaving
}

// group is clusters for which both sides have the same inputs.
type group struct {
	first              string
	clusters           []int // positions in the fleet
	placements, before []v1alpha1.PlacementReference
}

// diffs compares the content of the clusters on both sides. It marks in the fleet the clusters for which nothing
// changes.
func (c comparison) diffs(out *AddOn, fleet *forecast.Fleet, was, is selection) error {
	var base *render.Renderer
	if c.base != nil {
		var err error
		if base, err = render.NewRenderer(c.base.Content, c.charts); err != nil {
			return err
		}
	}
	head, err := render.NewRendererWithin(c.fleet.Bounds, c.head.Content, c.charts)
	if err != nil {
		return err
	}
	groups, err := c.groups(fleet.Clusters, base, head, was, is)
	if err != nil {
		return err
	}
	for i, g := range groups {
		if i == mostGroups {
			out.MoreDiffs = len(groups) - i
			for _, rest := range groups[i:] {
				out.Clusters.Changed += len(rest.clusters)
			}
			break
		}
		diff, err := c.diff(g, base, head)
		if err != nil {
			return err
		}
		if len(diff.Lines) == 0 && diff.NotCompared == "" {
			for _, at := range g.clusters {
				fleet.Clusters[at].UpToDate = true
			}
			continue
		}
		out.Clusters.Changed += len(g.clusters)
		if at := slices.IndexFunc(out.Diffs, func(d Diff) bool {
			return slices.Equal(d.Lines, diff.Lines) && d.NotCompared == diff.NotCompared && slices.Equal(d.Placements, diff.Placements)
		}); at >= 0 {
			out.Diffs[at].Clusters += diff.Clusters
			continue
		}
		out.Diffs = append(out.Diffs, diff)
	}
	return nil
}

// groups are the clusters by their inputs on both sides, in the order of the first cluster of each.
func (c comparison) groups(clusters []rollout.Cluster, base, head *render.Renderer, was, is selection) ([]group, error) {
	var groups []group
	at := map[string]int{}
	for i := range clusters {
		name := clusters[i].Name
		inputs, err := head.Inputs(c.after.inputs(name, is[name]))
		if err != nil && errors.Is(err, render.ErrInterrupted) {
			return nil, err
		}
		k := inputs.Key + " " + key(is[name])
		if base != nil {
			// An error is of the content, and the rendering repeats it.
			inputs, _ := base.Inputs(c.before.inputs(name, was[name]))
			k += " " + inputs.Key
		}
		n, known := at[k]
		if !known {
			n, at[k] = len(groups), len(groups)
			groups = append(groups, group{first: name, placements: is[name], before: was[name]})
		}
		groups[n].clusters = append(groups[n].clusters, i)
	}
	return groups, nil
}

// diff compares the content of one group on both sides.
func (c comparison) diff(g group, base, head *render.Renderer) (Diff, error) {
	d := Diff{Placements: placementNames(g.placements)}
	if !c.after.assumed {
		d.Clusters = len(g.clusters)
	}
	if !c.after.assumed && c.fleet.Privacy != HideNames {
		d.Cluster = g.first
	}
	var before []*unstructured.Unstructured
	after, err := objectsOf(head, c.after.inputs(g.first, g.placements))
	if err == nil && base != nil {
		before, err = objectsOf(base, c.before.inputs(g.first, g.before))
	}
	switch {
	case errors.Is(err, render.ErrInterrupted):
		return d, err
	case err != nil:
		d.NotCompared = "cannot be rendered: " + err.Error()
		return d, nil //nolint:nilerr // the plan says it
	}
	d.Lines, err = linesOf(before, after)
	return d, err
}

func objectsOf(r *render.Renderer, c render.Cluster) ([]*unstructured.Unstructured, error) {
	rendered, err := r.Render(c)
	if err != nil {
		return nil, err
	}
	return rendered.Objects()
}

// forecast fills the stages and the time.
func (c comparison) forecast(out *AddOn, policy v1alpha1.AddOnRolloutSpec, fleet forecast.Fleet) {
	if c.fleet.Standings[c.name].Proven[render.RevisionName(c.name, c.head.Digest)] {
		out.Notes = append(out.Notes, "a rollout of this content succeeded before: stages and concurrency hold, gates and soaks do not")
	} else if out.Change == Added || out.Change == Content {
		out.Comments = commentsOf(c.name, policy, c.head.Digest)
	}
	if c.inexact && len(out.Comments) > 0 {
		out.Comments = nil
		out.Notes = append(out.Notes, "once this is merged, the commit status has the comment that approves: its digits depend on values of the hub")
	}
	f, err := forecast.Of(c.name, policy, fleet, forecast.Windows{}) // a plan does not change with the time
	if err != nil {
		out.Notes = append(out.Notes, "no estimate: "+err.Error())
		return
	}
	for _, st := range f.Stages {
		out.Stages = append(out.Stages, c.stage(st, policy, fleet))
	}
	out.Unstaged = f.Unstaged
	for _, found := range f.Findings {
		out.Notes = append(out.Notes, "no estimate: "+strings.TrimSuffix(found.Message+"; "+found.Hint, "; "))
	}
	if len(f.Findings) == 0 && f.Duration > 0 {
		out.Duration, out.PerCluster = shown(f.Duration), shown(f.PerCluster)
		out.Measured = f.Measured
	}
}

// commentsOf are the comments that approve content at the gates that take them.
func commentsOf(addOn string, policy v1alpha1.AddOnRolloutSpec, digest string) []string {
	var lines []string
	for _, s := range policy.Stages {
		if s.Gates == nil {
			continue
		}
		for _, g := range s.Gates.Before {
			if g.Approval != nil && g.Approval.Forge != nil {
				lines = append(lines, gates.ApproveComment(addOn, s.Name, g.Name, digest))
			}
		}
	}
	return lines
}

func (c comparison) stage(st forecast.Stage, policy v1alpha1.AddOnRolloutSpec, fleet forecast.Fleet) Stage {
	s := Stage{Name: st.Name, Clusters: st.Clusters, AtOnce: st.AtOnce, Gates: slices.Clone(st.Waits)}
	if st.Soak > 0 {
		s.Soak = shown(st.Soak)
	}
	if st.Ends > 0 {
		s.Begins, s.Ends = shown(st.Begins), shown(st.Ends)
	}
	at := slices.IndexFunc(policy.Stages, func(d v1alpha1.Stage) bool { return d.Name == st.Name })
	if at < 0 {
		return s
	}
	if declared := policy.Stages[at].Gates; declared != nil {
		for _, g := range declared.During {
			s.Gates = append(s.Gates, fmt.Sprintf("during %s %s", g.Type, g.Name))
		}
	}
	if !c.after.assumed && c.fleet.Privacy != HideNames {
		s.Names = stageNames(policy, fleet, at)
	}
	return s
}

// stageNames are the clusters of a declared stage: the first stage that selects a cluster has it.
func stageNames(policy v1alpha1.AddOnRolloutSpec, fleet forecast.Fleet, at int) []string {
	taken := map[string]bool{}
	for _, earlier := range policy.Stages[:at] {
		for _, name := range members(fleet, earlier.Placement) {
			taken[name] = true
		}
	}
	installed := map[string]bool{}
	for i := range fleet.Clusters {
		installed[fleet.Clusters[i].Name] = true
	}
	var names []string
	for _, name := range members(fleet, policy.Stages[at].Placement) {
		if installed[name] && !taken[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// took is how long the clusters took to get what the base declares.
func (c comparison) took(policy v1alpha1.AddOnRolloutSpec, fleet forecast.Fleet) forecast.Took {
	moved := c.fleet.Standings[c.name].Moved
	if len(moved) == 0 {
		return forecast.Took{}
	}
	under, err := forecast.Of(c.name, policy, fleet, forecast.Windows{})
	if err != nil {
		return forecast.Took{} // its soaks are not known
	}
	return forecast.Measured(moved, under)
}

// history notes how long the last rollout took.
func (c comparison) history(out *AddOn) {
	if s := c.fleet.Standings[c.name]; s.Took > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("the last rollout that succeeded took %s for %s", shown(s.Took), brief.Count(s.Clusters, "cluster")))
	}
}

// shown is a duration without the zeros at its end: 10m, 1h.
func shown(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	return brief.Duration(d.Round(time.Second))
}
