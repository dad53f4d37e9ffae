package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Names of steps whose name does not come from a stage or placement.
const (
	wholeFleet = "all"      // the only step of a strategy without groups
	theRest    = "rest"     // clusters outside the groups that come first
	unplaced   = "unplaced" // installed clusters that no install placement selects
	heldShare  = "share"    // the share that RollingUpdateWithPlacement moves
)

// stageDeadline is the progress deadline of a stage that declares none.
const stageDeadline = time.Hour

// buildTracks turns the policy into tracks of steps and gives each member its step. Members without a step are
// unstaged. The error is an unknown decision group; the tracks are valid with it, too, and are held.
func (p *planner) buildTracks() error {
	var err error
	switch {
	case p.spec.Removal != nil:
		// Nothing is rolled out while the add-on is to be removed.
	case len(p.spec.Stages) > 0:
		p.tracks = []*track{p.stages()}
	case p.spec.Strategy != nil:
		err = p.strategy(*p.spec.Strategy)
	case p.paceless():
		p.tracks = []*track{p.canaryFirst()}
	case p.byPlacements():
		err = p.perPlacement()
	default: // Manual without a declared pace
		t := &track{steps: []*step{p.allAtOnce(wholeFleet, p.members(nil), clusterv1alpha1.RolloutAll{})}}
		p.tracks = []*track{t}
	}
	p.nameApart()
	p.index()
	first := p.installsFirst()
	for _, s := range p.steps {
		s.proven, s.revert, s.revertOpen = p.in.TargetProven, p.revert, p.revertOpen
		if s.proven || first {
			s.emptyHold = "" // for proven content, an empty step is complete
		}
	}
	return err
}

// installsFirst reports whether this is a first install: no content has succeeded, and no cluster keeps content other
// than the target, whether AddonFlow or OCM deployed it. A cluster in flight to the target does not count.
func (p *planner) installsFirst() bool {
	for i := range p.units {
		u := &p.units[i]
		moves := u.record.InFlight() && u.record.Revision == p.target
		if u.member && u.c.Running != "" && u.c.Running != p.target && !u.c.UpToDate && !moves {
			return false
		}
	}
	return p.stable == ""
}

// completeSteps adds to the steps the clusters that a revert moves although no step selects them. Then it computes
// limits and budgets from all members.
func (p *planner) completeSteps() {
	for i := range p.units {
		if u := &p.units[i]; p.revert && u.member && u.step == nil && p.leftBehind(u) {
			if homes := p.homes(u.record.Stage); len(homes) > 0 {
				u.step = homes[0]
				u.step.include(u)
			}
		}
	}
	for _, t := range p.tracks {
		all := 0
		for _, s := range t.steps {
			all += len(s.members)
		}
		for _, s := range t.steps {
			n := len(s.members)
			s.limit, s.maxFailures = s.concurrency.of(n), s.tolerance.of(n)
			if t.shared && !s.mandatory {
				s.maxFailures = s.tolerance.of(all)
			}
		}
	}
}

// leftBehind reports whether a revert must move a cluster that no step selects, because the cluster was admitted to
// the reverted content, or by the revert. Without a step it would keep its content, so it is a member of the step of
// its admission.
func (p *planner) leftBehind(u *unit) bool {
	r := u.record
	back := r != nil && r.Revision == p.target && !p.due(u)
	return r != nil && (r.InFlight() || p.strays(u)) || back && (p.revertOpen || r.State != Done)
}

// include makes the cluster a member of the step.
func (s *step) include(u *unit) {
	at, _ := slices.BinarySearchFunc(s.members, u.c.Name, func(m *unit, name string) int { return strings.Compare(m.c.Name, name) })
	s.members = slices.Insert(s.members, at, u)
}

// index lists the steps of every track, in order and by name. A step that several tracks
// start with is listed once.
func (p *planner) index() {
	p.steps, p.named = nil, map[string]*step{}
	for _, t := range p.tracks {
		for _, s := range t.steps {
			if p.named[s.name] == nil {
				p.steps, p.named[s.name] = append(p.steps, s), s
			}
		}
	}
}

// tracksOf are the tracks to which a step with the name belongs: with a pace per placement, the track of the
// placement; otherwise all tracks.
func (p *planner) tracksOf(step string) []*track {
	for i, t := range p.tracks {
		if t.prefix != "" && stageOf(strings.TrimSuffix(t.prefix, "/"))(step) {
			return p.tracks[i : i+1]
		}
	}
	return p.tracks
}

// nameApart numbers steps that would have the same name, such as a placement named "unplaced" and the step of
// clusters without a placement. Records and commit statuses find a step by its name.
func (p *planner) nameApart() {
	taken := map[string]bool{}
	for _, t := range p.tracks {
		for _, s := range t.steps {
			name := s.name
			for n := 2; taken[s.name]; n++ {
				s.name = fmt.Sprintf("%s-%d", name, n)
			}
			taken[s.name] = true
		}
	}
}

// members returns the members that satisfy in (nil: all) and have no step yet.
func (p *planner) members(in func(*unit) bool) []*unit {
	var found []*unit
	for i := range p.units {
		u := &p.units[i]
		if u.member && u.step == nil && (in == nil || in(u)) {
			found = append(found, u)
		}
	}
	return found
}

// selected returns the members among the groups' clusters that satisfy in (nil: all)
// and have no step yet, in order of name. It marks every cluster of the groups as named by
// the policy.
func (p *planner) selected(in func(*unit) bool, groups ...Group) []*unit {
	var found []*unit
	for _, g := range groups {
		at := p.cursor()
		for _, name := range g.Clusters {
			u := at.find(name)
			if u == nil {
				continue
			}
			u.named = true
			if u.member && u.step == nil && (in == nil || in(u)) {
				found = append(found, u)
			}
		}
	}
	slices.SortFunc(found, func(a, b *unit) int { return strings.Compare(a.c.Name, b.c.Name) })
	return slices.Compact(found)
}

// returning reports whether the deletion of its ManagedClusterAddOn is the only reason why a cluster of the
// groups is no member. The cluster is a member again when it has a new ManagedClusterAddOn.
func (p *planner) returning(groups ...Group) bool {
	for _, g := range groups {
		at := p.cursor()
		for _, name := range g.Clusters {
			if u := at.find(name); u != nil && u.selected() && u.c.Installed == Deleting && !u.c.Gone {
				return true
			}
		}
	}
	return false
}

// withRecorded adds the members without a step whose record names a stage that satisfies in. While the decisions of a
// placement are missing or changing, the clusters that it selected before still belong to it.
func (p *planner) withRecorded(found []*unit, in func(stage string) bool) []*unit {
	for i := range p.units {
		u := &p.units[i]
		if u.member && u.step == nil && u.record != nil && in(u.record.Stage) && !slices.Contains(found, u) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *unit) int { return strings.Compare(a.c.Name, b.c.Name) })
	return found
}

// own makes s the step of its members and returns it.
func (s *step) own() *step {
	for _, u := range s.members {
		u.step = s
	}
	return s
}

// HoldsStage reports whether the policy holds a stage: its maxConcurrency is 0.
func HoldsStage(st v1alpha1.Stage) bool {
	return st.MaxConcurrency != nil && quantityOf(*st.MaxConcurrency).n == 0
}

// stages returns the track of the declared stages. A cluster belongs to the first stage that
// selects it. Percentages are of all members of a stage, Done or not.
func (p *planner) stages() *track {
	t := &track{}
	for _, st := range p.spec.Stages {
		pl := p.stagePlacement(st.Placement)
		s := &step{name: st.Name, members: p.selected(nil, pl.Groups...), returning: p.returning(pl.Groups...)}
		if pl.untrusted() != "" {
			s.members = p.withRecorded(s.members, func(stage string) bool { return stage == st.Name })
		}
		s.concurrency = defaultConcurrency([]Placement{pl})
		if st.MaxConcurrency != nil {
			s.concurrency = quantityOf(*st.MaxConcurrency)
		}
		if HoldsStage(st) {
			s.hold = "held: maxConcurrency of stage " + st.Name + " is 0"
		}
		if st.MaxFailures != nil {
			s.tolerance = quantityOf(*st.MaxFailures)
		}
		s.gates = p.gatesOf(st)
		s.soak = st.MinSuccessTime.Duration
		s.deadline, s.declared = deadlineOf(st.ProgressDeadline), st.ProgressDeadline != ""
		if !s.declared {
			s.deadline = stageDeadline
		}
		if st.WhenEmpty != v1alpha1.WhenEmptyPass {
			s.emptyHold = "held: Placement " + st.Placement.Namespace + "/" + st.Placement.Name + " of stage " + st.Name +
				" selects no cluster of the install set; select one, or set whenEmpty: Pass"
		}
		why := pl.untrusted()
		if len(s.members) == 0 { // whether the step is empty depends on the install set
			why = cmp.Or(why, p.untrusted(p.install))
		}
		s.distrust(why)
		t.steps = append(t.steps, s.own())
	}
	return t
}

// stagePlacement returns the observed placement of a stage. For proven content, a placement that does not exist
// counts as empty: the stage has nothing to prove, and a revert must not wait for it.
func (p *planner) stagePlacement(ref v1alpha1.PlacementReference) Placement {
	pl := p.placementOf(ref)
	if p.in.TargetProven && pl.Settlement == Missing {
		pl.Settlement, pl.Groups = Settled, nil
	}
	return pl
}

// distrust holds a step whose members cannot be determined. why is the reason; "": they can be determined.
func (s *step) distrust(why string) {
	if why != "" {
		s.hold, s.unknown = "held: "+why, true
	}
}

// strategy builds the track of a strategy: one pace over the groups of all install placements.
func (p *planner) strategy(st v1alpha1.RolloutStrategy) error {
	if st.Type == v1alpha1.StrategyRollingUpdateWithPlacement {
		p.tracks = []*track{p.rollingUpdate(*st.RollingUpdateWithPlacement)}
		return nil
	}
	t, err := p.ocmTrack(scope{
		alone:      wholeFleet,
		members:    p.members(nil),
		groups:     p.groups(p.install),
		perGroup:   defaultConcurrency(p.install),
		distrusted: p.untrusted(p.install),
	}, ocmStrategy(st))
	p.tracks = []*track{t}
	return err
}

// ocmStrategy returns the strategy as OCM's type; UpdateAll becomes All.
func ocmStrategy(st v1alpha1.RolloutStrategy) clusterv1alpha1.RolloutStrategy {
	kind := clusterv1alpha1.RolloutType(st.Type)
	if st.Type == v1alpha1.StrategyUpdateAll {
		kind = clusterv1alpha1.All
	}
	return clusterv1alpha1.RolloutStrategy{
		Type: kind, All: st.All, Progressive: st.Progressive, ProgressivePerGroup: st.ProgressivePerGroup,
	}
}

// perPlacement builds the tracks of the pace in the ClusterManagementAddOn: one track per install placement, in
// parallel. A cluster belongs to the last placement that selects it. Clusters without a placement have no pace in OCM
// and move at once.
//
// A placement whose decisions are incomplete may select any cluster. So it holds its own track, the tracks before it,
// and the clusters that no other placement selects.
func (p *planner) perPlacement() error {
	var failed error
	for i, pl := range p.install {
		if pl.untrusted() == "" {
			continue
		}
		for _, u := range p.withRecorded(nil, stageOf(p.titleOf(pl))) {
			u.placement = i // the placement may still select its clusters
		}
	}
	for i, pl := range p.install {
		name := p.titleOf(pl)
		t, err := p.ocmTrack(scope{
			alone: name, prefix: name + "/",
			members:    p.members(func(u *unit) bool { return u.placement == i }),
			in:         func(u *unit) bool { return u.placement == i },
			groups:     p.groups(p.install[i : i+1]),
			perGroup:   defaultConcurrency(p.install[i : i+1]),
			distrusted: p.untrusted(p.install[i:]),
		}, p.spec.Install.Placements[i].RolloutStrategy)
		if failed == nil {
			failed = err
		}
		p.tracks = append(p.tracks, t)
	}
	// A cluster that was admitted in a step counts there, although no placement selects it now.
	unrecorded := func(u *unit) bool {
		r := u.record
		return r == nil || r.Revision != p.target || p.due(u) ||
			!slices.ContainsFunc(p.install, func(pl Placement) bool { return stageOf(p.titleOf(pl))(r.Stage) })
	}
	if others := p.members(unrecorded); len(others) > 0 {
		s := p.allAtOnce(unplaced, others, clusterv1alpha1.RolloutAll{})
		s.distrust(p.untrusted(p.install))
		p.tracks = append(p.tracks, &track{steps: []*step{s}})
	}
	return failed
}

// titleOf is the name of the track of an install placement.
func (p *planner) titleOf(pl Placement) string {
	if p.ambiguous(pl.Name) {
		return pl.Namespace + "." + pl.Name
	}
	return pl.Name
}

// stageOf reports whether a stage belongs to the track of the name.
func stageOf(track string) func(stage string) bool {
	return func(stage string) bool { return stage == track || strings.HasPrefix(stage, track+"/") }
}

// ambiguous reports whether install placements of several namespaces share the name.
func (p *planner) ambiguous(name string) bool {
	n := 0
	for _, pl := range p.install {
		if pl.Name == name {
			n++
		}
	}
	return n > 1
}

// allAtOnce is the step of strategy All: all clusters at once, without a soak.
func (p *planner) allAtOnce(name string, members []*unit, all clusterv1alpha1.RolloutAll) *step {
	s := &step{name: name, members: members, all: true, atOnce: true, concurrency: allOfThem, tolerance: allOfThem}
	s.deadline = deadlineOf(all.ProgressDeadline)
	s.declared = s.deadline > 0
	return s.own()
}
