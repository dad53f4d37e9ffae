package forecast

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/clock"
)

// Digests of the two revisions of a forecast. They are as long as real digests, because the length
// counts in the limit of the ledger.
const (
	stable = "v1:sha256:0000000000000000000000000000000000000000000000000000000000000001"
	target = "v1:sha256:0000000000000000000000000000000000000000000000000000000000000002"
)

// Times of the operator that are not part of a policy. No cluster of a forecast is lost,
// removed or unable to apply its works; the planner only needs some value.
const (
	parkAfter    = 10 * time.Minute
	removalGrace = 5 * time.Minute
)

// horizon is the longest rollout that counts as one that ends.
const horizon = 365 * 24 * time.Hour

// mostDecisions bounds the work of one forecast: the number of plans times the number of
// clusters. At a microsecond each it takes about three seconds.
const mostDecisions = 3_000_000

// ErrTooLarge means that a policy needs too many plans for a fleet of this size, such as a policy
// with a thousand decision groups.
var ErrTooLarge = errors.New("the rollout has too many steps to be simulated")

// run is one simulation.
type run struct {
	in    rollout.Input
	start time.Time
	took  Took
	// budget is how many clusters may be decided about, all plans together.
	budget int
	// position of each cluster in in.Clusters.
	position map[string]int
	// windows before stages, and at, which evaluates them.
	windows []window
	at      func(v1alpha1.WindowGate, time.Time) (bool, time.Time)
	// verified is when the works of a cluster in flight are verified.
	verified map[string]time.Time
	// stages by name, and their names in the order of the plan.
	stages map[string]*course
	order  []string
	// skipped is the time of the batches that were left out, by track.
	skipped map[string]time.Duration
	every   batches
	// last is the plan at which the simulation ended. beyond: the horizon was reached.
	last   rollout.Plan
	beyond bool
	// timed are the deadlines that were compared with the time that a cluster takes.
	timed map[string]bool
	// late are the stages whose deadline ends before a cluster is verified.
	late map[string]bool
}

// batches says which batches of a stage are simulated.
type batches int

const (
	// distinctBatches: after two equal batches of a stage, the equal batches that follow are counted instead of
	// simulated. The same holds for the groups after the first of ProgressivePerGroup.
	distinctBatches batches = iota
	// everyBatch: no batch is left out. Tests compare the two.
	everyBatch
)

// course is a stage while it is simulated.
type course struct {
	Stage
	// admitted and size are of the last batch that was admitted at once.
	admitted time.Time
	size     int
	// counted: its times follow from those of the decision group before it.
	counted bool
	// flying is the number of clusters in flight. most is the number in the last plan in which clusters of the
	// stage waited although its windows were open.
	flying, most int
}

// full reports whether no cluster is admitted before one in flight is done.
func (c *course) full() bool { return c.flying > 0 && c.flying == c.most }

func newRun(addOn string, policy v1alpha1.AddOnRolloutSpec, fleet Fleet, windows Windows) *run {
	policy.Target = &v1alpha1.Target{Digest: target}
	r := &run{
		every: distinctBatches, budget: mostDecisions, start: time.Unix(0, 0).UTC(), position: map[string]int{}, verified: map[string]time.Time{},
		stages: map[string]*course{}, skipped: map[string]time.Duration{}, late: map[string]bool{}, timed: map[string]bool{},
		took: fleet.Took,
	}
	if r.took.Clusters == 0 {
		r.took.PerCluster = assumedPerCluster
	}
	if windows.At != nil {
		r.start, r.at = windows.Begins.UTC().Truncate(time.Minute), windows.At
	}
	r.in = rollout.Input{
		Now: r.start, AddOn: addOn, Spec: policy, Stable: stable,
		Gates: passed(policy, r.start), Placements: fleet.Placements, Clusters: slices.Clone(fleet.Clusters),
		ParkAfter: parkAfter, RemovalGrace: removalGrace,
	}
	if r.at != nil {
		r.windows = windowsOf(policy, r.in.Gates)
	}
	for i, c := range r.in.Clusters {
		r.position[c.Name] = i
	}
	return r
}

// simulate makes plans and carries them out until the rollout has succeeded, a cluster would time
// out, or nothing happens any more.
func (r *run) simulate() error {
	for {
		r.lookAtWindows()
		// The error of an unknown decision group is in the plan as well: it holds every cluster.
		plan, _ := rollout.New(r.in)
		r.last, r.in.Ledger = plan, plan.Ledger
		r.observe(plan)
		if plan.Succeeded || len(r.late) > 0 {
			return nil
		}
		again := r.carryOut(plan)
		next := r.next(plan)
		if again {
			next = r.in.Now
		}
		if next.IsZero() {
			return nil
		}
		if r.elapsed() > horizon || next.Sub(r.start) > horizon {
			r.beyond = true
			return nil
		}
		if r.budget -= len(r.in.Clusters); r.budget < 0 {
			return ErrTooLarge
		}
		r.in.Now = next
		r.verify()
	}
}

// next is when the next decision is due, in whole seconds as in the ledger; zero: never.
func (r *run) next(plan rollout.Plan) time.Time {
	next := clock.First(plan.RecheckAt, r.opens(plan))
	for _, t := range r.verified {
		next = clock.First(next, t)
	}
	return clock.RoundUp(next, time.Second)
}

// carryOut writes the works of every cluster that the plan moves. It reports whether the next plan is due at once.
// In a real rollout, a plan follows each write of works and starts the deadlines of the written clusters. In the
// simulation, one such plan for each declared deadline is enough.
func (r *run) carryOut(plan rollout.Plan) (again bool) {
	for _, a := range plan.Actions {
		if a.Kind != rollout.Move {
			continue
		}
		c := &r.in.Clusters[r.position[a.Cluster]]
		c.Running, c.UpToDate, c.UpToDateStable = a.Revision, true, false
		c.Health = rollout.Health{State: rollout.HealthProgressing}
		r.verified[a.Cluster] = r.in.Now.Add(r.took.PerCluster)
		cp, _ := plan.Why(a.Cluster)
		if deadline := r.deadlineOf(cp.Stage); !r.timed[deadline] {
			r.timed[deadline], again = true, true
		}
	}
	return again
}

// verify ends the wait of each cluster whose works are verified by now.
func (r *run) verify() {
	for name, t := range r.verified {
		if !t.After(r.in.Now) {
			delete(r.verified, name)
			r.in.Clusters[r.position[name]].Health = rollout.Health{State: rollout.HealthVerified}
		}
	}
}

// batch is the clusters of a stage in one plan.
type batch struct {
	admitted, flying int
	waiting          []string
}

// observe notes the course of each stage, and leaves out batches that repeat.
func (r *run) observe(plan rollout.Plan) {
	for _, st := range plan.Stages {
		c := r.course(st.Name)
		c.Clusters, c.AtOnce = max(c.Clusters, int(st.Counts.Total)), max(c.AtOnce, int(st.Counts.InFlight))
	}
	moved := map[string]bool{}
	for _, a := range plan.Actions {
		moved[a.Cluster] = a.Kind == rollout.Move
	}
	found := map[string]*batch{}
	for _, cp := range plan.Clusters {
		if cp.Stage == "" {
			continue
		}
		b := found[cp.Stage]
		if b == nil {
			b = &batch{}
			found[cp.Stage] = b
		}
		switch cp.State {
		case rollout.Waiting:
			b.waiting = append(b.waiting, cp.Name)
		case rollout.Soaking:
			b.flying++
			c := r.course(cp.Stage)
			c.Soak = max(c.Soak, cp.SoakingUntil.Sub(r.in.Now))
		default:
			if cp.State.InFlight() {
				b.flying++
			}
			if !cp.Deadline.IsZero() && cp.Deadline.Before(r.verified[cp.Name]) {
				r.late[cp.Stage] = true
			}
		}
		if moved[cp.Name] {
			b.admitted++
		}
	}
	for name, b := range found {
		r.advance(name, b)
	}
	for i := range r.order {
		r.advanceGroups(i, found)
	}
}

// advanceGroups skips decision groups, as advance skips batches: if a group begins when the group before it ends, each
// of the following groups takes the same time. The last group is simulated.
func (r *run) advanceGroups(at int, found map[string]*batch) {
	name := r.order[at]
	c, track := r.stages[name], r.trackOf(name)
	if at == 0 || r.every == everyBatch || c.counted || !c.admitted.Equal(r.in.Now) || !r.perGroup(track) {
		return
	}
	before := r.stages[r.order[at-1]]
	period := before.Ends - before.Begins
	if r.trackOf(before.Name) != track || period <= 0 || before.Ends != c.Begins {
		return
	}
	following := r.order[at+1:]
	for i, name := range following {
		if b := found[name]; b == nil || r.trackOf(name) != track || len(b.waiting) < r.stages[name].Clusters {
			following = following[:i]
			break
		}
	}
	if len(following) < 2 {
		return
	}
	c.counted, c.Ends = true, c.Begins+period
	ends := c.Ends
	for _, name := range following[:len(following)-1] {
		left := r.stages[name]
		left.counted, left.Begins, left.Ends = true, ends, min(ends+period, horizon)
		left.AtOnce, left.Soak = left.Clusters, before.Soak
		ends = left.Ends
		for _, cluster := range found[name].waiting {
			r.in.Clusters[r.position[cluster]].UpToDate = true
		}
	}
	r.skipped[track] += ends - c.Ends
}

// perGroup reports whether the track moves one decision group after the other.
func (r *run) perGroup(track string) bool {
	if s := r.in.Spec.Strategy; s != nil {
		return s.Type == v1alpha1.StrategyProgressivePerGroup
	}
	for _, ip := range r.in.Spec.Install.Placements {
		if len(r.in.Spec.Stages) == 0 && (ip.Name == track || ip.Namespace+"."+ip.Name == track) {
			return ip.RolloutStrategy.Type == clusterv1alpha1.ProgressivePerGroup
		}
	}
	return false
}

// advance notes the times of a stage. If this batch equals the one before it, all full batches that follow are equal,
// too: they are counted at once, without simulating their clusters. For the planner, the target does not change these
// clusters.
func (r *run) advance(name string, b *batch) {
	c, track := r.course(name), r.trackOf(name)
	now := r.in.Now.Sub(r.start) + r.skipped[track]
	began := !c.admitted.IsZero()
	shut := r.shut(name)
	if c.flying = b.flying; len(b.waiting) > 0 && !shut {
		c.most = b.flying
	}
	if shut {
		c.size = 0 // the next batch waits for the window: the time until then is no period
	}
	switch {
	case c.counted:
	case b.flying > 0:
		c.Ends = 0
	case began && c.Ends == 0:
		c.Ends = now
	}
	if b.admitted == 0 {
		return
	}
	if !began {
		c.Begins = now
	}
	period, size := r.in.Now.Sub(c.admitted), c.size
	c.admitted, c.size = r.in.Now, b.admitted
	if !began || r.every == everyBatch || size != b.admitted || b.flying != b.admitted || len(b.waiting) <= size {
		return
	}
	repeats := r.admits(name, period, (len(b.waiting)-1)/size)
	if repeats <= 0 {
		return
	}
	for _, cluster := range b.waiting[:repeats*size] {
		r.in.Clusters[r.position[cluster]].UpToDate = true
	}
	r.skipped[track] += times(period, repeats)
}

// times is d, n times, and at most the horizon.
func times(d time.Duration, n int) time.Duration {
	if d > horizon/time.Duration(n) {
		return horizon
	}
	return d * time.Duration(n)
}

func (r *run) course(name string) *course {
	if r.stages[name] == nil {
		r.stages[name] = &course{Stage: Stage{Name: name}}
		r.order = append(r.order, name)
	}
	return r.stages[name]
}

// trackOf names the sequence of stages that a stage belongs to. Only the paces of several install placements run in
// parallel; their stages are named after the placements.
func (r *run) trackOf(stage string) string {
	if spec := r.in.Spec; len(spec.Stages) > 0 || spec.Strategy != nil {
		return ""
	}
	placement, _, _ := strings.Cut(stage, "/")
	return placement
}

// deadlineOf identifies the deadline of a stage: by the declared deadline, or, without declared stages, by the
// name of the track, because the steps of one strategy have the same deadline.
func (r *run) deadlineOf(stage string) string {
	if i := r.declared(stage); i >= 0 {
		return r.in.Spec.Stages[i].ProgressDeadline
	}
	return r.trackOf(stage)
}

// elapsed is the time of the slowest track so far.
func (r *run) elapsed() time.Duration {
	longest := time.Duration(0)
	for skipped := range maps.Values(r.skipped) {
		longest = max(longest, skipped)
	}
	return r.in.Now.Sub(r.start) + longest
}

// forecast is the result of the simulation.
func (r *run) forecast() Forecast {
	f := Forecast{
		Unstaged: int(r.last.Counts.Unstaged), PerCluster: r.took.PerCluster, Measured: r.took.Clusters,
		Windowed: len(r.windows) > 0, Findings: r.findings(),
	}
	for _, name := range r.order {
		c := r.stages[name]
		if i := r.declared(name); i >= 0 {
			st := r.in.Spec.Stages[i]
			c.Waits = waitsOf(st)
			f.Untimed = f.Untimed || st.Gates != nil && slices.ContainsFunc(st.Gates.Before, func(g v1alpha1.Gate) bool {
				return g.Window == nil || !f.Windowed
			})
		}
		f.Stages = append(f.Stages, c.Stage)
		f.Duration = max(f.Duration, c.Ends)
	}
	return f
}
