package rollout

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// installPlacements is the Install.Type with which placements select the clusters.
const installPlacements = "Placements"

// unit is one cluster on its way through a plan.
type unit struct {
	c *Cluster

	// member: the cluster is in the install set. leaving: its add-on is to be removed.
	member, leaving bool
	// held: its ManagedCluster holds it now.
	held bool
	// labelled: the label selector selects it.
	labelled bool
	// placement is the position of the last install placement that selects the cluster; -1: none. decided: at least
	// one placement that selects the cluster has current decisions.
	placement int
	decided   bool
	// named: a group of a stage or a strategy contains it.
	named bool

	// step is the step that selects the cluster; if no step does, the step of its record. bound: no step selects the
	// cluster, and step is the step of its record. The cluster keeps its slot there and gets no other content.
	step  *step
	bound bool
	// record of the cluster; nil: none. before is the record that this plan replaced by an admission or adoption.
	// admission is the number of that admission or adoption in the plan, from 1; 0: there is none.
	record, before *Record
	admission      int

	state  State
	reason string
	// departure is why the add-on is removed from the cluster, or why it stays for now;
	// "": the cluster does not leave.
	departure string
	// fault is the reason of the state while reason has the departure.
	fault string
	// until is the end of its soak; zero: it does not soak.
	until time.Time
}

// fleet is the clusters of an input, in order of name.
type fleet struct {
	units []unit
}

func newFleet(clusters []Cluster) fleet {
	sorted := make([]*Cluster, len(clusters))
	for i := range clusters {
		sorted[i] = &clusters[i]
	}
	byName := func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(sorted, byName) {
		slices.SortStableFunc(sorted, byName)
	}
	f := fleet{units: make([]unit, 0, len(sorted))}
	for i, c := range sorted {
		if i > 0 && sorted[i-1].Name == c.Name {
			continue
		}
		f.units = append(f.units, unit{c: c, placement: -1})
	}
	return f
}

// cursor finds clusters by name. Most lists of names are sorted, so the cursor tries the cluster after the last hit
// before it searches. With 100,000 clusters, a map by name would cost more than the rest of the plan.
type cursor struct {
	units []unit
	next  int
}

func (f *fleet) cursor() *cursor { return &cursor{units: f.units} }

// find returns the cluster of the name; nil: there is none.
func (c *cursor) find(name string) *unit {
	i := c.next
	if i >= len(c.units) || c.units[i].c.Name != name {
		found := false
		i, found = sort.Find(len(c.units), func(i int) int { return strings.Compare(name, c.units[i].c.Name) })
		if !found {
			return nil
		}
	}
	c.next = i + 1
	return &c.units[i]
}

// passBy treats a cluster whose works cannot be written as not available during a revert. The cluster keeps its
// content until its works can be written. It does not fail, because proven content is not the cause.
func (p *planner) passBy() {
	for i := range p.units {
		u := &p.units[i]
		if why := p.barred(u.c, p.target); why != "" && p.revert && p.strays(u) {
			c := *u.c
			c.Blocked, c.Refused, c.Away, c.Reachable = "", "", cmp.Or(c.Away, why), false
			u.c = &c
		}
	}
}

// assignRoles says which clusters are in the install set.
func (p *planner) assignRoles() {
	p.markSelected()
	for i := range p.units {
		u := &p.units[i]
		if u.held = u.c.held(p.now); u.held {
			p.look(u.c.HeldUntil)
		}
		switch {
		case u.c.Gone:
			u.state, u.reason = Gone, "its ManagedCluster is terminating or absent"
		case u.c.Installed == Deleting:
			u.state, u.reason = Removing, orElse(u.c.Departure.Reason, "its ManagedClusterAddOn is being deleted")
		case u.c.Installed == HandMade, u.c.Installed == Ours:
			u.member = true
		case u.c.InstallDisabled && u.selected():
			u.state, u.reason = Ignored, "its ManagedCluster disables automatic installation"
		default:
			u.member = (u.labelled || u.decided || u.record != nil && u.placement >= 0) && p.spec.Removal == nil
			u.state, u.reason = Ignored, "outside the install set: "+p.unselectedText()
		}
	}
}

// selected reports whether a placement or the labels select the cluster.
func (u *unit) selected() bool { return u.placement >= 0 || u.labelled }

// selective reports whether placements or labels select clusters; otherwise the add-on is
// installed by hand.
func (p *planner) selective() bool { return p.byPlacements() || p.selector != nil }

// selection is what selects clusters now.
func (p *planner) selection() Selection {
	switch {
	case p.selector != nil:
		return ByLabels
	case p.byPlacements():
		return ByPlacements
	}
	return ByHand
}

// selectedBy returns the selection of the cluster now; if it is not selected, its last one.
func (p *planner) selectedBy(u *unit) Selection {
	if s := p.selection(); p.spec.Removal == nil && (s == ByHand || u.selected()) {
		return s
	}
	return u.c.SelectedBy
}

// kept reports whether the cluster keeps the add-on although it is not selected, because the type of the install
// strategy changed after its selection. It leaves only after the present type has selected it and then no longer
// selects it.
func (p *planner) kept(u *unit) bool {
	return p.spec.Removal == nil && !u.selected() && u.c.SelectedBy != p.selection()
}

func (p *planner) unselectedText() string {
	if p.selector != nil {
		return "its labels do not select it"
	}
	return cmp.Or(p.untrusted(p.install), "no install placement selects it")
}

// markSelected notes what selects each cluster: its labels, and the last install placement.
// If two placements select a cluster, the later one counts, as in OCM.
func (p *planner) markSelected() {
	if p.selector != nil {
		for i := range p.units {
			u := &p.units[i]
			u.labelled = p.selector.Matches(labels.Set(u.c.Labels))
		}
	}
	for i := range p.install {
		for _, g := range p.install[i].Groups {
			at := p.cursor()
			for _, name := range g.Clusters {
				if u := at.find(name); u != nil {
					u.placement = i
					u.decided = u.decided || p.install[i].Settlement != Undecided
				}
			}
		}
	}
}

// byPlacements reports whether placements select the clusters.
func (p *planner) byPlacements() bool {
	return p.spec.Install != nil && p.spec.Install.Type == installPlacements
}

// untrusted says why the first unreliable placement cannot be relied upon; "": all can.
func (p *planner) untrusted(placements []Placement) string {
	for _, pl := range placements {
		if why := pl.untrusted(); why != "" {
			return why
		}
	}
	return ""
}

func (pl Placement) untrusted() string {
	switch {
	case pl.Settlement == Missing:
		return "Placement " + pl.Namespace + "/" + pl.Name + " does not exist"
	case pl.Settlement == Undecided:
		return "OCM has not decided about Placement " + pl.Namespace + "/" + pl.Name
	case pl.Settlement != Settled:
		return "the decisions of Placement " + pl.Namespace + "/" + pl.Name + " are not settled"
	}
	return ""
}

// placementOf returns the observed placement of a reference. A placement without an
// observation is missing.
func (p *planner) placementOf(ref v1alpha1.PlacementReference) Placement {
	for _, pl := range p.in.Placements {
		if pl.Namespace == ref.Namespace && pl.Name == ref.Name {
			return pl
		}
	}
	return Placement{Namespace: ref.Namespace, Name: ref.Name}
}
