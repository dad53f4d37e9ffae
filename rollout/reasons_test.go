package rollout_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// TestReasons has what the properties found to be told wrongly: each cluster is told what
// it waits for, and nothing else.
func TestReasons(t *testing.T) {
	const c1, c3, c4, c5 = "cluster-01", "cluster-03", "cluster-04", "cluster-05"
	twoSlots := func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(2)) }
	held := func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(0)) }
	for name, tc := range map[string]struct {
		reason string
		change []change
		want   map[string]string
	}{
		"a joiner without a slot": {
			reason: "joiners start at the stable revision, whatever keeps the others from the target: it waits for a slot, and the others' are counted",
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
			change: []change{canaryDone, admitted("v1.5", time.Minute, c3), on(c3, runs("v1.5", rollout.HealthFailed), lostFor(time.Second))},
			want:   map[string]string{c3: "Deployment/agent: as told"},
		},
		"failed at the last content": {
			reason: "the target is its next chance",
			change: []change{admitted("v1.5", time.Minute, c3), on(c3, runs("v1.5", rollout.HealthFailed))},
			want:   map[string]string{c3: "waits for canary to complete"},
		},
		"words of somebody else's": {
			reason: "they are one line, cut to length",
			change: []change{func(in *rollout.Input) { in.TargetMissing = "it is gone,\n" + strings.Repeat("and gone ", 100) }},
			want:   map[string]string{c1: "it is gone, " + strings.Repeat("and gone ", 20) + "and g...: nobody is admitted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, rolling(6), tc.change...)
			for name, want := range tc.want {
				if c, _ := plan.Why(name); c.Reason != want {
					t.Errorf("%s: %s is told %q, want %q", tc.reason, name, c.Reason, want)
				}
			}
		})
	}
}

// TestUnknownGroupHoldsEverybody: with a mandatory group that is unknown nobody is admitted,
// neither in the track of another placement nor to join at the stable revision.
func TestUnknownGroupHoldsEverybody(t *testing.T) {
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
			t.Errorf("%s is told %q", c.Name, c.Reason)
		}
	}
}

// TestJoiningTimesAreRoundedUp: where a reservation of everybody is broken up, whoever came
// after it has a clock of its own, which the ledger notes no earlier than it began.
func TestJoiningTimesAreRoundedUp(t *testing.T) {
	in := rolling(2)
	wholeStrategy(&in)
	whole(time.Hour)(&in)
	joined := now().Add(-time.Minute + 700*time.Millisecond)
	on("cluster-01", runs("v2", rollout.HealthProgressing), func(c *rollout.Cluster) { c.JoinedAt = joined })(&in)
	in.Ledger.Waves[0].AdmittedAt = metav1.NewTime(now().Add(-2 * time.Minute))
	in.Spec.Target.Digest = "v3"
	on("cluster-01", func(c *rollout.Cluster) { c.UpToDate, c.Reachable, c.LostSince = false, false, now().Add(-time.Second) })(&in)
	plan := planned(t, in)
	admissions, err := rollout.Admissions(plan.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range admissions {
		if a.Cluster == "cluster-01" && a.AdmittedAt.Before(joined) {
			t.Errorf("its clock begins at %s, and it joined at %s", a.AdmittedAt, joined)
		}
	}
	if len(admissions) < 2 {
		t.Fatalf("the reservation was not broken up: %+v", admissions)
	}
}
