package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// TestReasons: the reason of each cluster says what it waits for, and nothing else.
func TestReasons(t *testing.T) {
	const c1, c2, c3, c4, c5 = "cluster-01", "cluster-02", "cluster-03", "cluster-04", "cluster-05"
	twoSlots := func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(2)) }
	held := func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(0)) }
	crashing := func(c *rollout.Cluster) { c.Health.Reason = "CrashLoopBackOff" }
	for name, tc := range map[string]struct {
		reason string
		change []change
		want   map[string]string
	}{
		"a joiner without a slot": {
			reason: "joiners start at the stable revision, whatever holds the target: it waits for a slot",
			change: []change{twoSlots, on(c3, nothing), on(c4, nothing), on(c5, nothing)},
			want: map[string]string{
				c4: "joins at the stable revision", c5: "waits for a free slot in everyone: 2 of 2 in flight", "cluster-06": "waits for canary to complete",
			},
		},
		"a joiner in a stage held at 0": {
			reason: "there is no slot to wait for",
			change: []change{held, canaryDone, on(c3, nothing)},
			want:   map[string]string{c3: "held: maxConcurrency of stage everyone is 0"},
		},
		"failed at the last content, and lost": {
			reason: "a slot would be no use to it",
			change: []change{canaryDone, admitted("v1.5", time.Minute, c3), on(c3, runs("v1.5", rollout.HealthFailed), offline)},
			want:   map[string]string{c3: "not available; admitted on return"},
		},
		"failed at the last content": {
			reason: "the target is its next chance",
			change: []change{admitted("v1.5", time.Minute, c3), on(c3, runs("v1.5", rollout.HealthFailed))},
			want:   map[string]string{c3: "waits for canary to complete"},
		},
		"two that report the same failure, one of them since before its last admission": {
			reason: "the same failure has the same text",
			change: []change{
				recorded(rollout.Failed, "v2", time.Minute, time.Minute, c1, c2), on(c1, runs("v2", rollout.HealthFailed), crashing),
				on(c2, runs("v2", rollout.HealthFailed), crashing, func(c *rollout.Cluster) { c.Health.BadSince = now().Add(-time.Hour) }),
			},
			want: map[string]string{c1: "CrashLoopBackOff", c2: "CrashLoopBackOff"},
		},
		"a cluster without a record that leaves": {
			reason: "it waits for its removal and not for its admission",
			change: []change{func(in *rollout.Input) {
				in.Spec.Stages, in.Spec.Install = nil, installedBy("all")
				in.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(1)})
				in.Placements = []rollout.Placement{placement("all", c1, c2, c3, c4)}
			}},
			want: map[string]string{c5: "it left the install set: grace period until 12:05 UTC"},
		},
		"a long text of several lines": {
			reason: "it is made one line and cut to length",
			change: []change{func(in *rollout.Input) { in.TargetMissing = "it is gone,\n" + strings.Repeat("and gone ", 100) }},
			want:   map[string]string{c1: "it is gone, " + strings.Repeat("and gone ", 20) + "and g...: no cluster is admitted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, rolling(6), tc.change...)
			for name, want := range tc.want {
				if c, _ := plan.Why(name); c.Reason != want {
					t.Errorf("%s: the reason of %s is %q, want %q", tc.reason, name, c.Reason, want)
				}
			}
		})
	}
}

// TestUnknownGroupHoldsEveryCluster: with an unknown mandatory group no cluster is admitted,
// neither in the track of another placement nor to join at the stable revision.
func TestUnknownGroupHoldsEveryCluster(t *testing.T) {
	f := rollouttest.NewFleet("v1", rollouttest.Names(4)...)
	f.Policy.Spec.Install = installedBy("first", "second")
	f.Policy.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{
		MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canaries"}),
	})
	f.Policy.Placements = []rollout.Placement{
		grouped("first", group(0, "canary", "cluster-01", "cluster-02")), placement("second", "cluster-03", "cluster-04"),
	}
	f.SetTarget("v2")
	in := f.Input()
	on("cluster-02", nothing)(&in)
	plan, err := rollout.New(in)
	if !errors.Is(err, rollout.ErrUnknownDecisionGroup) || len(acted(plan, rollout.Move)) > 0 || plan.Admitted > 0 {
		t.Fatalf("%v: %d admitted, %+v", err, plan.Admitted, plan.Actions)
	}
	for _, c := range plan.Clusters {
		if c.State == rollout.Waiting && !strings.HasPrefix(c.Reason, "held: unknown mandatory decision group") {
			t.Errorf("the reason of %s is %q", c.Name, c.Reason)
		}
	}
}

// TestHaltWithinTheBudgetSaysThatNoClusterIsVerified: all clusters of a stage failed, and its budget allows that. The
// budget is not why the stage is halted.
func TestHaltWithinTheBudgetSaysThatNoClusterIsVerified(t *testing.T) {
	checkMoment(t, momentCase{
		change: []change{
			func(in *rollout.Input) { in.Spec.Stages[0].MaxFailures = new(number(5)) },
			recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1, c2), on(c1, runs("v2", rollout.HealthFailed)), on(c2, runs("v2", rollout.HealthFailed)),
		},
		want: map[string]string{c1: "Failed v2", c2: "Failed v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		reasons: map[string]string{c3: "halted: 2 clusters failed in canary, where no cluster is verified"},
	})
}
