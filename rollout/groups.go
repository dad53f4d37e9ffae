package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// scope is what one of OCM's strategies is applied to.
type scope struct {
	// alone names the track's only step where it has one; prefix stands before the
	// names of several.
	alone, prefix string
	members       []*unit
	// in tells who of a group's clusters is in question; nil: every member.
	in     func(*unit) bool
	groups []group
	// perGroup is the default of maxConcurrency.
	perGroup quantity
	// distrusted says why the groups cannot be relied upon; "" if they can.
	distrusted string
}

// group is a decision group and the name of the step it becomes.
type group struct {
	Group
	step string
}

// groups lists the decision groups in the order they are worked: by index, then in
// order of the placements. Gaps in the indexes lose nobody, other than in OCM. Steps of
// several placements are told apart by the name of theirs.
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

// groupPrefix begins the name of a group's step, after that of its placement.
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

// defaultConcurrency is clustersPerDecisionGroup: of several placements that declare
// one the smallest number, else the smallest percentage; none: everybody.
func defaultConcurrency(placements []Placement) quantity {
	least := quantity{n: 100, percent: true}
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

// ocmTrack applies one of OCM's strategies. The error is an unknown mandatory group;
// the track is complete all the same, with every step on hold for it.
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
		err = nil // the group may well be there once its placement can be read
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

// progressive: mandatory groups, each at once and without a failure; then the others
// with maxConcurrency, a percentage of those others, while the failures of the whole
// track are within maxFailures, a percentage of the whole track.
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
	limit := sc.perGroup
	if declared(st.MaxConcurrency) {
		limit = quantityOf(st.MaxConcurrency)
	}
	rest.limit = limit.of(len(rest.members))
	rest.maxFailures = quantityOf(st.MaxFailures).of(len(sc.members))
	rest.soak, rest.deadline = st.MinSuccessTime.Duration, deadlineOf(st.ProgressDeadline)
	rest.declared = rest.deadline > 0
	t.steps = append(t.steps, rest.own())
	return t, err
}

// progressivePerGroup: mandatory groups first, then group by group, each at once;
// clusters in no group are the last one.
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
		name: name, members: members, limit: len(members),
		soak: c.MinSuccessTime.Duration, deadline: deadlineOf(c.ProgressDeadline),
		maxFailures: quantityOf(c.MaxFailures).of(len(members)),
	}
	s.declared = s.deadline > 0
	return s.own()
}

// mandatoryGroup is the step of a group that tolerates no failure, and that proves nothing
// without a cluster of the install set.
func (p *planner) mandatoryGroup(sc scope, g group, c clusterv1alpha1.RolloutConfig) *step {
	s := p.groupAtOnce(sc, g, c)
	s.mandatory, s.maxFailures = true, 0
	at := p.cursor()
	if !slices.ContainsFunc(g.Clusters, func(name string) bool { u := at.find(name); return u != nil && u.member }) {
		s.emptyHold = "held: no cluster of decision group " + s.name + ", which is mandatory, is in the install set"
	}
	return s
}

// left returns the units that have no step yet.
func (p *planner) left(units []*unit) []*unit {
	var found []*unit
	for _, u := range units {
		if u.step == nil {
			found = append(found, u)
		}
	}
	return found
}

// split parts the mandatory groups from the others, both in the order they are
// worked. A mandatory group is named, or given by its index when it has no name.
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
		known = append(known, fmt.Sprintf("%d (%q)", g.Index, g.Name))
	}
	have := "the placement has none"
	if len(known) > 0 {
		have = "known are " + strings.Join(known, ", ")
	}
	if w.GroupName != "" {
		return fmt.Errorf("%w: no decision group is named %q; %s", ErrUnknownDecisionGroup, w.GroupName, have)
	}
	return fmt.Errorf("%w: no decision group has index %d; %s", ErrUnknownDecisionGroup, w.GroupIndex, have)
}

// percentOrNumber is the default share of RollingUpdateWithPlacement.
func percentOrNumber(v *intstr.IntOrString, otherwise quantity) quantity {
	if v == nil {
		return otherwise
	}
	return quantityOf(*v)
}
