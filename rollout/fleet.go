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

// installPlacements is the Install.Type under which placements say who has the add-on.
const installPlacements = "Placements"

// unit is one cluster on its way through a plan.
type unit struct {
	c *Cluster

	// member of the install set; leaving it, where nothing selects it any more.
	member, leaving bool
	// labelled: the label selector selects it.
	labelled bool
	// placement is the position of the last install placement that selects it; -1: none.
	// decided: OCM has decided about one of those that select it as it is now.
	placement int
	decided   bool
	// named by a stage or strategy.
	named bool

	// step that selects the cluster; if none does, the step of its record. It is bound to
	// that one: it holds its slot there, and is given nothing more.
	step  *step
	bound bool
	// record of the cluster; nil: none. before is the record that a new admission of this
	// plan replaced, admission its position, from 1; 0: it has none.
	record, before *Record
	admission      int

	state  State
	reason string
	// departure is why the add-on leaves the cluster, or stays for now; "": it does not leave.
	departure string
	// fault is why it failed, if the reason says why it leaves.
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

// cursor finds clusters by name. Lists of names mostly come in order, so that it looks
// at the cluster after the last one found before it searches: with 100,000 clusters,
// a map of them costs more than everything else.
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

// assignRoles says which clusters are in the install set.
func (p *planner) assignRoles() {
	p.markSelected()
	for i := range p.units {
		u := &p.units[i]
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
			u.member = (u.labelled || u.decided) && p.spec.Removal == nil
			u.state, u.reason = Ignored, "outside the install set: "+p.unselectedText()
		}
	}
}

// selected tells whether something installs the add-on on the cluster.
func (u *unit) selected() bool { return u.placement >= 0 || u.labelled }

// selective tells whether something selects who has the add-on; otherwise it is
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

// selectedBy is what selects the cluster now; where nothing does, what did last.
func (p *planner) selectedBy(u *unit) Selection {
	if s := p.selection(); p.spec.Removal == nil && (s == ByHand || u.selected()) {
		return s
	}
	return u.c.SelectedBy
}

// kept tells whether nothing selects the cluster because the type of the install strategy
// is another one than when it was selected. Switching the type keeps what is there: it
// leaves once the present type has selected it and does so no more.
func (p *planner) kept(u *unit) bool {
	return p.spec.Removal == nil && !u.selected() && u.c.SelectedBy != p.selection()
}

func (p *planner) unselectedText() string {
	if p.selector != nil {
		return "its labels do not select it"
	}
	return cmp.Or(p.untrusted(p.install), "no install placement selects it")
}

// markSelected notes the last install placement of each cluster: of two that select
// a cluster the later has it, as in OCM. By labels it is selected or not.
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

// byPlacements tells whether placements say who has the add-on.
func (p *planner) byPlacements() bool {
	return p.spec.Install != nil && p.spec.Install.Type == installPlacements
}

// untrusted says which of the placements cannot be relied upon, and why; "" for none.
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
	case pl.Existence != Exists:
		return "Placement " + pl.Namespace + "/" + pl.Name + " does not exist"
	case pl.Settlement == Undecided:
		return "OCM has not decided about Placement " + pl.Namespace + "/" + pl.Name
	case pl.Settlement != Settled:
		return "the decisions of Placement " + pl.Namespace + "/" + pl.Name + " are not settled"
	}
	return ""
}

// placementOf returns the observed placement of a reference; one that was not
// observed is missing.
func (p *planner) placementOf(ref v1alpha1.PlacementReference) Placement {
	for _, pl := range p.in.Placements {
		if pl.Namespace == ref.Namespace && pl.Name == ref.Name {
			return pl
		}
	}
	return Placement{Namespace: ref.Namespace, Name: ref.Name, Existence: Missing}
}
