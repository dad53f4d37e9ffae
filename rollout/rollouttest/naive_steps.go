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
	Before, Budget     []int
	Limit, MaxFailures int
	Soak, Deadline     time.Duration

	// Held moves nobody to the target, ByStrategy because the user asked for it; Unknown:
	// who the members are cannot be told. Always is strategy All, which nothing stops.
	// Dropped would be Always, had the target not failed at a pace that was dropped.
	Held, ByStrategy, Unknown, Always, Dropped bool

	// Vanished were admitted to the target here and are members no more; true: they had
	// failed by then.
	Vanished map[string]bool
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

// nameApart numbers steps that would share a name.
func (n *naive) nameApart() {
	for i := range n.steps {
		name := n.steps[i].Name
		for k := 2; slices.ContainsFunc(n.steps[:i], func(s NaiveStep) bool { return s.Name == n.steps[i].Name }); k++ {
			n.steps[i].Name = fmt.Sprintf("%s-%d", name, k)
		}
	}
}

// choose notes whom the policy names.
func (n *naive) choose(groups ...rollout.Group) {
	for _, g := range groups {
		for _, name := range g.Clusters {
			n.chosen[name] = true
		}
	}
}

func (n *naive) readStages() {
	var track []int
	for _, st := range n.in.Spec.Stages {
		pl := n.placement(st.Placement)
		n.choose(pl.Groups...)
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
		title := pl.Name
		for j, other := range pls {
			if j != i && other.Name == pl.Name {
				title = pl.Namespace + "." + pl.Name
			}
		}
		n.readStrategy(n.in.Spec.Install.Placements[i].RolloutStrategy, title, title+"/",
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

// readRolling is the seed's RollingUpdateWithPlacement: a share of who is both selected and
// installed, the rest held. A first install, and the way to the stable revision, have
// nothing to take a share of.
func (n *naive) readRolling(ru v1alpha1.RollingUpdateWithPlacement) {
	var track []int
	if n.in.Stable == "" {
		n.readStrategy(clusterv1alpha1.RolloutStrategy{}, "all", "", nil, n.members(), false)
		return
	}
	pl := n.placement(ru.PlacementReference)
	n.choose(pl.Groups...)
	var chosen []string
	for _, name := range n.members() {
		if selects(pl, name) {
			chosen = append(chosen, name)
		}
	}
	size := share(intstr.FromString("25%"), len(chosen))
	if ru.MaxConcurrentlyUpdating != nil {
		size = share(*ru.MaxConcurrentlyUpdating, len(chosen))
	}
	if n.target() == n.in.Stable {
		n.add(&track, NaiveStep{Name: "share", Members: n.members(), Limit: max(1, size)})
		return
	}
	held := n.anyDistrusted([]rollout.Placement{pl})
	n.add(&track, NaiveStep{
		Name: "share", Members: n.shared(chosen, size), Limit: max(1, size), Held: held, Unknown: held,
	})
	rest := NaiveStep{Name: "rest", Limit: max(1, size), Held: true, ByStrategy: true}
	for _, name := range n.members() {
		if !n.taken(name) {
			rest.Members = append(rest.Members, name)
		}
	}
	n.add(&track, rest)
}

// shared fills the share: who has the target or is admitted to it, however many; then who
// can be moved now; then who cannot. Whoever the target changes nothing for is not asked.
func (n *naive) shared(chosen []string, size int) []string {
	var found []string
	for _, pass := range []string{"has it", "can", "cannot"} {
		for _, name := range chosen {
			c := n.clusters[name]
			kind := "cannot"
			switch {
			case c.Running == n.target() || n.named[name].Revision == n.target():
				kind = "has it"
			case c.UpToDate:
				kind = fateUnchanged
			case c.Reachable && c.Running != "":
				kind = "can"
			}
			if kind == pass && (pass == "has it" || len(found) < size) {
				found = append(found, name)
			}
		}
	}
	return found
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
		s.Name = alone
		n.addWhole(&track, s, len(members))
		return
	}
	first, groups := len(n.steps), n.groups(pls)
	held = n.heldFor(held, mandatory, groups)
	addGroup := func(g naiveGroup, maxFailures intstr.IntOrString) {
		n.choose(g.Group)
		s := untaken(append([]string{}, g.Clusters...))
		s.Name, s.MaxFailures = prefix+g.name, share(maxFailures, len(s.Members))
		n.add(&track, s)
	}
	perGroup := st.Type == clusterv1alpha1.ProgressivePerGroup
	if perGroup {
		n.addGone(&track, untaken([]string{}), n.goneGroups(prefix, groups))
	}
	gone := len(track)
	others := slices.DeleteFunc(slices.Clone(groups), func(g naiveGroup) bool { return isAmong(g, mandatory) })
	for _, g := range slices.DeleteFunc(groups, func(g naiveGroup) bool { return !isAmong(g, mandatory) }) {
		addGroup(g, intstr.FromInt32(0))
	}
	if perGroup {
		for _, g := range others {
			addGroup(g, config.MaxFailures)
		}
	}
	rest := untaken(nil)
	rest.Name = prefix + "rest"
	if len(track) == gone {
		rest.Name = alone
	}
	if st.Type == clusterv1alpha1.Progressive {
		n.addRest(&track, first, rest, st.Progressive, pls, len(members))
		return
	}
	if len(rest.Members) > 0 || len(track) == gone {
		rest.MaxFailures = share(config.MaxFailures, len(rest.Members))
		n.add(&track, rest)
	}
}

// addGone adds an empty step for each of the groups that are gone.
func (n *naive) addGone(track *[]int, s NaiveStep, names []string) {
	for _, name := range names {
		s.Name = name
		n.add(track, s)
	}
}

// addWhole adds the step of strategy All, unless the target failed at a pace that was dropped.
func (n *naive) addWhole(track *[]int, s NaiveStep, members int) {
	s.Dropped = n.failedOtherwise(s.Name)
	if !s.Dropped {
		s.Always, s.MaxFailures = true, members
	}
	n.add(track, s)
}

// goneGroups are the groups that somebody stands in the ledger for, who was admitted to a
// target that is not the stable revision, and that are none of the groups there are.
func (n *naive) goneGroups(prefix string, groups []naiveGroup) []string {
	var names []string
	for _, a := range n.named {
		there := slices.ContainsFunc(groups, func(g naiveGroup) bool {
			return prefix+g.name == a.Stage || slices.Contains(n.members(), a.Cluster) && slices.Contains(g.Clusters, a.Cluster)
		})
		ours := a.Revision == n.target() && n.needsProof() && !a.Joining && !n.lapsed(a)
		if ours && !there && strings.HasPrefix(a.Stage, prefix) && strings.Contains(a.Stage, "group-") {
			names = append(names, a.Stage)
		}
	}
	sort.Strings(names)
	return slices.Compact(names)
}

// failedOtherwise tells whether the target failed at a pace that was not this step's All.
func (n *naive) failedOtherwise(step string) bool {
	if n.in.Previous.Target != n.target() || n.in.Previous.Phase != v1alpha1.PhaseFailed {
		return false
	}
	for _, w := range n.whole {
		if w.Stage == step {
			return false
		}
	}
	return true
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

// heldFor tells whether a pace is held, for its placements or for an unknown group; the
// latter is only known where the former can be read.
func (n *naive) heldFor(held bool, mandatory []clusterv1alpha1.MandatoryDecisionGroup, groups []naiveGroup) bool {
	if !held && anyUnknown(mandatory, groups) {
		n.unknownGroup, held = true, true
	}
	return held
}

// anyUnknown tells whether a mandatory group is none of the groups: it holds everybody,
// because skipping it would skip a canary.
func anyUnknown(mandatory []clusterv1alpha1.MandatoryDecisionGroup, groups []naiveGroup) bool {
	return slices.ContainsFunc(mandatory, func(m clusterv1alpha1.MandatoryDecisionGroup) bool {
		return !slices.ContainsFunc(groups, func(g naiveGroup) bool {
			return isAmong(g, []clusterv1alpha1.MandatoryDecisionGroup{m})
		})
	})
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
