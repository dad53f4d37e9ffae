package rollout_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// The model: clusters run "a", the stable revision; "c" is the target; "b" is content that
// was superseded before it succeeded. A situation is everything that the planner knows of
// one cluster: its record and what is observed.
type situation struct {
	name string
	// core situations are combined in fleets of up to four clusters; all of them in fleets of
	// two, and of three where there is one stage.
	core bool
	// Of the record: "" is none; admitted and since are minutes ago.
	state           rollout.State
	revision        string
	admitted, since int
	// Of the observation.
	running  string
	upToDate bool // its works are what the target asks for
	stale    bool // they are not what the revision that they name asks for any more
	away     bool
	outside  bool // nothing installs the add-on on the cluster any more
	blocked  bool // its works cannot be written
	refused  bool // those of the target cannot
	erred    bool // it failed before
	health   rollout.HealthState
}

const (
	unknown     = rollout.HealthUnknown
	progressing = rollout.HealthProgressing
	proven      = rollout.HealthVerified
	broken      = rollout.HealthFailed
)

// situations are every state of a record, with every observation that matters to it.
func situations() []situation {
	return []situation{
		{name: "waits", core: true, running: "a", health: proven},
		{name: "waits and is away", running: "a", away: true, health: proven},
		{name: "is unchanged", running: "a", upToDate: true, health: proven},
		{name: "runs the target without a record", running: "c", upToDate: true, health: progressing},
		{name: "has nothing yet"},
		{name: "has nothing yet, and the target refuses it", refused: true},

		{name: "admitted", core: true, state: rollout.Admitted, revision: "c", admitted: 1, since: 1, running: "a", health: proven},
		{name: "admitted, late", state: rollout.Admitted, revision: "c", admitted: 40, since: 40, running: "a", health: proven},
		{name: "admitted, away", state: rollout.Admitted, revision: "c", admitted: 1, since: 1, running: "a", away: true},
		{name: "updating", core: true, state: rollout.Updating, revision: "c", admitted: 2, since: 1, running: "c", upToDate: true, health: progressing},
		{name: "updating, silent and late", state: rollout.Updating, revision: "c", admitted: 40, since: 39, running: "c", upToDate: true, health: unknown},
		{name: "updating, verified", state: rollout.Updating, revision: "c", admitted: 2, since: 1, running: "c", upToDate: true, health: proven},
		{name: "updating, fails", state: rollout.Updating, revision: "c", admitted: 2, since: 1, running: "c", upToDate: true, health: broken},
		{name: "updating, its own inputs changed, which fails", state: rollout.Updating, revision: "c", admitted: 2, since: 1, running: "c", stale: true, health: broken},
		{name: "updating, away", state: rollout.Updating, revision: "c", admitted: 2, since: 1, running: "c", upToDate: true, away: true},
		{name: "soaking", core: true, state: rollout.Soaking, revision: "c", admitted: 9, since: 1, running: "c", upToDate: true, health: proven},
		{name: "soaked", state: rollout.Soaking, revision: "c", admitted: 20, since: 10, running: "c", upToDate: true, health: proven},
		{name: "soaking, not healthy any more", state: rollout.Soaking, revision: "c", admitted: 20, since: 10, running: "c", upToDate: true, health: progressing},
		{name: "soaking, away", state: rollout.Soaking, revision: "c", admitted: 20, since: 10, running: "c", upToDate: true, away: true, health: proven},
		{name: "done", core: true, state: rollout.Done, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, health: proven},
		{name: "done, its own inputs changed", state: rollout.Done, revision: "c", admitted: 60, since: 20, running: "c", stale: true, health: proven},
		{name: "failed", core: true, state: rollout.Failed, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, health: broken},
		{name: "failed, verified now", state: rollout.Failed, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, health: proven},
		{name: "failed, its own inputs changed", state: rollout.Failed, revision: "c", admitted: 60, since: 20, running: "c", stale: true, health: progressing},
		{name: "failed before, soaking", core: true, state: rollout.Soaking, revision: "c", admitted: 9, since: 1, running: "c", upToDate: true, health: proven, erred: true},
		{name: "failed before, soaked", state: rollout.Soaking, revision: "c", admitted: 20, since: 10, running: "c", upToDate: true, health: proven, erred: true},
		{name: "failed before, away", state: rollout.Updating, revision: "c", admitted: 5, since: 4, running: "c", upToDate: true, away: true, erred: true},
		{name: "failed before, leaves", state: rollout.Soaking, revision: "c", admitted: 9, since: 1, running: "c", upToDate: true, outside: true, health: proven, erred: true},
		{name: "failed, away", state: rollout.Failed, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, away: true, health: broken},
		{name: "failed, put back by hand", state: rollout.Failed, revision: "c", admitted: 60, since: 20, running: "a", health: proven},
		{name: "not written", state: rollout.NotWritten, revision: "c", admitted: 60, since: 20, running: "a", health: proven, blocked: true},
		{name: "not written, and can be now", state: rollout.NotWritten, revision: "c", admitted: 60, since: 20, running: "a", health: proven},
		{name: "not written, can be now, and is away", state: rollout.NotWritten, revision: "c", admitted: 60, since: 20, running: "a", away: true, health: proven},
		{name: "admitted, and cannot be written", state: rollout.Admitted, revision: "c", admitted: 1, since: 1, running: "a", health: proven, blocked: true},
		{name: "timed out", core: true, state: rollout.TimedOut, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, health: unknown},
		{name: "lost", core: true, state: rollout.Lost, revision: "c", admitted: 5, since: 2, running: "c", upToDate: true, away: true},
		{name: "lost again, after deadline and soak", state: rollout.Updating, revision: "c", admitted: 50, since: 2, running: "c", upToDate: true, away: true},
		{name: "ill again, after deadline and soak", state: rollout.Soaking, revision: "c", admitted: 50, since: 2, running: "c", upToDate: true, health: progressing},
		{name: "lost for long", state: rollout.Lost, revision: "c", admitted: 60, since: 50, running: "c", upToDate: true, away: true},
		{name: "lost, returned", state: rollout.Lost, revision: "c", admitted: 5, since: 2, running: "c", upToDate: true, health: progressing},
		{name: "parked", core: true, state: rollout.Parked, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, away: true},
		{name: "parked, returned", state: rollout.Parked, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, health: progressing},
		{name: "parked, returned, never written, what it runs fails", state: rollout.Parked, revision: "c", admitted: 60, since: 20, running: "a", health: broken},
		{name: "parked, returned, never written", state: rollout.Parked, revision: "c", admitted: 60, since: 20, running: "a", health: proven},
		{name: "left", core: true, state: rollout.Left, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, outside: true},
		{name: "left, selected again", state: rollout.Left, revision: "c", admitted: 60, since: 20, running: "a", health: proven},
		{name: "left after a failure", core: true, state: rollout.LeftFailed, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, outside: true},
		{name: "left after a failure, selected again", state: rollout.LeftFailed, revision: "c", admitted: 60, since: 20, running: "c", upToDate: true, health: broken},
		{name: "leaves while it soaks", state: rollout.Soaking, revision: "c", admitted: 20, since: 10, running: "c", upToDate: true, outside: true, health: proven},

		{name: "in flight at older content", state: rollout.Updating, revision: "b", admitted: 5, since: 4, running: "b", health: progressing},
		{name: "lost at older content", state: rollout.Lost, revision: "b", admitted: 5, since: 2, running: "b", away: true},
		{name: "parked at older content, returned", state: rollout.Parked, revision: "b", admitted: 60, since: 20, running: "b", health: progressing},
		{name: "failed at older content", state: rollout.Failed, revision: "b", admitted: 60, since: 20, running: "b", health: broken},
		{name: "failed at older content that is the same here", state: rollout.Failed, revision: "b", admitted: 60, since: 20, running: "b", upToDate: true, health: unknown},
		{name: "soaking at older content that is the same here", state: rollout.Soaking, revision: "b", admitted: 20, since: 5, running: "b", upToDate: true, health: proven},
		{name: "done at older content", state: rollout.Done, revision: "b", admitted: 60, since: 20, running: "b", health: proven},
	}
}

// modelPolicy is a policy over three groups of clusters.
type modelPolicy struct {
	name   string
	stages int // into which clusters can fall
	// at is the name of the stage of a cluster.
	at func(stage int) string
	// set fills an input whose placements p0, p1 and p2 select the stages, and whose
	// placement all has them as groups.
	set func(*rollout.Input)
}

func modelPolicies() []modelPolicy {
	stages := func(limit, failures int, soak time.Duration) func(*rollout.Input) {
		return func(in *rollout.Input) {
			for i := range 3 {
				in.Spec.Stages = append(in.Spec.Stages, v1alpha1.Stage{
					Name: fmt.Sprintf("s%d", i), Placement: ref(fmt.Sprintf("p%d", i)), MaxConcurrency: new(number(limit)),
					MaxFailures: new(number(failures)), MinSuccessTime: metav1.Duration{Duration: soak}, ProgressDeadline: "30m",
				})
			}
		}
	}
	strategy := func(st v1alpha1.RolloutStrategy) func(*rollout.Input) {
		return func(in *rollout.Input) { in.Spec.Strategy = &st }
	}
	config := clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute}, ProgressDeadline: "30m"}
	tolerant := config
	tolerant.MaxFailures = number(1)
	stageName := func(i int) string { return fmt.Sprintf("s%d", i) }
	groupName := func(i int) string { return fmt.Sprintf("group-%d", i) }
	always := func(name string) func(int) string { return func(int) string { return name } }
	revert := func(set func(*rollout.Input)) func(*rollout.Input) {
		return func(in *rollout.Input) { set(in); in.TargetProven, in.Reverting = true, true }
	}
	canary := stages(1, 0, 10*time.Minute)
	return []modelPolicy{
		{name: "stages, one at a time, no failure", stages: 3, at: stageName, set: canary},
		{name: "stages, two at a time, one failure, no soak", stages: 3, at: stageName, set: stages(2, 1, 0)},
		{name: "stages on a revert", stages: 3, at: stageName, set: revert(canary)},
		{name: "stages on a rollback", stages: 3, at: stageName, set: func(in *rollout.Input) { revert(canary)(in); in.RollingBack = true }},
		{name: "stages on a first install", stages: 1, at: stageName, set: func(in *rollout.Input) { canary(in); in.Stable = "" }},
		{name: "stages after success", stages: 1, at: stageName, set: func(in *rollout.Input) {
			canary(in)
			in.Stable, in.TargetProven, in.Ended = "c", true, true
		}},
		{name: "stages while suspended", stages: 1, at: stageName, set: func(in *rollout.Input) { canary(in); in.Suspended = true }},
		{name: "All", stages: 1, at: always("all"), set: strategy(v1alpha1.RolloutStrategy{
			Type: v1alpha1.StrategyAll, All: &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m"}},
		})},
		{name: "All after another pace", stages: 1, at: always("s0"), set: strategy(v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyAll})},
		{
			name: "Progressive with a mandatory group", stages: 2, at: func(i int) string { return []string{"group-0", "rest"}[i] },
			set: strategy(v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressive, Progressive: &clusterv1alpha1.RolloutProgressive{
				RolloutConfig: tolerant, MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupIndex: 0}), MaxConcurrency: number(1),
			}}),
		},
		{
			name: "ProgressivePerGroup", stages: 3, at: groupName,
			set: strategy(v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: config}}),
		},
		{
			name: "RollingUpdateWithPlacement", stages: 1, at: always("share"),
			set: strategy(v1alpha1.RolloutStrategy{
				Type: v1alpha1.StrategyRollingUpdateWithPlacement,
				RollingUpdateWithPlacement: &v1alpha1.RollingUpdateWithPlacement{
					PlacementReference: ref("all"), MaxConcurrentlyUpdating: new(percent("50%")),
				},
			}),
		},
		{name: "a pace per placement", stages: 2, at: func(i int) string { return fmt.Sprintf("p%d", i) }, set: func(in *rollout.Input) {
			in.Spec.Install = installedBy("p0", "p1")
			in.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{RolloutConfig: config, MaxConcurrency: number(1)})
		}},
	}
}

// place is one cluster of the model: its stage and situation.
type place struct{ stage, situation int }

// modelNames are those of four clusters; ledgers of them are cached by which have records.
type model struct {
	situations []situation
	names      []string
	zipped     map[string][]byte
}

func newModel() *model {
	m := &model{situations: situations(), names: rollouttest.Names(4), zipped: map[string][]byte{}}
	for mask := range 16 {
		var records []rollout.Record
		var names []string
		for i, name := range m.names {
			if mask&(1<<i) != 0 {
				records, names = append(records, rollout.Record{Cluster: name, RecordKey: v1alpha1.RecordKey{Revision: "c", State: rollout.Done}}), append(names, name)
			}
		}
		m.zipped[strings.Join(names, "\n")] = rollouttest.LedgerOf(records...).Names
	}
	return m
}

// input is the moment of a fleet under a policy.
func (m *model) input(p modelPolicy, fleet []place) rollout.Input {
	in := rollout.Input{
		Now: now(), AddOn: "hello", Stable: "a", ParkAfter: 10 * time.Minute, RemovalGrace: 5 * time.Minute, ApplyErrorAfter: 10 * time.Minute,
	}
	in.Spec.Target = &v1alpha1.Target{Digest: "c", Commit: "main@sha1:c"}
	in.Spec.Install = installedBy("all")
	p.set(&in)
	groups := make([]rollout.Group, p.stages)
	ago := func(minutes int) metav1.Time { return metav1.NewTime(now().Add(-time.Duration(minutes) * time.Minute)) }
	var named []string
	for i, at := range fleet {
		s, name := m.situations[at.situation], m.names[i]
		groups[at.stage].Index = at.stage
		c := rollout.Cluster{
			Name: name, Installed: rollout.Ours, Reachable: !s.away, Running: s.running,
			UpToDate: s.upToDate, UpToDateStable: in.Stable == "a" && s.running == "a" && !s.stale,
			Health: rollout.Health{State: s.health}, AvailableChanged: now().Add(-time.Hour),
		}
		if s.blocked {
			c.Blocked = "its hosting cluster does not exist"
		}
		if s.refused {
			c.Refused = "no value for GREETING"
		}
		switch {
		case s.outside:
			c.Installed = rollout.NotInstalled
		default:
			groups[at.stage].Clusters = append(groups[at.stage].Clusters, name)
		}
		if in.Stable == "c" {
			c.UpToDateStable = c.UpToDate
		}
		if s.running == "" {
			c.Installed = rollout.NotInstalled
		}
		in.Clusters = append(in.Clusters, c)
		if s.state == "" {
			continue
		}
		in.Ledger.Records = append(in.Ledger.Records, v1alpha1.RecordGroup{
			RecordKey: v1alpha1.RecordKey{Revision: s.revision, Stage: p.at(at.stage), State: s.state, Failed: s.erred},
			Times:     []v1alpha1.RecordTimes{{Admitted: ago(s.admitted), Since: ago(s.since), Clusters: fmt.Sprint(len(named))}},
		})
		named = append(named, name)
	}
	in.Ledger.Names = m.zipped[strings.Join(named, "\n")]
	for i := range groups {
		groups[i].Index = i
		in.Placements = append(in.Placements, placement(fmt.Sprintf("p%d", i), groups[i].Clusters...))
	}
	for i := p.stages; i < 3; i++ {
		in.Placements = append(in.Placements, placement(fmt.Sprintf("p%d", i)))
	}
	in.Placements = append(in.Placements, grouped("all", groups...))
	if p.stages == 1 && len(in.Spec.Stages) > 0 {
		in.Spec.Stages = in.Spec.Stages[:1]
	}
	return in
}

// fleets visits every fleet of up to four clusters in some stages. Clusters in the same
// stage and situation are alike, so that a fleet is visited in one order of its clusters.
func (m *model) fleets(stages int, visit func([]place)) {
	var all []place
	for stage := range stages {
		for i := range m.situations {
			all = append(all, place{stage, i})
		}
	}
	whole := 2 // clusters that can be in every situation
	if stages == 1 && !testing.Short() {
		whole = 3
	}
	var grow func(fleet []place, from int, core bool)
	grow = func(fleet []place, from int, core bool) {
		if len(fleet) > 0 {
			visit(fleet)
		}
		if len(fleet) == 4 {
			return
		}
		for i := from; i < len(all); i++ {
			is := core && m.situations[all[i].situation].core
			if len(fleet) >= whole && !is || testing.Short() && len(fleet) >= whole {
				continue
			}
			grow(append(fleet, all[i]), i, is)
		}
	}
	grow(nil, 0, true)
}

// judged plans one step for the fleet and judges it by the independent rules.
func (m *model) judged(p modelPolicy, fleet []place) error {
	in := m.input(p, fleet)
	plan, refused := rollout.New(in)
	if refused != nil && !errors.Is(refused, rollout.ErrUnknownDecisionGroup) {
		return refused
	}
	step := rollouttest.StepOf(in, plan, refused)
	step.Start = true
	return rollouttest.NewHistory().Check(step)
}

// TestEveryFleetOfUpToFourClusters plans one step for every fleet of up to four clusters, in
// up to three stages or groups, in every state of a record, under every strategy. The history
// judges each step. It prints its count. With -short, fleets have two clusters,
// and it ends with the first policy that breaks a rule.
func TestEveryFleetOfUpToFourClusters(t *testing.T) {
	m := newModel()
	var total atomic.Int64
	for _, p := range modelPolicies() {
		fleets := make(chan []place, 1024)
		var wg sync.WaitGroup
		var failed atomic.Int64
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for batch := range fleets {
					for n := batch[0].stage; len(batch) > 1; n = batch[0].stage {
						fleet := batch[1 : 1+n]
						if err := m.judged(p, fleet); err != nil && failed.Add(1) <= 3 {
							var names []string
							for _, at := range fleet {
								names = append(names, fmt.Sprintf("stage %d: %s", at.stage, m.situations[at.situation].name))
							}
							t.Errorf("%s: [%s]\n%v", p.name, strings.Join(names, "; "), err)
						}
						total.Add(1)
						if batch = batch[1+n:]; len(batch) == 0 {
							break
						}
					}
				}
			})
		}
		var batch []place
		m.fleets(p.stages, func(fleet []place) {
			batch = append(append(batch, place{stage: len(fleet)}), fleet...)
			if len(batch) > 500 {
				fleets <- batch
				batch = nil
			}
		})
		if len(batch) > 0 {
			fleets <- batch
		}
		close(fleets)
		wg.Wait()
		if n := failed.Load(); n > 0 {
			t.Errorf("%s: %d fleets", p.name, n)
			if testing.Short() {
				return
			}
		}
	}
	t.Logf("%d fleets planned and judged", total.Load())
}
