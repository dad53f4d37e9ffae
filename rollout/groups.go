package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// scope is the set of clusters and groups to which one of OCM's strategies is applied.
type scope struct {
	// alone is the name of the step if the track has only one. prefix starts the names of several steps.
	alone, prefix string
	members       []*unit
	// in reports whether a cluster of a group is in the scope; nil: every member is.
	in     func(*unit) bool
	groups []group
	// perGroup is the default of maxConcurrency.
	perGroup quantity
	// distrusted says why the groups cannot be relied upon; "": they can.
	distrusted string
}

// group is a decision group and the name of the step it becomes.
type group struct {
	Group
	step string
}

// groups lists the decision groups in the order they are worked: by index, then in order of the placements. A gap in
// the indexes loses no cluster, unlike in OCM. If there are several placements, the name of a step starts with the
// name of its placement.
func (p *planner) groups(placements []Placement) []group {
	var found []group
	for _, pl := range placements {
		prefix := ""
		if len(placements) > 1 {
			prefix = pl.Name + "/"
		}
		named := map[string]int{}
		for _, g := range pl.Groups {
			named[g.Name]++
		}
		for _, g := range pl.Groups {
			found = append(found, group{Group: g, step: prefix + groupStep(g, named[g.Name])})
		}
	}
	slices.SortStableFunc(found, func(a, b group) int { return cmp.Compare(a.Index, b.Index) })
	return found
}

// groupPrefix starts the name of a group's step, after the name of its placement.
const groupPrefix = "group-"

// groupStep names the step of a group: group-canary, group-0, and group-canary-1
// where OCM has split a large group over several indexes of one name.
func groupStep(g Group, sameName int) string {
	switch {
	case g.Name == "":
		return groupPrefix + strconv.Itoa(g.Index)
	case sameName > 1:
		return groupPrefix + g.Name + "-" + strconv.Itoa(g.Index)
	default:
		return groupPrefix + g.Name
	}
}

// defaultConcurrency is clustersPerDecisionGroup. Of several placements, the smallest number is taken; if none is a
// number, the smallest percentage; if none is declared, 100%.
func defaultConcurrency(placements []Placement) quantity {
	least := allOfThem
	for _, pl := range placements {
		if !declared(pl.ClustersPerDecisionGroup) {
			continue
		}
		q := quantityOf(pl.ClustersPerDecisionGroup)
		if q.n > 0 && (least.percent && !q.percent || least.percent == q.percent && q.n < least.n) {
			least = q
		}
	}
	return least
}

// ocmTrack applies one of OCM's strategies. The error is an unknown mandatory group. The track is valid with the
// error, too: every step is held.
func (p *planner) ocmTrack(sc scope, st clusterv1alpha1.RolloutStrategy) (*track, error) {
	t, err := &track{}, error(nil)
	switch st.Type {
	case clusterv1alpha1.Progressive:
		t, err = p.progressive(sc, orZero(st.Progressive))
	case clusterv1alpha1.ProgressivePerGroup:
		t, err = p.progressivePerGroup(sc, orZero(st.ProgressivePerGroup))
	default:
		t.steps = []*step{p.allAtOnce(sc.alone, sc.members, orZero(st.All))}
	}
	why := sc.distrusted
	if why != "" {
		err = nil // the group may exist in a placement that is not decided yet
	} else if err != nil {
		why = err.Error()
	}
	for _, s := range t.steps {
		s.distrust(why)
	}
	t.prefix = sc.prefix
	return t, err
}

func orZero[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}

// progressive works the mandatory groups first. It moves all clusters of a mandatory group at once, and
// tolerates no failure among them. The other clusters follow with maxConcurrency; a percentage is of these
// other clusters. Every failure of the track counts against maxFailures; a percentage is of all clusters of
// the track.
func (p *planner) progressive(sc scope, st clusterv1alpha1.RolloutProgressive) (*track, error) {
	t := &track{shared: true}
	mandatory, _, err := split(sc.groups, st.MandatoryDecisionGroups.MandatoryDecisionGroups)
	for _, g := range mandatory {
		t.steps = append(t.steps, p.mandatoryGroup(sc, g, st.RolloutConfig))
	}
	rest := &step{name: sc.alone, members: p.left(sc.members)}
	if len(mandatory) > 0 {
		rest.name = sc.prefix + theRest
	}
	rest.concurrency, rest.tolerance = sc.perGroup, quantityOf(st.MaxFailures)
	if declared(st.MaxConcurrency) {
		rest.concurrency = quantityOf(st.MaxConcurrency)
	}
	rest.soak, rest.deadline = st.MinSuccessTime.Duration, deadlineOf(st.ProgressDeadline)
	rest.declared = rest.deadline > 0
	t.steps = append(t.steps, rest.own())
	return t, err
}

// progressivePerGroup works the mandatory groups first, then the others, one group after another, all clusters of a
// group at once. Clusters in no group are the last step.
func (p *planner) progressivePerGroup(sc scope, st clusterv1alpha1.RolloutProgressivePerGroup) (*track, error) {
	t := &track{}
	mandatory, others, err := split(sc.groups, st.MandatoryDecisionGroups.MandatoryDecisionGroups)
	for _, g := range mandatory {
		t.steps = append(t.steps, p.mandatoryGroup(sc, g, st.RolloutConfig))
	}
	for _, g := range others {
		t.steps = append(t.steps, p.groupAtOnce(sc, g, st.RolloutConfig))
	}
	if rest := p.left(sc.members); len(rest) > 0 || len(t.steps) == 0 {
		name := sc.prefix + theRest
		if len(t.steps) == 0 {
			name = sc.alone
		}
		t.steps = append(t.steps, atOnce(name, rest, st.RolloutConfig))
	}
	return t, err
}

// groupAtOnce is the step of a decision group.
func (p *planner) groupAtOnce(sc scope, g group, c clusterv1alpha1.RolloutConfig) *step {
	s := atOnce(sc.prefix+g.step, p.selected(sc.in, g.Group), c)
	s.returning = p.returning(g.Group)
	return s
}

func atOnce(name string, members []*unit, c clusterv1alpha1.RolloutConfig) *step {
	s := &step{
		name: name, members: members, atOnce: true, concurrency: allOfThem, tolerance: quantityOf(c.MaxFailures),
		soak: c.MinSuccessTime.Duration, deadline: deadlineOf(c.ProgressDeadline),
	}
	s.declared = s.deadline > 0
	return s.own()
}

// mandatoryGroup is the step of a group that tolerates no failure. If no cluster of the group is in the install set,
// the step is held, because it would prove nothing.
func (p *planner) mandatoryGroup(sc scope, g group, c clusterv1alpha1.RolloutConfig) *step {
	s := p.groupAtOnce(sc, g, c)
	s.mandatory, s.tolerance = true, quantity{}
	at := p.cursor()
	if !slices.ContainsFunc(g.Clusters, func(name string) bool { u := at.find(name); return u != nil && u.member }) {
		s.emptyHold = "held: no cluster of decision group " + s.name + ", which is mandatory, is in the install set"
	}
	return s
}

// left returns the clusters that have no step yet.
func (p *planner) left(units []*unit) []*unit {
	var found []*unit
	for _, u := range units {
		if u.step == nil {
			found = append(found, u)
		}
	}
	return found
}

// split separates the mandatory groups from the others, both in the order they are
// worked. A mandatory group is declared by its name, or without a name by its index.
func split(groups []group, wanted []clusterv1alpha1.MandatoryDecisionGroup) (mandatory, others []group, err error) {
	matched := make([]bool, len(wanted))
	for _, g := range groups {
		first := false
		for i, w := range wanted {
			if w.GroupName != "" && w.GroupName == g.Name || w.GroupName == "" && int(w.GroupIndex) == g.Index {
				matched[i], first = true, true
			}
		}
		if first {
			mandatory = append(mandatory, g)
		} else {
			others = append(others, g)
		}
	}
	for i, w := range wanted {
		if !matched[i] {
			return mandatory, others, unknownGroup(w, groups)
		}
	}
	return mandatory, others, nil
}

func unknownGroup(w clusterv1alpha1.MandatoryDecisionGroup, groups []group) error {
	known := make([]string, 0, len(groups))
	for _, g := range groups {
		name := cmp.Or(g.Name, "without a name")
		known = append(known, fmt.Sprintf("%d (%s)", g.Index, name))
	}
	have := "the placement has none"
	if len(known) > 0 {
		have = "the groups are " + strings.Join(known, ", ")
	}
	if w.GroupName != "" {
		return fmt.Errorf("%w: no decision group is named %q; %s", ErrUnknownDecisionGroup, w.GroupName, have)
	}
	return fmt.Errorf("%w: no decision group has index %d; %s", ErrUnknownDecisionGroup, w.GroupIndex, have)
}
