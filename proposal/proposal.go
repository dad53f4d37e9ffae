package proposal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/forecast"
)

// Side is one of the two commits that are compared.
type Side struct {
	// Name is how the texts call it, such as main.
	Name string
	// Commit contains the add-ons of the side. Problems are the reasons why the operator refuses it.
	Commit   load.Commit
	Problems problem.List
	// Masked are the configurations of which the commit has no values: they are only on the hub.
	Masked map[render.ConfigReference]bool
}

// Privacy says how much of the fleet a proposal may show.
type Privacy string

const (
	// ShowFleet: names and values of clusters may be shown.
	ShowFleet Privacy = "Show"
	// HideNames: clusters have numbers and no names, and their values are masked, as are texts that may have names.
	HideNames Privacy = "HideNames"
	// HideValues: clusters have names, and their values are masked.
	HideValues Privacy = "HideValues"
	// HideFleet: nothing of the hub is known, and clusters are assumed. The author of a fork could learn about the
	// fleet through the files of the request: even a number of clusters would be an answer.
	HideFleet Privacy = "HideFleet"
)

// Standing is the state of an add-on on the hub.
type Standing struct {
	// Took is how long the last successful rollout took for Clusters clusters; 0: not known.
	Took     time.Duration
	Clusters int
	// Moved are the records of the clusters, which say how long each of them took.
	Moved []rollout.Record
	// Proven are the names of the AddOnRevisions of which a rollout has succeeded.
	Proven map[string]bool
	// Commits are those that introduced the content of an AddOnRevision, by its name.
	Commits map[string][]string
	// Quarantined is why an AddOnRevision is not rolled out, by its name.
	Quarantined map[string]string
	// Back is the digest of the content to which a rollback takes the clusters; "": the clusters have the content
	// that the base declares.
	Back string
	// Suspended: the rollout is suspended on the hub.
	Suspended bool
}

// Fleet has the known clusters. Without clusters, 100 are assumed.
type Fleet struct {
	forecast.Known
	Privacy Privacy
	// Standings by add-on, from the hub; none offline.
	Standings map[string]Standing
	// Installed are, for each add-on that is installed by hand, the clusters that have it. nil: not known. Such an
	// add-on then counts every cluster.
	Installed map[string]map[string]bool
	// Unbindable are cluster sets that the source may not bind to a namespace, so that its bindings
	// do not count.
	Unbindable map[string]bool
	// Bounds are those of the tenant on managed clusters; nil: none.
	Bounds *render.Bounds
}

// Proposal describes the effects of a change.
type Proposal struct {
	// Base and Head are the names of the two sides.
	Base string `json:"base"`
	Head string `json:"head"`
	// Refused are the reasons why nothing of the change would be applied; none: the change would be applied.
	Refused problem.List `json:"refused,omitempty"`
	// Warnings are about accepted content that is probably a mistake. A warning that the base has too is left out.
	Warnings problem.List `json:"warnings,omitempty"`
	// Notes name the parts of the fleet that were not read.
	Notes []string `json:"notes,omitempty"`
	// AddOns that change, sorted by name.
	AddOns []AddOn `json:"addOns"`
	// Unchanged counts the other add-ons.
	Unchanged int `json:"unchanged"`
	// Objects is a diff of the other objects that change on the hub, such as Placements.
	Objects []string `json:"objects,omitempty"`
	// Assumed: no cluster is known, or those of an add-on are not.
	Assumed bool `json:"assumed,omitempty"`
	// BaseRefused: the base itself is refused, and there is nothing to compare with.
	BaseRefused bool `json:"baseRefused,omitempty"`
}

// Change says in which way an add-on changes.
type Change string

const (
	// Added: the base does not declare the add-on.
	Added Change = "Added"
	// Removed: the head does not declare it.
	Removed Change = "Removed"
	// Content: clusters get other content.
	Content Change = "Content"
	// Policy: only stages, pace, gates or placements change.
	Policy Change = "Policy"
	// Unknown: the content depends on objects that are only on the hub, a chart was not read, or the base is refused.
	Unknown Change = "Unknown"
)

// AddOn describes the effects of the change on one add-on.
type AddOn struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	// From and To are the digests of the content.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Clusters counts the clusters; nil: there is no estimate. Assumed: the clusters are assumed.
	Clusters *Clusters `json:"clusters,omitempty"`
	Assumed  bool      `json:"assumed,omitempty"`
	// Diffs are the changes on the clusters, one for each group of clusters that changes in the
	// same way. MoreDiffs counts the groups that were not compared.
	Diffs     []Diff `json:"diffs,omitempty"`
	MoreDiffs int    `json:"moreDiffs,omitempty"`
	// Policy is a diff of the policy.
	Policy []string `json:"policy,omitempty"`
	// Stages in the order of the rollout, and the clusters in no stage.
	Stages   []Stage `json:"stages,omitempty"`
	Unstaged int     `json:"unstaged,omitempty"`
	// Duration of the rollout if every cluster takes PerCluster. "": the rollout does not end by itself, or there is
	// no estimate. Waits for gates are not part of it. PerCluster is the median of Measured clusters in earlier
	// rollouts; if Measured is 0, it is assumed.
	Duration   string `json:"duration,omitempty"`
	PerCluster string `json:"perCluster,omitempty"`
	Measured   int    `json:"measured,omitempty"`
	// Barred is why no cluster would be admitted to the new content: it is blocked or in quarantine. "": it is neither.
	Barred string `json:"barred,omitempty"`
	// Holds are why the rollout would not begin.
	Holds []string `json:"holds,omitempty"`
	// Comments approve the content, on the pull request once it is merged.
	Comments []string `json:"comments,omitempty"`
	// Notes say what was assumed, what was not evaluated, and what else is known.
	Notes []string `json:"notes,omitempty"`
}

// Clusters counts the clusters of an add-on after the change.
type Clusters struct {
	Total int `json:"total"`
	// Changed clusters run the add-on and get other content. Joining clusters get the add-on,
	// Leaving clusters lose it.
	Changed int `json:"changed"`
	Joining int `json:"joining,omitempty"`
	Leaving int `json:"leaving,omitempty"`
}

// Stage is one stage of the rollout.
type Stage struct {
	Name     string `json:"name"`
	Clusters int    `json:"clusters"`
	AtOnce   int    `json:"atOnce"`
	// Names of the clusters; none unless they may be shown.
	Names []string `json:"names,omitempty"`
	// Gates before the stage, and the measurements during it.
	Gates []string `json:"gates,omitempty"`
	Soak  string   `json:"soak,omitempty"`
	// Begins and Ends count from the first admission.
	Begins string `json:"begins,omitempty"`
	Ends   string `json:"ends,omitempty"`
}

// Diff is the change on clusters that change in the same way.
type Diff struct {
	// Clusters counts them; 0: the clusters are assumed.
	Clusters int `json:"clusters,omitempty"`
	// Cluster is the one that was compared; "": names are not shown.
	Cluster string `json:"cluster,omitempty"`
	// Placements are those that select the cluster, as namespace/name. If there are none, it has the default
	// configurations.
	Placements []string `json:"placements,omitempty"`
	// Lines of a unified diff; none: NotCompared says why.
	Lines       []string `json:"lines,omitempty"`
	NotCompared string   `json:"notCompared,omitempty"`
}

// Of returns the effects of the change from base to head. charts renders packages. If the error is
// render.ErrInterrupted, the caller tries again later.
func Of(base, head Side, fleet Fleet, charts chart.Engines) (Proposal, error) {
	if fleet.Privacy == HideFleet {
		fleet = Fleet{Privacy: HideFleet}
	}
	p := Proposal{
		Base: base.Name, Head: head.Name, Refused: head.Problems, Warnings: newer(base.Commit.Warnings, head.Commit.Warnings),
		AddOns: []AddOn{}, Assumed: len(fleet.Clusters) == 0, BaseRefused: len(base.Problems) > 0,
	}
	if len(head.Problems) > 0 {
		return p, nil
	}
	p.Notes = fleet.notes()
	for _, side := range []load.Commit{base.Commit, head.Commit} {
		if side.Interrupted != nil {
			return p, fmt.Errorf("cannot compare %s with %s: %w", head.Name, base.Name, side.Interrupted)
		}
	}
	before, err := newView(base.Commit, fleet)
	if err != nil {
		return p, err
	}
	after, err := newView(head.Commit, fleet)
	if err != nil {
		return p, err
	}
	for _, name := range namesOf(base.Commit, head.Commit) {
		c := comparison{
			name: name, base: find(base.Commit, name), head: find(head.Commit, name),
			before: before, after: after, fleet: fleet, charts: chart.EngineFor(charts, name), blind: p.BaseRefused,
		}
		c.inexact = inexact(c.base, base) || inexact(c.head, head)
		addOn, err := c.addOn()
		if errors.Is(err, render.ErrInterrupted) {
			return p, fmt.Errorf("cannot compare %s with %s: %w", head.Name, base.Name, err)
		}
		if err != nil {
			return p, err
		}
		if addOn == nil {
			p.Unchanged++
			continue
		}
		p.AddOns = append(p.AddOns, *addOn)
		p.Assumed = p.Assumed || addOn.Assumed
	}
	if !p.BaseRefused {
		p.Objects, err = linesOf(others(base.Commit), others(head.Commit))
	}
	return p, err
}

// notes name the parts of the fleet that are not read.
func (f Fleet) notes() []string {
	var notes []string
	if f.Privacy == HideFleet {
		notes = append(notes, "clusters are not counted for forks: nothing of the hub is read, and stages and times are those of an assumed fleet")
	}
	for _, set := range slices.Sorted(maps.Keys(f.Unbindable)) {
		notes = append(notes, "the account of the source may not bind cluster set "+set+": bindings of the commits to it do not count")
	}
	return notes
}

// inexact reports whether the digest of an add-on differs from the operator's digest, because the add-on depends on
// an object of the hub that was not read.
func inexact(addOn *load.AddOn, side Side) bool {
	return addOn != nil && (len(side.Commit.Undefined) > 0 || slices.ContainsFunc(addOn.Content.Configs, func(c render.Config) bool {
		return side.Masked[c.ConfigReference]
	}))
}

// newer are the warnings that the base does not have. Lines move with every change.
func newer(base, head problem.List) problem.List {
	var out problem.List
	for _, w := range head {
		if !slices.ContainsFunc(base, func(b problem.Problem) bool {
			b.Line = w.Line
			return b == w
		}) {
			out = append(out, w)
		}
	}
	return out
}

// namesOf are the add-ons of both commits, sorted.
func namesOf(commits ...load.Commit) []string {
	var names []string
	for _, c := range commits {
		for i := range c.AddOns {
			names = append(names, c.AddOns[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// find returns the add-on of a commit; nil: the commit does not declare it.
func find(c load.Commit, name string) *load.AddOn {
	for i := range c.AddOns {
		if c.AddOns[i].Name == name {
			return &c.AddOns[i]
		}
	}
	return nil
}

// others are the objects of a commit that are neither content nor policy of an add-on.
func others(c load.Commit) []*unstructured.Unstructured {
	content := map[string]bool{}
	for i := range c.AddOns {
		addOn := &c.AddOns[i]
		for _, t := range addOn.Content.Templates {
			content["AddOnTemplate//"+t.Name] = true
		}
		for _, config := range addOn.Content.Configs {
			content[config.Kind+"/"+config.Namespace+"/"+config.Name] = true
		}
		content["ClusterManagementAddOn//"+addOn.Name] = true
	}
	var rest []*unstructured.Unstructured
	for _, o := range c.Objects {
		if !content[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] {
			rest = append(rest, o)
		}
	}
	return rest
}

// Accepted reports whether the change would be applied, and no new content would be blocked or in quarantine.
func (p Proposal) Accepted() bool { return len(p.Refused) == 0 && len(p.barred()) == 0 }

// barred are the add-ons whose new content would not be rolled out, with the reasons.
func (p Proposal) barred() []string {
	var barred []string
	for i := range p.AddOns {
		if a := &p.AddOns[i]; a.Barred != "" {
			barred = append(barred, a.Name+": "+a.Barred)
		}
	}
	return barred
}

// barred returns why the content with a digest would not be rolled out, and the way out; "": it would be.
func barred(addOn string, policy v1alpha1.AddOnRolloutSpec, fleet Fleet, digest string) string {
	standing, revision := fleet.Standings[addOn], render.RevisionName(addOn, digest)
	for _, b := range policy.Blocked {
		names := func(commit string) bool { return b.Blocks(v1alpha1.Target{Digest: digest, Commit: commit}) }
		if names("") || slices.ContainsFunc(standing.Commits[revision], names) {
			return "spec.blocked has the content: " + cmp.Or(b.Reason, "no reason given") + "; remove the entry, or declare other content"
		}
	}
	if why := standing.Quarantined[revision]; why != "" {
		is := "the content is in quarantine: " + why
		if fleet.Privacy == HideNames { // the reason lists clusters
			is = "content " + shortDigest(digest) + " is in quarantine"
		}
		return is + "; declare other content, or run addonflow unblock " + addOn + " " + shortDigest(digest)
	}
	return ""
}

// stopped returns why the rollout of a digest would not begin.
func stopped(addOn string, policy v1alpha1.AddOnRolloutSpec, fleet Fleet, digest string) []string {
	var holds []string
	if why := barred(addOn, policy, fleet, digest); why != "" {
		holds = append(holds, why)
	}
	if policy.Suspend {
		holds = append(holds, "spec.suspend is true")
	}
	if fleet.Standings[addOn].Suspended {
		holds = append(holds, "the rollout is suspended on the hub")
	}
	return holds
}
