package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// A moment table changes one input, plans once, and looks at some of the clusters.
type momentCase struct {
	reason string
	change []change
	want   map[string]string // "State revision" of the clusters in question
	phase  v1alpha1.Phase    // "" where it does not matter
	says   string            // a part of the message
	silent string            // no part of the message; "" where it does not matter
	halted bool
	// outcome is what the commit is told; "" where it does not matter.
	outcome rollout.Outcome
}

type change func(*rollout.Input)

// now is the time of every moment.
func now() time.Time { return rollouttest.Epoch() }

// rolling is staged("v1", n) with v2 as its target, in the middle of nothing.
func rolling(n int) rollout.Input {
	f := staged("v1", n)
	f.SetTarget("v2")
	f.Policy.Previous = rollout.Previous{Target: "v2", Phase: v1alpha1.PhaseProgressing, Stages: []string{"canary", "everyone"}}
	return f.Input()
}

// planned is the plan for an input with changes.
func planned(t *testing.T, in rollout.Input, changes ...change) rollout.Plan {
	t.Helper()
	for _, c := range changes {
		c(&in)
	}
	plan, err := rollout.New(in)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func on(name string, do ...func(*rollout.Cluster)) change {
	return func(in *rollout.Input) {
		for i := range in.Clusters {
			if in.Clusters[i].Name == name {
				for _, d := range do {
					d(&in.Clusters[i])
				}
			}
		}
	}
}

// runs makes a cluster run a revision, with the health.
func runs(revision string, health rollout.HealthState) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) {
		c.Running, c.UpToDate, c.UpToDateStable = revision, revision == "v2", revision == "v1"
		c.Health = rollout.Health{State: health, Reason: "Deployment/agent: as told"}
	}
}

// unapplied makes it one whose agent could not apply a revision.
func unapplied(revision string) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) {
		runs(revision, rollout.HealthUnknown)(c)
		c.Health.NotApplied = "Deployment imm: field is\nimmutable"
	}
}

func verified(revision string) func(*rollout.Cluster) { return runs(revision, rollout.HealthVerified) }

func lostFor(d time.Duration) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) { c.Reachable, c.LostSince = false, now().Add(-d) }
}

// away is held back by something of its own.
func away(c *rollout.Cluster) { c.Reachable, c.Away = false, "its configuration is missing" }

// nothing makes a cluster one that has no work yet.
func nothing(c *rollout.Cluster) {
	c.Installed, c.Running, c.UpToDate, c.UpToDateStable, c.Health = rollout.NotInstalled, "", false, false, rollout.Health{}
}

// admitted reserves clusters, some time ago.
func admitted(revision string, ago time.Duration, names ...string) change {
	return func(in *rollout.Input) {
		in.Ledger.Waves = append(in.Ledger.Waves, v1alpha1.Wave{
			Revision: revision, AdmittedAt: metav1.NewTime(now().Add(-ago)), Clusters: names,
		})
	}
}

// inCanary says that everybody in the ledger was admitted in the canary stage.
func inCanary(in *rollout.Input) {
	for i := range in.Ledger.Waves {
		in.Ledger.Waves[i].Stage = "canary"
	}
	for i := range in.Ledger.Parked {
		in.Ledger.Parked[i].Stage = "canary"
	}
}

// soakingSince verifies everybody in the last wave, some time ago.
func soakingSince(ago time.Duration) change {
	return func(in *rollout.Input) {
		w := &in.Ledger.Waves[len(in.Ledger.Waves)-1]
		for range w.Clusters {
			w.Verified = []v1alpha1.VerifiedAt{{At: metav1.NewTime(now().Add(-ago)), Positions: "0"}}
		}
	}
}

func parked(revision string, names ...string) change {
	return func(in *rollout.Input) {
		in.Ledger.Parked = append(in.Ledger.Parked, v1alpha1.ParkedClusters{Revision: revision, Clusters: names})
	}
}

func canaryDone(in *rollout.Input) {
	on("cluster-01", verified("v2"))(in)
	on("cluster-02", verified("v2"))(in)
}

func TestMoments(t *testing.T) {
	for name, tc := range momentCases() {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, rolling(6), tc.change...)
			got := map[string]string{}
			for name := range tc.want {
				c, ok := plan.Why(name)
				if !ok {
					t.Fatalf("the plan does not know %s", name)
				}
				got[name] = strings.TrimSpace(string(c.State) + " " + c.Revision)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s%s: %s", tc.reason, diff, plan.Phase, plan.Message)
			}
			if tc.phase != "" && plan.Phase != tc.phase {
				t.Errorf("%s: phase %s, want %s", tc.reason, plan.Phase, tc.phase)
			}
			if tc.outcome != "" && plan.Outcome != tc.outcome {
				t.Errorf("%s: outcome %s, want %s", tc.reason, plan.Outcome, tc.outcome)
			}
			if tc.silent != "" && strings.Contains(plan.Message, tc.silent) {
				t.Errorf("%s: message %q, with %q in it", tc.reason, plan.Message, tc.silent)
			}
			if !strings.Contains(plan.Message, tc.says) || plan.Halted != tc.halted {
				t.Errorf("%s: message %q, want %q in it; halted %v", tc.reason, plan.Message, tc.says, plan.Halted)
			}
		})
	}
}

// wholeStrategy replaces the stages by strategy All with a deadline.
func wholeStrategy(in *rollout.Input) {
	in.Spec.Stages = nil
	in.Spec.Strategy = &v1alpha1.RolloutStrategy{
		Type: v1alpha1.StrategyUpdateAll,
		All:  &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m"}},
	}
}

// whole reserves the step of strategy All for v2.
func whole(ago time.Duration) change {
	return func(in *rollout.Input) {
		in.Ledger.Waves = append(in.Ledger.Waves, v1alpha1.Wave{
			Revision: "v2", Stage: "all", AdmittedAt: metav1.NewTime(now().Add(-ago)), All: true,
		})
	}
}
