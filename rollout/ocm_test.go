package rollout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ocm "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1"
	ocmv1beta1 "open-cluster-management.io/sdk-go/pkg/apis/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// standing is the state of a cluster when both libraries decide which clusters move next.
type standing string

const (
	todo     standing = "to apply"
	moving   standing = "progressing" // since a minute
	soaking  standing = "soaking"     // since a minute
	done     standing = "done"        // an hour ago
	failed   standing = "failed"      // since a minute
	timedOut standing = "timed out"   // progressing since an hour, the deadline is 30 minutes
)

// moment is one decision of a rollout: groups and strategy of one placement, and
// where each cluster is.
type moment struct {
	groups   []rollout.Group
	strategy clusterv1alpha1.RolloutStrategy
	clusters map[string]standing
}

// ours are the clusters that AddonFlow moves to the target now.
func (m moment) ours() ([]string, rollout.Plan, error) {
	in := rollout.Input{
		Now: rollouttest.Epoch(), AddOn: "hello", Stable: "v1", ParkAfter: 10 * time.Minute,
		Placements: []rollout.Placement{grouped("all", m.groups...)},
	}
	in.Spec.Target = &v1alpha1.Target{Digest: "v2"}
	in.Spec.Install = installedBy("all")
	in.Spec.Install.Placements[0].RolloutStrategy = m.strategy
	var records []rollout.Record
	for name, s := range m.clusters {
		c := rollout.Cluster{
			Name: name, Installed: rollout.Ours, Reachable: true, Running: "v2", UpToDate: true,
			Health: rollout.Health{State: rollout.HealthProgressing},
		}
		age, state := time.Minute, rollout.Updating
		switch s {
		case moving:
		case todo:
			c.Running, c.UpToDate, c.UpToDateStable, age = "v1", false, true, 0
		case done:
			c.Health.State, state, age = rollout.HealthVerified, rollout.Done, time.Hour
		case soaking:
			c.Health.State, state = rollout.HealthVerified, rollout.Soaking
		case failed:
			c.Health.State = rollout.HealthFailed
		case timedOut:
			age = time.Hour
		}
		in.Clusters = append(in.Clusters, c)
		if age > 0 {
			r := rollout.Record{Cluster: name, RecordKey: v1alpha1.RecordKey{Revision: "v2", State: state}, Admitted: in.Now.Add(-age), Since: in.Now.Add(-age)}
			records = append(records, r)
		}
	}
	keepRecords(&in, records)
	plan, err := rollout.New(in)
	var moved []string
	for _, a := range plan.Actions {
		if a.Kind == rollout.Move {
			moved = append(moved, a.Cluster)
		}
	}
	return moved, plan, err
}

// theirs are the clusters that OCM's rollout library moves now.
func (m moment) theirs(tb testing.TB) ([]string, error) {
	tb.Helper()
	was := ocm.RolloutClock
	ocm.RolloutClock = clocktesting.NewFakeClock(rollouttest.Epoch())
	defer func() { ocm.RolloutClock = was }()

	groups, keys := ocmv1beta1.ClusterGroupsMap{}, map[string]ocmv1beta1.GroupKey{}
	for _, g := range m.groups {
		key := ocmv1beta1.GroupKey{GroupName: g.Name, GroupIndex: int32(g.Index)} //nolint:gosec // indexes here are small
		groups[key] = sets.New(g.Clusters...)
		for _, name := range g.Clusters {
			keys[name] = key
		}
	}
	handler, err := ocm.NewRolloutHandler[string](ocmv1beta1.NewPlacementDecisionClustersTrackerWithGroups(nil, nil, groups), nil)
	if err != nil {
		tb.Fatal(err)
	}
	var statuses []ocm.ClusterRolloutStatus
	for name, s := range m.clusters {
		age := map[standing]time.Duration{done: time.Hour, timedOut: time.Hour}[s]
		at := metav1.NewTime(rollouttest.Epoch().Add(-max(age, time.Minute)))
		statuses = append(statuses, ocm.ClusterRolloutStatus{
			ClusterName: name, GroupKey: keys[name], LastTransitionTime: &at,
			Status: map[standing]ocm.RolloutStatus{
				todo: ocm.ToApply, moving: ocm.Progressing, soaking: ocm.Succeeded, done: ocm.Succeeded, failed: ocm.Failed, timedOut: ocm.Progressing,
			}[s],
		})
	}
	_, result, err := handler.GetRolloutCluster(m.strategy, statuses)
	var moved []string
	for _, c := range result.ClustersToRollout {
		if c.Status == ocm.ToApply {
			moved = append(moved, c.ClusterName)
		}
	}
	slices.Sort(moved)
	return moved, err
}

// TestOCMDifferences lists every deliberate difference from OCM's rollout library,
// each shown on both.
func TestOCMDifferences(t *testing.T) {
	conc := func(n int) clusterv1alpha1.RolloutProgressive {
		return clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(n)}
	}
	budget := func(p clusterv1alpha1.RolloutProgressive, v intstr.IntOrString) clusterv1alpha1.RolloutStrategy {
		p.MaxFailures = v
		return progressive(p)
	}
	canary := mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canary"})
	one := func(names ...string) []rollout.Group { return []rollout.Group{group(0, "", names...)} }
	for name, tc := range map[string]struct {
		reason       string
		in           moment
		theirs, ours []string
	}{
		"in flight first": {
			"a slot is free only when the clusters in flight, wherever their names stand, are below the limit",
			moment{one("c1", "c2"), progressive(conc(1)), map[string]standing{"c1": todo, "c2": moving}},
			[]string{"c1"},
			nil,
		},
		"two in flight of two": {
			"the same with two slots: OCM would have four in flight",
			moment{one("c1", "c2", "c4", "c5"), progressive(conc(2)), map[string]standing{"c1": todo, "c2": todo, "c4": moving, "c5": moving}},
			[]string{"c1", "c2"},
			nil,
		},
		"failures counted over all": {
			"a failure counts whatever the name: OCM stops counting once its batch is full",
			moment{one("a", "b", "z"), progressive(conc(1)), map[string]standing{"a": todo, "b": todo, "z": failed}},
			[]string{"a"},
			nil,
		},
		"a tolerated failure outside the mandatory groups": {
			"it does not stall the rollout for ever",
			moment{
				[]rollout.Group{group(0, "canary", "a"), group(1, "", "b", "c")},
				budget(clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: canary, RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m"}}, number(2)),
				map[string]standing{"a": done, "b": timedOut, "c": todo},
			},
			nil,
			[]string{"c"},
		},
		"free slots beside a mandatory group": {
			"they are refilled; in OCM anybody in flight outside the mandatory groups stops everything",
			moment{
				[]rollout.Group{group(0, "canary", "a"), group(1, "", "b", "c")},
				progressive(clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: canary, MaxConcurrency: number(2)}),
				map[string]standing{"a": done, "b": moving, "c": todo},
			},
			nil,
			[]string{"c"},
		},
		"a later group of which some are in flight": {
			"the others of it join them; in OCM the first group, long done, is where it stops looking",
			moment{
				[]rollout.Group{group(0, "", "a"), group(1, "", "b", "c")},
				perGroup(clusterv1alpha1.RolloutProgressivePerGroup{}),
				map[string]standing{"a": done, "b": moving, "c": todo},
			},
			nil,
			[]string{"c"},
		},
		"a budget above the number of clusters": {
			"maxFailures 5 of 3 lets all fail; in OCM it lets none",
			moment{
				one("a", "b", "c"), budget(clusterv1alpha1.RolloutProgressive{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m"}}, number(5)),
				map[string]standing{"a": timedOut, "b": todo, "c": todo},
			},
			nil,
			[]string{"b", "c"},
		},
		"gaps in the indexes of groups": {
			"no cluster is lost",
			moment{[]rollout.Group{group(0, "", "a"), group(2, "", "b", "c")}, clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}, map[string]standing{"a": todo, "b": todo, "c": todo}},
			[]string{"a"},
			[]string{"a", "b", "c"},
		},
		"a tolerated timeout lets no group start early": {
			"OCM subtracts it from the clusters of that group which are still moving",
			moment{
				[]rollout.Group{group(0, "", "a1", "a2", "a3", "a4"), group(1, "", "b1")},
				perGroup(clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m", MaxFailures: number(2)}}),
				map[string]standing{"a1": timedOut, "a2": timedOut, "a3": moving, "a4": moving, "b1": todo},
			},
			[]string{"b1"},
			nil,
		},
		"a reported failure frees the slot": {
			"it is at an end, and the deadline adds nothing; in OCM it holds its place in the batch",
			moment{
				one("a", "b"), budget(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(1)}, number(1)),
				map[string]standing{"a": failed, "b": todo},
			},
			nil,
			[]string{"b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, err := tc.in.theirs(t)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.theirs, theirs); diff != "" {
				t.Errorf("OCM does something else by now: %s (-noted +theirs)\n%s", tc.reason, diff)
			}
			ours, _, err := tc.in.ours()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.ours, ours); diff != "" {
				t.Errorf("%s (-want +ours)\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOCMDifferencesRefused: what OCM takes and we refuse, or the other way round.
func TestOCMDifferencesRefused(t *testing.T) {
	groups, states := []rollout.Group{group(0, "", "a", "b", "c")}, map[string]standing{"a": todo, "b": todo, "c": todo}
	all := []string{"a", "b", "c"}
	limit := func(v intstr.IntOrString) clusterv1alpha1.RolloutStrategy {
		return progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: v})
	}
	deadline := func(text string) clusterv1alpha1.RolloutStrategy {
		return progressive(clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: number(1), RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: text},
		})
	}
	for name, tc := range map[string]struct {
		reason   string
		strategy clusterv1alpha1.RolloutStrategy
		theirs   []string // nil: they refuse it
		ours     []string // nil: we refuse it
		want     error
	}{
		"mandatory group misspelt": {
			"a canary is never skipped",
			progressive(clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canarry"})}),
			all, nil, rollout.ErrUnknownDecisionGroup,
		},
		"maxConcurrency 0%": {"0 never means every cluster", limit(percent("0%")), all, nil, rollout.ErrInvalidStrategy},
		"maxConcurrency -1": {"nor does a negative number", limit(number(-1)), all, nil, rollout.ErrInvalidStrategy},
		"the string 2":      {"OCM's schema admits it, and its library then fails", limit(percent("2")), nil, []string{"a", "b"}, nil},
		"beyond the total":  {"more slots than clusters means every cluster, in both", limit(number(9)), all, all, nil},
		"deadline 5mX":      {"the mis-anchored pattern lets it through to fail at run time", deadline("5mX"), nil, nil, rollout.ErrInvalidStrategy},
		"deadline 0s":       {"an instant timeout is a mistake", deadline("0s"), []string{"a"}, nil, rollout.ErrInvalidStrategy},
		"deadline 1h30m":    {"a good duration is good", deadline("1h30m"), []string{"a"}, []string{"a"}, nil},
		"deadline 1.5h":     {"any positive Go duration", deadline("1.5h"), nil, []string{"a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := moment{groups, tc.strategy, states}
			theirs, err := m.theirs(t)
			if (err != nil) != (tc.theirs == nil) || cmp.Diff(tc.theirs, theirs) != "" {
				t.Errorf("OCM does something else by now: %v, %v", theirs, err)
			}
			ours, plan, err := m.ours()
			if !errors.Is(err, tc.want) || cmp.Diff(tc.ours, ours) != "" {
				t.Errorf("%s: %v, %v", tc.reason, ours, err)
			}
			if tc.want != nil && (plan.Phase != v1alpha1.PhaseHeld || plan.Admitted > 0) {
				t.Errorf("it is not held: %s %d", plan.Phase, plan.Admitted)
			}
		})
	}
}

// TestOCMDifferencesOverTime: what one decision cannot show.
func TestOCMDifferencesOverTime(t *testing.T) {
	t.Run("a soak without a transition time ends", func(t *testing.T) {
		// OCM reads a missing time as "now" at every call; ours is in the ledger.
		f := paced(2, progressive(clusterv1alpha1.RolloutProgressive{
			MaxConcurrency: number(1), RolloutConfig: clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: 5 * time.Minute}},
		}))
		if _, err := (rollouttest.Scenario{Fleet: f, Until: time.Hour, Events: []event{at(0, "commit", commit("v2"))}}).Run(0); err != nil {
			t.Fatal(err)
		}
		if f.Policy.Stable != "v2" {
			t.Errorf("it did not end: %+v", f.Ledger)
		}
	})
	t.Run("new content does not inherit the old deadline", func(t *testing.T) {
		f := staged("v1", 2)
		take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", "cluster-01")(f)
		log, err := rollouttest.Scenario{Fleet: f, Until: 50 * time.Minute, Events: []event{
			at(0, "commit v2, stuck", commit("v2")), at(29*time.Minute, "commit v3", both(commit("v3"),
				take(rollouttest.Behaviour{After: 20 * time.Minute}, "v3", "cluster-01"))),
		}}.Run(0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log, "timedout") {
			t.Errorf("v3 was taken for late a minute after it came:\n%s", log)
		}
	})
	t.Run("a batch that is blocked says by whom", func(t *testing.T) {
		f := paced(2, progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(1)}))
		take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", "cluster-01")(f)
		log, err := rollouttest.Scenario{Fleet: f, Until: time.Hour, Events: []event{at(0, "commit", commit("v2"))}}.Run(0)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log, "waiting     cluster-02: waits for a free slot in all: 1 of 1 in flight") {
			t.Errorf("no text says what cluster-02 waits for:\n%s", log)
		}
	})
	t.Run("groups with a limit are stages", func(t *testing.T) {
		f := staged("v1", 6)
		if _, err := (rollouttest.Scenario{Fleet: f, Until: day, Events: []event{at(0, "commit", commit("v2"))}}).Run(0); err != nil {
			t.Fatal(err) // the invariants hold each stage to its own maxConcurrency
		}
	})
}

const day = 24 * time.Hour

// TestOCMAgreement: where OCM's library is right, we decide the same. Left out is what
// TestOCMDifferences lists: clusters in flight that sort after ones to apply, failures
// and timeouts, gaps between groups, and values that OCM reads as its default.
func TestOCMAgreement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := moment{clusters: map[string]standing{}}
		names := rollouttest.Names(rapid.IntRange(1, 12).Draw(t, "clusters"))
		begun := rapid.IntRange(0, len(names)).Draw(t, "begun")
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			m.groups = append(m.groups, group(len(m.groups), ""))
		}
		for i, name := range names {
			// Consecutive names in a group, so that those to apply come last in both orders.
			g := &m.groups[i*len(m.groups)/len(names)]
			g.Clusters = append(g.Clusters, name)
			m.clusters[name] = todo
			if i < begun {
				m.clusters[name] = rapid.SampledFrom([]standing{moving, soaking, done, done}).Draw(t, "standing")
			}
		}
		m.strategy = drawShared(t, m)
		theirs, err := m.theirs(&testing.T{})
		if err != nil {
			t.Fatal(err)
		}
		ours, plan, err := m.ours()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Fatalf("for %+v\n%s\n(-theirs +ours)\n%s", m, plan.Message, diff)
		}
	})
}

// calmOutside reports whether no cluster outside the group is in flight.
func (m moment) calmOutside(g rollout.Group) bool {
	for name, s := range m.clusters {
		if (s == moving || s == soaking) && !slices.Contains(g.Clusters, name) {
			return false
		}
	}
	return true
}

// drawShared is a strategy that means the same to both.
func drawShared(t *rapid.T, m moment) clusterv1alpha1.RolloutStrategy {
	config := clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: 5 * time.Minute}, ProgressDeadline: "30m"}
	types := []clusterv1alpha1.RolloutType{clusterv1alpha1.All, clusterv1alpha1.Progressive}
	var first clusterv1alpha1.MandatoryDecisionGroups
	if m.calmOutside(m.groups[0]) {
		types = append(types, clusterv1alpha1.ProgressivePerGroup)
		if rapid.Bool().Draw(t, "mandatory") {
			first = mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupIndex: 0})
		}
	}
	switch rapid.SampledFrom(types).Draw(t, "type") {
	case clusterv1alpha1.All:
		return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{}}
	case clusterv1alpha1.Progressive:
		v := rapid.SampledFrom([]intstr.IntOrString{number(1), number(2), percent("25%"), percent("50%"), percent("100%")}).Draw(t, "maxConcurrency")
		return progressive(clusterv1alpha1.RolloutProgressive{RolloutConfig: config, MandatoryDecisionGroups: first, MaxConcurrency: v})
	default:
		return perGroup(clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: config, MandatoryDecisionGroups: first})
	}
}
