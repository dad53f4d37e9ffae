package rollouttest

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// NaiveStep is a step as read off the policy, by someone in no hurry.
type NaiveStep struct {
	Name    string
	Members []string
	// Before are the positions of the steps that must be complete first; Budget those
	// whose failures count against MaxFailures.
	Before, Budget        []int
	Limit, MaxFailures    int
	Soak, Deadline        time.Duration
	Held, Unknown, Always bool // Always: strategy All, which nothing stops
}

// naive holds what the oracle looks things up in.
type naive struct {
	in       rollout.Input
	clusters map[string]rollout.Cluster
	steps    []NaiveStep
}

// newNaive reads stages, Progressive, ProgressivePerGroup and All, for the add-on or per
// install placement, off an input. RollingUpdateWithPlacement is not read.
func newNaive(in rollout.Input) *naive {
	n := &naive{in: in, clusters: map[string]rollout.Cluster{}}
	for _, c := range in.Clusters {
		n.clusters[c.Name] = c
	}
	switch spec := in.Spec; {
	case len(spec.Stages) > 0:
		n.readStages()
	case spec.Strategy != nil && spec.Strategy.Type == v1alpha1.StrategyRollingUpdateWithPlacement:
	case spec.Strategy != nil:
		st := clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.RolloutType(spec.Strategy.Type), All: spec.Strategy.All,
			Progressive: spec.Strategy.Progressive, ProgressivePerGroup: spec.Strategy.ProgressivePerGroup,
		}
		n.readStrategy(st, "all", "", n.installPlacements(), n.members(), n.anyDistrusted(n.installPlacements()))
	case spec.Install != nil && spec.Install.Type == "Placements":
		n.readPerPlacement()
	default:
		n.readStrategy(clusterv1alpha1.RolloutStrategy{}, "all", "", nil, n.members(), false)
	}
	return n
}

// placement finds an observed placement.
func (n *naive) placement(ref v1alpha1.PlacementReference) rollout.Placement {
	for _, pl := range n.in.Placements {
		if pl.Namespace == ref.Namespace && pl.Name == ref.Name {
			return pl
		}
	}
	return rollout.Placement{Namespace: ref.Namespace, Name: ref.Name}
}

func (n *naive) installPlacements() []rollout.Placement {
	var found []rollout.Placement
	if n.in.Spec.Install == nil || n.in.Spec.Install.Type != "Placements" {
		return nil
	}
	for _, ip := range n.in.Spec.Install.Placements {
		found = append(found, n.placement(ip.PlacementReference))
	}
	return found
}

func (n *naive) anyDistrusted(pls []rollout.Placement) bool {
	for _, pl := range pls {
		if pl.Existence != rollout.Exists || pl.Settlement != rollout.Settled {
			return true
		}
	}
	return false
}

func selects(pl rollout.Placement, name string) bool {
	for _, g := range pl.Groups {
		if slices.Contains(g.Clusters, name) {
			return true
		}
	}
	return false
}

// members are the clusters of the install set, by name.
func (n *naive) members() []string {
	var names []string
	for _, c := range n.in.Clusters {
		wanted := n.wanted(c.Name)
		has := c.Installed == rollout.Ours || c.Installed == rollout.HandMade
		if !c.Gone && (has || wanted && !c.InstallDisabled && c.Installed != rollout.Deleting) {
			names = append(names, c.Name)
		}
	}
	sort.Strings(names)
	return names
}

// wanted tells whether something installs the add-on on a cluster, in motion or not.
func (n *naive) wanted(name string) bool {
	if s := n.in.Spec.ClusterLabelSelector; s != nil {
		for key, value := range s.MatchLabels {
			if n.clusters[name].Labels[key] != value {
				return false
			}
		}
		return true
	}
	for _, pl := range n.installPlacements() {
		if selects(pl, name) {
			return true
		}
	}
	return false
}

// leaving tells whether what selected a cluster of ours selects it no more.
func (n *naive) leaving(name string) bool {
	c, now := n.clusters[name], rollout.ByHand
	switch {
	case n.in.Spec.ClusterLabelSelector != nil:
		now = rollout.ByLabels
	case n.in.Spec.Install != nil && n.in.Spec.Install.Type == "Placements":
		now = rollout.ByPlacements
	}
	if now == rollout.ByHand || c.SelectedBy != now || c.Installed != rollout.Ours || n.wanted(name) {
		return false
	}
	return !n.anyDistrusted(n.installPlacements()) || n.approvedInMotion(name)
}

// approvedInMotion tells whether an approval lets a cluster go although placements are in
// motion: all of them are there, and it is not used, or about this cluster.
func (n *naive) approvedInMotion(name string) bool {
	for _, pl := range n.installPlacements() {
		if pl.Existence != rollout.Exists || pl.Settlement == rollout.Undecided {
			return false
		}
	}
	r := n.in.Ledger.Removal
	if !approves(n.in) || r == nil || r.Lifted == nil || r.Lifted.Commit != n.in.ApprovedRemoval {
		return approves(n.in)
	}
	for _, d := range r.Departed {
		if slices.Contains(d.Clusters, name) {
			return !d.Since.After(r.Lifted.At.Time)
		}
	}
	return false
}

// share is a number, or a percentage rounded up, of total, and never more than total.
func share(v intstr.IntOrString, total int) int {
	text := v.String()
	if p, ok := strings.CutSuffix(text, "%"); ok {
		percent, _ := strconv.Atoi(p)
		count := 0
		for count*100 < percent*total {
			count++
		}
		return count
	}
	count, _ := strconv.Atoi(text)
	return min(count, total)
}

func duration(text string) time.Duration {
	if text == "" || text == "None" {
		return 0
	}
	d, _ := time.ParseDuration(text)
	return d
}

func (n *naive) taken(name string) bool {
	for _, s := range n.steps {
		if slices.Contains(s.Members, name) {
			return true
		}
	}
	return false
}

// add appends a step that comes after those of its track.
func (n *naive) add(track *[]int, s NaiveStep) {
	s.Before = slices.Clone(*track)
	if s.Budget == nil {
		s.Budget = []int{len(n.steps)}
	}
	*track = append(*track, len(n.steps))
	n.steps = append(n.steps, s)
}

func (n *naive) readStages() {
	var track []int
	for _, st := range n.in.Spec.Stages {
		pl := n.placement(st.Placement)
		s := NaiveStep{Name: st.Name, Soak: st.MinSuccessTime.Duration, Deadline: duration(st.ProgressDeadline)}
		for _, name := range n.members() {
			if selects(pl, name) && !n.taken(name) {
				s.Members = append(s.Members, name)
			}
		}
		s.Limit = len(s.Members)
		if pl.ClustersPerDecisionGroup.String() != "0" {
			s.Limit = share(pl.ClustersPerDecisionGroup, len(s.Members))
		}
		if st.MaxConcurrency != nil {
			s.Limit = share(*st.MaxConcurrency, len(s.Members))
		}
		if st.MaxFailures != nil {
			s.MaxFailures = share(*st.MaxFailures, len(s.Members))
		}
		s.Unknown = n.anyDistrusted([]rollout.Placement{pl})
		s.Held = s.Unknown || st.MaxConcurrency != nil && (st.MaxConcurrency.String() == "0" || st.MaxConcurrency.String() == "0%")
		n.add(&track, s)
	}
}

func (n *naive) readPerPlacement() {
	pls := n.installPlacements()
	claimed := map[string]bool{}
	for i, pl := range pls {
		var mine []string
		for _, name := range n.members() {
			last := -1
			for j, other := range pls {
				if selects(other, name) {
					last = j
				}
			}
			if last == i {
				mine, claimed[name] = append(mine, name), true
			}
		}
		n.readStrategy(n.in.Spec.Install.Placements[i].RolloutStrategy, pl.Name, pl.Name+"/",
			[]rollout.Placement{pl}, mine, n.anyDistrusted(pls[i:]))
	}
	var others []string
	for _, name := range n.members() {
		if !claimed[name] {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		n.readStrategy(clusterv1alpha1.RolloutStrategy{}, "unplaced", "", nil, others, n.anyDistrusted(pls))
	}
}

// naiveGroup is a decision group with the place it is worked in.
type naiveGroup struct {
	rollout.Group
	order int
	name  string
}

func (n *naive) groups(pls []rollout.Placement) []naiveGroup {
	var found []naiveGroup
	for order, pl := range pls {
		for _, g := range pl.Groups {
			same := 0
			for _, other := range pl.Groups {
				if other.Name == g.Name {
					same++
				}
			}
			name := "group-" + g.Name
			if g.Name == "" {
				name = fmt.Sprintf("group-%d", g.Index)
			} else if same > 1 {
				name = fmt.Sprintf("group-%s-%d", g.Name, g.Index)
			}
			if len(pls) > 1 {
				name = pl.Name + "/" + name
			}
			found = append(found, naiveGroup{Group: g, order: order, name: name})
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		if found[i].Index != found[j].Index {
			return found[i].Index < found[j].Index
		}
		return found[i].order < found[j].order
	})
	return found
}

// readStrategy reads one of OCM's strategies off the members of a placement.
func (n *naive) readStrategy(st clusterv1alpha1.RolloutStrategy, alone, prefix string, pls []rollout.Placement, members []string, held bool) {
	var track []int
	config, mandatory := configOf(st)
	untaken := func(of []string) NaiveStep {
		s := NaiveStep{Soak: config.MinSuccessTime.Duration, Deadline: duration(config.ProgressDeadline), Held: held, Unknown: held}
		for _, name := range members {
			if !n.taken(name) && (of == nil || slices.Contains(of, name)) {
				s.Members = append(s.Members, name)
			}
		}
		s.Limit = len(s.Members)
		return s
	}
	if st.Type != clusterv1alpha1.Progressive && st.Type != clusterv1alpha1.ProgressivePerGroup {
		s := untaken(nil)
		s.Name, s.Always, s.MaxFailures = alone, true, len(members)
		n.add(&track, s)
		return
	}
	first, groups := len(n.steps), n.groups(pls)
	for _, g := range groups {
		if isAmong(g, mandatory) {
			s := untaken(append([]string{}, g.Clusters...))
			s.Name = prefix + g.name
			n.add(&track, s)
		}
	}
	for _, g := range groups {
		if st.Type == clusterv1alpha1.ProgressivePerGroup && !isAmong(g, mandatory) {
			s := untaken(append([]string{}, g.Clusters...))
			s.Name, s.MaxFailures = prefix+g.name, share(config.MaxFailures, len(s.Members))
			n.add(&track, s)
		}
	}
	rest := untaken(nil)
	rest.Name = prefix + "rest"
	if len(track) == 0 {
		rest.Name = alone
	}
	if st.Type == clusterv1alpha1.Progressive {
		n.addRest(&track, first, rest, st.Progressive, pls, len(members))
		return
	}
	if len(rest.Members) > 0 {
		rest.MaxFailures = share(config.MaxFailures, len(rest.Members))
		n.add(&track, rest)
	}
}

// configOf is the part that the strategies share, and their mandatory groups.
func configOf(st clusterv1alpha1.RolloutStrategy) (clusterv1alpha1.RolloutConfig, []clusterv1alpha1.MandatoryDecisionGroup) {
	switch {
	case st.Progressive != nil:
		return st.Progressive.RolloutConfig, st.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups
	case st.ProgressivePerGroup != nil:
		return st.ProgressivePerGroup.RolloutConfig, st.ProgressivePerGroup.MandatoryDecisionGroups.MandatoryDecisionGroups
	case st.All != nil:
		return st.All.RolloutConfig, nil
	}
	return clusterv1alpha1.RolloutConfig{}, nil
}

func isAmong(g naiveGroup, mandatory []clusterv1alpha1.MandatoryDecisionGroup) bool {
	for _, m := range mandatory {
		if m.GroupName == g.Name && g.Name != "" || m.GroupName == "" && int(m.GroupIndex) == g.Index {
			return true
		}
	}
	return false
}

// addRest is what Progressive does after its mandatory groups.
func (n *naive) addRest(track *[]int, first int, s NaiveStep, p *clusterv1alpha1.RolloutProgressive, pls []rollout.Placement, all int) {
	numbers, percents := []int{}, []int{}
	for _, pl := range pls {
		text := pl.ClustersPerDecisionGroup.String()
		if v, ok := strings.CutSuffix(text, "%"); ok {
			i, _ := strconv.Atoi(v)
			percents = append(percents, i)
		} else if i, _ := strconv.Atoi(text); i > 0 {
			numbers = append(numbers, i)
		}
	}
	switch {
	case p.MaxConcurrency.String() != "0":
		s.Limit = share(p.MaxConcurrency, len(s.Members))
	case len(numbers) > 0:
		s.Limit = share(intstr.FromInt(slices.Min(numbers)), len(s.Members))
	case len(percents) > 0:
		s.Limit = share(intstr.FromString(fmt.Sprintf("%d%%", slices.Min(percents))), len(s.Members))
	}
	s.MaxFailures = share(p.MaxFailures, all)
	for i := first; i <= len(n.steps); i++ {
		s.Budget = append(s.Budget, i)
	}
	n.add(track, s)
}
