package rollouttest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// step is a part of the fleet with one pace, as the policy declares it.
type step struct {
	name    string
	members []string
	// before are the positions of the steps that must be complete first; budget those
	// whose failures count against maxFailures.
	before, budget []int
	// concurrency and failures are declared: limit of the members, maxFailures of the members of the
	// steps whose failures count.
	concurrency, failures intstr.IntOrString
	limit, maxFailures    int
	soak, deadline        time.Duration
	declared              bool // the deadline is the user's

	// held: no cluster is admitted to the target. unknown: the members are not known. all: a step
	// of strategy All, which no failure stops. holdEmpty: without clusters it is not complete.
	// returning: it would have another member, whose ManagedClusterAddOn is being deleted.
	// atOnce: the strategy moves all of its clusters at once.
	// sparing: before the first success, it keeps only content that was verified on a cluster.
	held, unknown, all, atOnce, holdEmpty, returning, sparing bool

	// before and during the stage are the verdicts of the gates that the rollout has to pass.
	gatesBefore, gatesDuring []verdict
}

// verdict is a gate and what the input says about it.
type verdict struct {
	v1alpha1.Gate
	said rollout.Gate
}

// policy is the policy of one input, read sentence by sentence and without any thought of
// speed. It knows nothing of the ledger, but for the share of RollingUpdateWithPlacement,
// which clusters that hold the target belong to.
type policy struct {
	in       rollout.Input
	clusters map[string]rollout.Cluster
	// records that the step read, and those that it wrote.
	records, after map[string]rollout.Record
	install        []string // the install set, sorted
	steps          []step
	// unknownGroup: a mandatory group is in none of the placements.
	unknownGroup bool
}

func readPolicy(in rollout.Input, records, after map[string]rollout.Record) *policy {
	p := &policy{in: in, clusters: map[string]rollout.Cluster{}, records: records, after: after}
	for _, c := range in.Clusters {
		p.clusters[c.Name] = c
	}
	p.passBy()
	p.install = p.members()
	switch spec := in.Spec; {
	case spec.Removal != nil: // nothing is rolled out while the add-on is to go
	case len(spec.Stages) > 0:
		p.readStages()
	case spec.Strategy != nil && spec.Strategy.Type == v1alpha1.StrategyRollingUpdateWithPlacement:
		p.readRolling(*spec.Strategy.RollingUpdateWithPlacement)
	case spec.Strategy != nil:
		st := clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.RolloutType(spec.Strategy.Type), All: spec.Strategy.All,
			Progressive: spec.Strategy.Progressive, ProgressivePerGroup: spec.Strategy.ProgressivePerGroup,
		}
		p.readStrategy(st, "all", "", p.installPlacements(), p.install, distrusted(p.installPlacements()...))
	case spec.Install != nil && spec.Install.DefaultCanary && (in.Stable != "" || p.runsAnother() || p.began("canary")):
		p.readDefaultCanary()
	case spec.Install != nil && spec.Install.Type == "Placements":
		p.readPerPlacement()
	default:
		p.readStrategy(clusterv1alpha1.RolloutStrategy{}, "all", "", nil, p.install, false)
	}
	p.nameApart()
	for _, name := range p.install {
		// What a revert takes back leaves also the clusters that no step selects any more.
		r := p.records[name]
		if at := p.stagesOf(r); p.revert() && p.stepOf(name) < 0 && p.goesBack(name) && len(at) > 0 {
			p.steps[at[0]].members = append(p.steps[at[0]].members, name)
			slices.Sort(p.steps[at[0]].members)
		}
	}
	for i, s := range p.steps {
		all := 0
		for _, k := range s.budget {
			all += len(p.steps[k].members)
		}
		p.steps[i].limit, p.steps[i].maxFailures = share(s.concurrency, len(s.members)), share(s.failures, all)
	}
	return p
}

// slotted reports whether a record holds a slot.
func slotted(r rollout.Record) bool {
	switch r.State {
	case rollout.Admitted, rollout.Updating, rollout.Soaking, rollout.Lost:
		return true
	default:
		return false
	}
}

// goesBack reports whether a revert moves a cluster, or has moved it: the cluster was admitted to the reverted
// content.
func (p *policy) goesBack(name string) bool {
	r, admitted := p.records[name]
	if c := p.clusters[name]; !admitted { // after the status was lost, everything that differs is in flight
		return p.in.Rebuild && c.Running != "" && c.Running != rollout.Foreign && (p.in.Stable == "" || !c.UpToDateStable)
	}
	back := p.holds(name) && !p.again(r) && (p.revertOpen() || r.State != rollout.Done)
	return slotted(r) || p.strays(name) || back
}

// passBy treats clusters that a revert would move, but that cannot be written, as not available, until they
// can be written.
func (p *policy) passBy() {
	for name, c := range p.clusters {
		if p.revert() && p.strays(name) && (c.Blocked != "" || c.Refused != "") {
			c.Reachable, c.Blocked, c.Refused = false, "", ""
			p.clusters[name] = c
		}
	}
}

func (p *policy) target() string {
	if p.in.Spec.Target == nil {
		return ""
	}
	return p.in.Spec.Target.Digest
}

// stepOf is the position of the step that a cluster belongs to; -1 for none.
func (p *policy) stepOf(name string) int {
	return slices.IndexFunc(p.steps, func(s step) bool { return slices.Contains(s.members, name) })
}

// stepNamed is the position of the step with the name; -1 for none.
func (p *policy) stepNamed(name string) int {
	return slices.IndexFunc(p.steps, func(s step) bool { return s.name == name })
}

// share is a number, or a percentage rounded up, of total, and never more than total.
func share(v intstr.IntOrString, total int) int {
	text := v.String()
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		n, _ := strconv.Atoi(percent)
		count := 0
		for count*100 < n*total {
			count++
		}
		return count
	}
	count, _ := strconv.Atoi(text)
	return min(count, total)
}

// allMembers are all clusters of a step, however many there are.
var allMembers = intstr.FromString("100%")

func duration(text string) time.Duration {
	if text == "" || text == "None" {
		return 0
	}
	d, _ := time.ParseDuration(text)
	return d
}

func (p *policy) taken(name string) bool { return p.stepOf(name) >= 0 }

// add appends a step that comes after those of its track.
func (p *policy) add(track *[]int, s step) {
	s.before = slices.Clone(*track)
	if s.budget == nil {
		s.budget = []int{len(p.steps)}
	}
	*track = append(*track, len(p.steps))
	p.steps = append(p.steps, s)
}

// nameApart numbers steps that would share a name.
func (p *policy) nameApart() {
	for i := range p.steps {
		name := p.steps[i].name
		for k := 2; slices.ContainsFunc(p.steps[:i], func(s step) bool { return s.name == p.steps[i].name }); k++ {
			p.steps[i].name = fmt.Sprintf("%s-%d", name, k)
		}
	}
}

// readDefaultCanary reads the pace of an add-on that declares none: one cluster that the target
// changes, if possible one that is available, and then at most 10 % of the others.
func (p *policy) readDefaultCanary() {
	canary, rest := step{name: "canary", concurrency: intstr.FromInt32(1)}, step{name: "rest", concurrency: intstr.FromString("10%")}
	chosen, changed, available := "", false, false
	done := false
	for name, r := range p.records {
		if !p.holds(name) || r.Stage != "canary" && r.Stage != "" {
			continue
		}
		done = done || r.State == rollout.Done
		if slices.Contains(p.install, name) {
			canary.members = append(canary.members, name)
		}
	}
	sort.Strings(canary.members)
	byHash := slices.SortedFunc(slices.Values(p.install), func(a, b string) int {
		return strings.Compare(fmt.Sprintf("%x", sha256.Sum256([]byte(a))), fmt.Sprintf("%x", sha256.Sum256([]byte(b))))
	})
	for _, name := range byHash {
		c := p.clusters[name]
		r := p.records[name]
		joins := c.Running == "" || slotted(r) && r.Revision == p.in.Stable
		free := c.Reachable && !joins && c.Waits == "" && (!c.Held || !c.HeldUntil.IsZero() && !p.in.Now.Before(c.HeldUntil))
		if chosen == "" || !c.UpToDate && (!changed || free && !available) {
			chosen, changed, available = name, !c.UpToDate, free
		}
	}
	if chosen != "" && !done && len(canary.members) == 0 {
		canary.members = []string{chosen}
	}
	if p.revert() {
		canary.members = nil
	}
	for _, name := range p.install {
		if !slices.Contains(canary.members, name) {
			rest.members = append(rest.members, name)
		}
	}
	var track []int
	for _, s := range []step{canary, rest} {
		if p.revert() && s.name == "canary" {
			continue // failed clusters go first
		}
		s.deadline = stageDeadline
		s.unknown = distrusted(p.installPlacements()...)
		s.held = s.unknown
		p.add(&track, s)
	}
}

// stageDeadline is the deadline of a stage that declares none.
const stageDeadline = time.Hour

func (p *policy) readStages() {
	var track []int
	for _, st := range p.in.Spec.Stages {
		pl := p.placement(st.Placement)
		s := step{
			name: st.Name, soak: st.MinSuccessTime.Duration, deadline: duration(st.ProgressDeadline),
			declared: st.ProgressDeadline != "", holdEmpty: st.WhenEmpty != v1alpha1.WhenEmptyPass,
		}
		if !s.declared {
			s.deadline = stageDeadline
		}
		if absent := pl.Settlement == rollout.Missing; absent && p.in.TargetProven {
			pl = rollout.Placement{Settlement: rollout.Settled} // nothing to prove
		}
		for _, name := range p.install {
			before := distrusted(pl) && p.records[name].Stage == st.Name
			if (selects(pl, name) || before) && !p.taken(name) {
				s.members = append(s.members, name)
			}
		}
		s.returning = p.returning(func(name string) bool { return selects(pl, name) })
		s.concurrency = allMembers
		if pl.ClustersPerDecisionGroup.String() != "0" {
			s.concurrency = pl.ClustersPerDecisionGroup
		}
		if st.MaxConcurrency != nil {
			s.concurrency = *st.MaxConcurrency
			s.held = st.MaxConcurrency.String() == "0" || st.MaxConcurrency.String() == "0%"
		}
		if st.MaxFailures != nil {
			s.failures = *st.MaxFailures
		}
		s.unknown = distrusted(pl)
		s.held = s.held || s.unknown
		if st.Gates != nil {
			s.gatesBefore = p.verdicts(st, v1alpha1.GateBefore, st.Gates.Before)
			s.gatesDuring = p.verdicts(st, v1alpha1.GateDuring, st.Gates.During)
		}
		p.add(&track, s)
	}
}

// verdicts are those of the gates that can hold the rollout. A revert waits only for windows with
// holdsReverts. Proven content that is not a revert waits only for windows.
func (p *policy) verdicts(st v1alpha1.Stage, when v1alpha1.GateMoment, gates []v1alpha1.Gate) []verdict {
	var found []verdict
	for _, g := range gates {
		window := g.Type == v1alpha1.GateWindow
		if p.revertOpen() && (!window || !g.Window.HoldsReverts) || p.in.TargetProven && !window {
			continue
		}
		v := verdict{Gate: g}
		for _, said := range p.in.Gates {
			if said.Stage == st.Name && said.Name == g.Name && said.When == when {
				v.said = said
			}
		}
		found = append(found, v)
	}
	return found
}

// revert reports whether clusters that run other content go back to a proven target; revertOpen,
// whether the rollout that moves them has not ended.
func (p *policy) revert() bool     { return p.in.TargetProven && p.in.Reverting }
func (p *policy) revertOpen() bool { return p.revert() && !p.in.Ended && !p.in.Returned }

// strays reports whether the cluster runs other content of AddonFlow than the target.
func (p *policy) strays(name string) bool {
	c := p.clusters[name]
	named := c.Running != "" && c.Running != rollout.Foreign
	return named && c.Running != p.target() && !c.UpToDate
}

// movesBack reports whether the target replaces reverted content that the cluster runs: while the fleet goes back, and
// after that on a cluster that was left behind.
func (p *policy) movesBack(name string) bool {
	return p.revert() && p.clusters[name].Running != "" && (p.revertOpen() || p.strays(name))
}

// returning reports whether one of the clusters will be a member again once its
// ManagedClusterAddOn is deleted.
func (p *policy) returning(in func(name string) bool) bool {
	for name, c := range p.clusters {
		if in(name) && c.Installed == rollout.Deleting && !c.Gone && p.wanted(name) {
			return true
		}
	}
	return false
}

func (p *policy) readPerPlacement() {
	pls := p.installPlacements()
	claimed := map[string]bool{}
	for i, pl := range pls {
		var mine []string
		for _, name := range p.install {
			last := -1
			for j, other := range pls {
				if selects(other, name) {
					last = j
				}
			}
			for j, other := range pls {
				if distrusted(other) && inTrack(p.records[name].Stage, titleOf(other, pls)) {
					last = j // it may still select what it selected
				}
			}
			if last == i {
				mine, claimed[name] = append(mine, name), true
			}
		}
		title := titleOf(pl, pls)
		p.readStrategy(p.in.Spec.Install.Placements[i].RolloutStrategy, title, title+"/",
			[]rollout.Placement{pl}, mine, distrusted(pls[i:]...))
	}
	others := slices.DeleteFunc(slices.Clone(p.install), func(name string) bool { return claimed[name] || p.keepsStage(name) })
	if len(others) > 0 {
		p.readStrategy(clusterv1alpha1.RolloutStrategy{}, "unplaced", "", nil, others, distrusted(pls...))
	}
}

// titleOf is how the stages of an install placement are named.
func titleOf(pl rollout.Placement, pls []rollout.Placement) string {
	for _, other := range pls {
		if other.Name == pl.Name && other.Namespace != pl.Namespace {
			return pl.Namespace + "." + pl.Name
		}
	}
	return pl.Name
}

// keepsStage reports whether a cluster that no placement selects counts in the stage of its
// record: it was admitted to the target there, at the pace of a placement that there still is,
// and needs no other admission.
func (p *policy) keepsStage(name string) bool {
	r := p.records[name]
	pls := p.installPlacements()
	there := slices.ContainsFunc(pls, func(pl rollout.Placement) bool { return inTrack(r.Stage, titleOf(pl, pls)) })
	return there && p.holds(name) && !p.again(r)
}

// again reports whether a record of the target holds no slot and needs a new admission. Its works are not
// those of the target any more, or could not be written before and can be now.
func (p *policy) again(r rollout.Record) bool {
	c := p.clusters[r.Cluster]
	switch r.State {
	case rollout.Done, rollout.Left:
		return !c.UpToDate
	case rollout.Parked:
		return !c.UpToDate && c.Reachable && !r.Failed
	case rollout.NotWritten:
		return !c.UpToDate && c.Blocked == "" && c.Refused == "" && c.Awaits == ""
	default:
		return false
	}
}

// inTrack reports whether a stage belongs to the track of the name.
func inTrack(stage, track string) bool { return stage == track || strings.HasPrefix(stage, track+"/") }

// holds reports whether a cluster was admitted to the target, or to what is the same for it. The record of
// a joiner names the stable revision until it is retargeted.
func (p *policy) holds(name string) bool {
	r, c := p.records[name], p.clusters[name]
	joins := slotted(r) && r.Revision == p.in.Stable
	same := r.Revision != "" && !joins && r.State != rollout.Done && c.UpToDate && c.Running == r.Revision
	return r.Revision == p.target() || same
}

// has reports whether the works of a cluster are what the revision asks for.
func (p *policy) has(c rollout.Cluster, revision string) bool {
	switch revision {
	case p.target():
		return c.UpToDate
	case p.in.Stable:
		return c.UpToDateStable
	}
	return c.Running == revision
}

// sharedStep is the step of the clusters that RollingUpdateWithPlacement moves.
const sharedStep = "share"

// readRolling is RollingUpdateWithPlacement: a share of the clusters that are
// both selected and installed; the rest is held. A first install ignores the placement, and
// a revert to the stable revision needs no share.
func (p *policy) readRolling(ru v1alpha1.RollingUpdateWithPlacement) {
	var track []int
	if p.in.Stable == "" && !p.began(sharedStep) && !p.runsAnother() {
		p.readStrategy(clusterv1alpha1.RolloutStrategy{}, "all", "", nil, p.install, false)
		return
	}
	pl := p.placement(ru.PlacementReference)
	var chosen []string
	for _, name := range p.install {
		if selects(pl, name) {
			chosen = append(chosen, name)
		}
	}
	size := share(intstr.FromString("25%"), len(chosen))
	if ru.MaxConcurrentlyUpdating != nil {
		size = share(*ru.MaxConcurrentlyUpdating, len(chosen))
	}
	atOnce := intstr.FromInt(max(1, size))
	if p.target() == p.in.Stable || p.revert() {
		p.add(&track, step{name: sharedStep, members: p.install, concurrency: atOnce})
		return
	}
	held := distrusted(pl)
	members := p.shared(chosen, size)
	for _, name := range p.install {
		// In flight to content that was replaced, a cluster is retargeted in the slot that it has.
		if p.holdsShare(name) && p.records[name].Revision != p.target() && !selects(pl, name) {
			members = append(members, name)
		}
	}
	p.add(&track, step{name: sharedStep, members: members, concurrency: atOnce, held: held, unknown: held, holdEmpty: len(chosen) == 0})
	rest := step{name: "rest", concurrency: atOnce, held: true, sparing: true}
	for _, name := range p.install {
		// Undecided, a cluster that the placement dropped keeps its place in the share.
		r := p.records[name]
		undecided := p.holdsShare(name) || r.Stage == sharedStep && r.State != rollout.Done && p.holds(name) && !p.again(r)
		if !p.taken(name) && (!undecided || selects(pl, name)) {
			rest.members = append(rest.members, name)
		}
	}
	p.add(&track, rest)
}

// began reports whether a cluster was admitted to the target in the stage.
func (p *policy) began(stage string) bool {
	for name, r := range p.records {
		if r.Stage == stage && p.holds(name) {
			return true
		}
	}
	return false
}

// seen is the record of a cluster of the share after this look, before any admission. If the cluster was not
// admitted to other content, that is the record after the step. Otherwise it follows from health, apply errors
// and availability. A share has no soak.
func (p *policy) seen(name string) rollout.Record {
	r, c := p.records[name], p.clusters[name]
	switch a := p.after[name]; {
	case a.Revision == r.Revision:
		return a
	case !p.has(c, r.Revision):
	case c.Health.State == rollout.HealthFailed:
		r.State = rollout.Failed
	case c.Health.State == rollout.HealthVerified && c.Reachable:
		r.State, r.Failed = rollout.Done, false
	case c.Reachable && r.State == rollout.Updating && p.applyErrorLasts(r):
		r.State = rollout.Failed
	case c.Reachable && r.State != rollout.Done && (!isFailure(r) || r.State == rollout.NotWritten):
		r.State = rollout.Updating
	}
	return r
}

// applyErrorLasts reports whether the agent has failed to apply the works for so long that the cluster failed: for a
// minute at least, and after the time that an apply error has.
func (p *policy) applyErrorLasts(r rollout.Record) bool {
	h, limit, now := p.clusters[r.Cluster].Health, p.in.ApplyErrorAfter, p.in.Now
	return h.NotApplied != "" && !h.BadSince.IsZero() && !now.Before(h.BadSince.Add(time.Minute)) && limit > 0 && !now.Before(r.Since.Add(limit))
}

// holdsShare reports whether a cluster holds a slot of the share.
func (p *policy) holdsShare(name string) bool {
	r := p.seen(name)
	return r.Stage == sharedStep && slotted(r)
}

// shared fills the share in this order: all clusters that have the target, were admitted to it, or hold a slot of the
// share; clusters that can be admitted now; the others; clusters that the target does not change.
func (p *policy) shared(chosen []string, size int) []string {
	var found []string
	for pass := range 5 {
		for _, name := range chosen {
			c := p.clusters[name]
			kind := 3
			switch {
			case c.Running == p.target() || p.holds(name) || p.holdsShare(name):
				kind = 0
			case c.UpToDate:
				kind = 4
			case p.held(name):
			case c.Reachable && (isFailure(p.seen(name)) || p.seen(name).Failed || c.Health.State == rollout.HealthFailed):
				kind = 1
			case c.Reachable && c.Running != "" && !slotted(p.seen(name)):
				kind = 2
			}
			if kind == pass && (pass == 0 || len(found) < size) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// namedGroup is a decision group with the place it is worked in.
type namedGroup struct {
	rollout.Group
	order int
	name  string
}

func groups(pls []rollout.Placement) []namedGroup {
	var found []namedGroup
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
			found = append(found, namedGroup{Group: g, order: order, name: name})
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

// readStrategy reads one of OCM's strategies off the members of its placements.
func (p *policy) readStrategy(st clusterv1alpha1.RolloutStrategy, alone, prefix string, pls []rollout.Placement, members []string, held bool) {
	var track []int
	config, mandatory := configOf(st)
	untaken := func(of []string) step {
		s := step{
			soak: config.MinSuccessTime.Duration, deadline: duration(config.ProgressDeadline),
			declared: duration(config.ProgressDeadline) > 0, held: held, unknown: held, concurrency: allMembers,
		}
		for _, name := range members {
			if !p.taken(name) && (of == nil || slices.Contains(of, name)) {
				s.members = append(s.members, name)
			}
		}
		return s
	}
	switch st.Type {
	case clusterv1alpha1.Progressive, clusterv1alpha1.ProgressivePerGroup:
	case "", clusterv1alpha1.All, clusterv1alpha1.RolloutType(v1alpha1.StrategyUpdateAll):
		s := untaken(nil)
		s.name, s.all, s.atOnce, s.failures = alone, true, true, allMembers
		p.add(&track, s)
		return
	default:
		panic("the second planner does not know strategy " + string(st.Type))
	}
	first, all := len(p.steps), groups(pls)
	if !held && anyUnknown(mandatory, all) {
		p.unknownGroup, held = true, true
	}
	addGroup := func(g namedGroup, maxFailures intstr.IntOrString) {
		s := untaken(append([]string{}, g.Clusters...))
		s.name, s.atOnce, s.failures = prefix+g.name, true, maxFailures
		in := func(name string) bool { return slices.Contains(g.Clusters, name) }
		s.returning, s.holdEmpty = p.returning(in), isAmong(g, mandatory) && !slices.ContainsFunc(p.install, in)
		p.add(&track, s)
	}
	others := slices.DeleteFunc(slices.Clone(all), func(g namedGroup) bool { return isAmong(g, mandatory) })
	for _, g := range all {
		if isAmong(g, mandatory) {
			addGroup(g, intstr.FromInt32(0))
		}
	}
	perGroup := st.Type == clusterv1alpha1.ProgressivePerGroup
	if perGroup {
		for _, g := range others {
			addGroup(g, config.MaxFailures)
		}
	}
	rest := untaken(nil)
	rest.name = prefix + "rest"
	if len(track) == 0 {
		rest.name = alone
	}
	if !perGroup {
		p.addRest(&track, first, rest, cmp.Or(st.Progressive, &clusterv1alpha1.RolloutProgressive{}), pls)
		return
	}
	if len(rest.members) > 0 || len(track) == 0 {
		rest.atOnce, rest.failures = true, config.MaxFailures
		p.add(&track, rest)
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

// anyUnknown reports whether a mandatory group does not exist. Then every cluster is held,
// because without the group the canary would be skipped.
func anyUnknown(mandatory []clusterv1alpha1.MandatoryDecisionGroup, groups []namedGroup) bool {
	return slices.ContainsFunc(mandatory, func(m clusterv1alpha1.MandatoryDecisionGroup) bool {
		return !slices.ContainsFunc(groups, func(g namedGroup) bool {
			return isAmong(g, []clusterv1alpha1.MandatoryDecisionGroup{m})
		})
	})
}

func isAmong(g namedGroup, mandatory []clusterv1alpha1.MandatoryDecisionGroup) bool {
	for _, m := range mandatory {
		if m.GroupName == g.Name && g.Name != "" || m.GroupName == "" && int(m.GroupIndex) == g.Index {
			return true
		}
	}
	return false
}

// addRest is what Progressive does after its mandatory groups.
func (p *policy) addRest(track *[]int, first int, s step, st *clusterv1alpha1.RolloutProgressive, pls []rollout.Placement) {
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
	case st.MaxConcurrency.String() != "0":
		s.concurrency = st.MaxConcurrency
	case len(numbers) > 0:
		s.concurrency = intstr.FromInt(slices.Min(numbers))
	case len(percents) > 0:
		s.concurrency = intstr.FromString(fmt.Sprintf("%d%%", slices.Min(percents)))
	}
	s.failures = st.MaxFailures
	for i := first; i <= len(p.steps); i++ {
		s.budget = append(s.budget, i)
	}
	p.add(track, s)
}

// placement finds an observed placement.
func (p *policy) placement(ref v1alpha1.PlacementReference) rollout.Placement {
	for _, pl := range p.in.Placements {
		if pl.Namespace == ref.Namespace && pl.Name == ref.Name {
			return pl
		}
	}
	return rollout.Placement{Namespace: ref.Namespace, Name: ref.Name}
}

func (p *policy) installPlacements() []rollout.Placement {
	var found []rollout.Placement
	if p.in.Spec.Install == nil || p.in.Spec.Install.Type != "Placements" || p.in.Spec.Removal != nil {
		return nil
	}
	for _, ip := range p.in.Spec.Install.Placements {
		found = append(found, p.placement(ip.PlacementReference))
	}
	return found
}

func distrusted(pls ...rollout.Placement) bool {
	return slices.ContainsFunc(pls, func(pl rollout.Placement) bool { return pl.Settlement != rollout.Settled })
}

func selects(pl rollout.Placement, name string) bool {
	return slices.ContainsFunc(pl.Groups, func(g rollout.Group) bool { return slices.Contains(g.Clusters, name) })
}

// members are the clusters of the install set, by name. OCM's next decision about a placement does
// not take back an admission: a cluster with a record stays while a placement names it.
func (p *policy) members() []string {
	var names []string
	for _, c := range p.in.Clusters {
		has := c.Installed == rollout.Ours || c.Installed == rollout.HandMade
		_, recorded := p.records[c.Name]
		sure := recorded || p.in.Spec.ClusterLabelSelector != nil || slices.ContainsFunc(p.installPlacements(), func(pl rollout.Placement) bool {
			return pl.Settlement != rollout.Undecided && selects(pl, c.Name)
		})
		if !c.Gone && (has || p.wanted(c.Name) && sure && !c.InstallDisabled && c.Installed != rollout.Deleting) {
			names = append(names, c.Name)
		}
	}
	sort.Strings(names)
	return names
}

// wanted reports whether something installs the add-on on a cluster, in motion or not.
func (p *policy) wanted(name string) bool {
	if p.in.Spec.Removal != nil {
		return false
	}
	if s := p.in.Spec.ClusterLabelSelector; s != nil {
		return labelled(*s, p.clusters[name].Labels)
	}
	return slices.ContainsFunc(p.installPlacements(), func(pl rollout.Placement) bool { return selects(pl, name) })
}

// labelled reads a label selector requirement by requirement.
func labelled(s metav1.LabelSelector, labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		value, has := labels[e.Key]
		is := has && slices.Contains(e.Values, value)
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
		case metav1.LabelSelectorOpNotIn:
			is = !is
		case metav1.LabelSelectorOpExists:
			is = has
		case metav1.LabelSelectorOpDoesNotExist:
			is = !has
		}
		if !is {
			return false
		}
	}
	return true
}

// held reports whether the ManagedCluster asks that its cluster is left alone.
func (p *policy) held(name string) bool {
	c := p.clusters[name]
	return c.Held && (c.HeldUntil.IsZero() || c.HeldUntil.After(p.in.Now))
}

// leaving reports whether the cluster has our add-on and what selected it selects it no more,
// or the whole add-on is to go.
func (p *policy) leaving(name string) bool {
	c, now := p.clusters[name], rollout.ByHand
	switch {
	case c.Installed != rollout.Ours || c.Gone:
		return false
	case p.in.Spec.Removal != nil:
		return true
	case p.in.Spec.ClusterLabelSelector != nil:
		now = rollout.ByLabels
	case p.in.Spec.Install != nil && p.in.Spec.Install.Type == "Placements":
		now = rollout.ByPlacements
	}
	return now != rollout.ByHand && c.SelectedBy == now && !p.wanted(name)
}

// runsAnother reports whether a cluster of the install set was seen with content that differs from the target's,
// also if another writer wrote it.
func (p *policy) runsAnother() bool {
	return slices.ContainsFunc(p.install, func(name string) bool {
		c, r := p.clusters[name], p.records[name]
		moves := slotted(r) && r.Revision == p.target()
		return c.Running != "" && c.Running != p.target() && !c.UpToDate && !moves
	})
}
