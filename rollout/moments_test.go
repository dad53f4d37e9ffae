package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// momentCase changes one input, plans once, and looks at some of the clusters.
type momentCase struct {
	reason string
	change []change
	want   map[string]string // "State revision" of the clusters in question
	// reasons of clusters begin with these texts.
	reasons map[string]string
	phase   v1alpha1.Phase // "" where it does not matter
	says    string         // a part of the message
	silent  string         // no part of the message; "" where it does not matter
	halted  bool
	// outcome is the status of the commit; "" where it does not matter.
	outcome rollout.Outcome
}

type change func(*rollout.Input)

// now is the time of every moment.
func now() time.Time { return rollouttest.Epoch() }

// rolling is staged("v1", n) with v2 as its target, before any cluster is admitted.
func rolling(n int) rollout.Input {
	f := staged("v1", n)
	f.SetTarget("v2")
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
		c.Health = rollout.Health{State: health, Reason: "Deployment/agent: 1 of 2 ready"}
	}
}

// unapplied makes it a cluster whose agent cannot apply a revision.
func unapplied(revision string) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) {
		runs(revision, rollout.HealthUnknown)(c)
		c.Health.NotApplied = "Deployment imm: field is\nimmutable"
	}
}

// seenFor says how long ago the operator first saw the apply error.
func seenFor(ago time.Duration) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) { c.Health.BadSince = now().Add(-ago) }
}

func verified(revision string) func(*rollout.Cluster) { return runs(revision, rollout.HealthVerified) }

// offline makes a cluster not available.
func offline(c *rollout.Cluster) { c.Reachable = false }

// availableChanged is when Available last changed, by the clock of the managed cluster.
func availableChanged(ago time.Duration) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) { c.AvailableChanged = now().Add(-ago) }
}

// upToDate makes it a cluster for which the target renders what it runs.
func upToDate(c *rollout.Cluster) { c.UpToDate = true }

// edited makes it a cluster whose own inputs changed after its works were written.
func edited(c *rollout.Cluster) { c.UpToDate = false }

// away holds a cluster back for a reason of its own.
func away(c *rollout.Cluster) { c.Reachable, c.Away = false, "its configuration is missing" }

// held holds a cluster without end; heldUntil, for a while.
func held(c *rollout.Cluster) { c.Held = true }

func heldUntil(after time.Duration) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) { c.Held, c.HeldUntil = true, now().Add(after) }
}

// nothing makes it a cluster that has no work yet.
func nothing(c *rollout.Cluster) {
	c.Installed, c.Running, c.UpToDate, c.UpToDateStable, c.Health = rollout.NotInstalled, "", false, false, rollout.Health{}
}

// recorded gives clusters a record, in the stage of canaryFirst that selects them. They
// were admitted and entered the state some time ago.
func recorded(state rollout.State, revision string, admitted, since time.Duration, names ...string) change {
	return func(in *rollout.Input) {
		records := recordsOf(in)
		for _, name := range names {
			stage := "everyone"
			if name == "cluster-01" || name == "cluster-02" {
				stage = "canary"
			}
			records = append(slices.DeleteFunc(records, func(r rollout.Record) bool { return r.Cluster == name }), rollout.Record{
				Cluster: name, RecordKey: v1alpha1.RecordKey{Revision: revision, Stage: stage, State: state},
				Admitted: now().Add(-admitted), Since: now().Add(-since),
			})
		}
		keepRecords(in, records)
	}
}

func recordsOf(in *rollout.Input) []rollout.Record {
	records, err := rollout.Records(in.Ledger)
	if err != nil {
		panic(err) // a ledger of these tests is well-formed
	}
	return records
}

func keepRecords(in *rollout.Input, records []rollout.Record) {
	in.Ledger = rollouttest.LedgerOf(records...)
}

// admitted clusters hold a slot. Their works are written or not, as the cluster says.
func admitted(revision string, ago time.Duration, names ...string) change {
	return recorded(rollout.Admitted, revision, ago, ago, names...)
}

// updating clusters have their works since some time ago.
func updating(revision string, ago time.Duration, names ...string) change {
	return recorded(rollout.Updating, revision, ago, ago, names...)
}

// inSoak says that clusters were admitted, and verified, some time ago.
func inSoak(revision string, admitted, since time.Duration, names ...string) change {
	return recorded(rollout.Soaking, revision, admitted, since, names...)
}

// lost says that clusters were admitted to v2, and lost, some time ago.
func lost(admitted, since time.Duration, names ...string) change {
	return func(in *rollout.Input) {
		recorded(rollout.Lost, "v2", admitted, since, names...)(in)
		for _, name := range names {
			on(name, offline)(in)
		}
	}
}

// parked clusters were lost, and hold no slot.
func parked(revision string, names ...string) change {
	return recorded(rollout.Parked, revision, time.Hour, 30*time.Minute, names...)
}

// finished clusters are verified and soaked with v2.
func finished(names ...string) change {
	return func(in *rollout.Input) {
		recorded(rollout.Done, "v2", time.Hour, 30*time.Minute, names...)(in)
		for _, name := range names {
			on(name, verified("v2"))(in)
		}
	}
}

// inStage says that every cluster of the ledger was admitted in the stage.
func inStage(name string) change {
	return func(in *rollout.Input) {
		records := recordsOf(in)
		for i := range records {
			records[i].Stage = name
		}
		keepRecords(in, records)
	}
}

func canaryDone(in *rollout.Input) { finished("cluster-01", "cluster-02")(in) }

// targetProven says that a rollout of v2 ended Succeeded here.
func targetProven(in *rollout.Input) {
	in.Stable, in.TargetProven = "v2", true
	for i := range in.Clusters {
		in.Clusters[i].UpToDateStable = in.Clusters[i].UpToDate
	}
}

// ended says that the rollout of v2 under this policy ended Succeeded.
func ended(in *rollout.Input) {
	targetProven(in)
	in.Ended = true
}

// revert says that v2 succeeded before it became the target again.
func revert(in *rollout.Input) { in.TargetProven, in.Reverting = true, true }

// rollback says that the operator reverts, and not Git.
func rollback(in *rollout.Input) {
	revert(in)
	in.RollingBack = true
}

// oneAtATime limits each stage to one cluster in flight.
func oneAtATime(in *rollout.Input) {
	for i := range in.Spec.Stages {
		in.Spec.Stages[i].MaxConcurrency = new(number(1))
	}
}

func TestMoments(t *testing.T) {
	for name, tc := range momentCases() {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

func checkMoment(t *testing.T, tc momentCase) {
	t.Helper()
	plan := planned(t, rolling(6), tc.change...)
	got := map[string]string{}
	for name := range tc.want {
		c, ok := plan.Why(name)
		if !ok {
			t.Fatalf("the plan does not know %s", name)
		}
		got[name] = strings.TrimSpace(string(c.State) + " " + c.Revision)
	}
	for name, want := range tc.reasons {
		if c, _ := plan.Why(name); !strings.HasPrefix(c.Reason, want) {
			t.Errorf("%s: %s has reason %q, want %q", tc.reason, name, c.Reason, want)
		}
	}
	c := plan.Counts
	// Clusters that left after they failed are counted as well, and are in no total.
	if sum := c.Updated + c.InFlight + c.Failed + c.Parked + c.Held + c.Waiting; sum < c.Total || sum-c.Failed > c.Total {
		t.Errorf("%d of %d clusters are counted: %+v", sum, c.Total, c)
	}
	if diff := cmp.Diff(tc.want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s%s: %s", tc.reason, diff, plan.Phase, plan.Message)
	}
	failed := int32(0)
	for _, st := range plan.Stages {
		failed += st.Counts.Failed
		if st.Counts.Updated > st.Counts.Total {
			t.Errorf("%s: stage %s says %d/%d", tc.reason, st.Name, st.Counts.Updated, st.Counts.Total)
		}
	}
	// A failure of a stage that is gone counts in every track.
	if plan.Counts.Removing == 0 && plan.Counts.Failed > failed {
		t.Errorf("%s: %d failed, and %d in the stages; message %q", tc.reason, plan.Counts.Failed, failed, plan.Message)
	}
	if tc.phase != "" && plan.Phase != tc.phase {
		t.Errorf("%s: phase %s, want %s; message %q", tc.reason, plan.Phase, tc.phase, plan.Message)
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
}

// strategyAll replaces the stages by strategy All with a deadline. Clusters that have a
// record were admitted under it.
func strategyAll(in *rollout.Input) {
	in.Spec.Stages = nil
	in.Spec.Strategy = &v1alpha1.RolloutStrategy{
		Type: v1alpha1.StrategyUpdateAll,
		All:  &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m"}},
	}
	inStage("all")(in)
}

// allAdmitted admits every cluster to v2.
func allAdmitted(ago time.Duration) change {
	return func(in *rollout.Input) {
		for _, c := range in.Clusters {
			admitted("v2", ago, c.Name)(in)
		}
	}
}
