package rollout_test

import (
	"fmt"
	"math/rand"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// fleetOf is a rollout of n clusters in the middle of its second stage: a canary of
// ten is done, a tenth of the others is in flight, half of those soaking.
func fleetOf(n int) rollout.Input {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-%06d", i)
	}
	in := rollout.Input{
		Now: rollouttest.Epoch(), AddOn: "hello", Stable: "v1", ParkAfter: 10 * time.Minute, RemovalGrace: 5 * time.Minute,
	}
	in.Spec.Target = &v1alpha1.Target{Digest: "v2"}
	in.Spec.Install = installedBy("all")
	in.Spec.Stages = []v1alpha1.Stage{
		{Name: "canary", Placement: ref("canary"), MaxConcurrency: new(number(1))},
		{
			Name: "everyone", Placement: ref("all"), MaxConcurrency: new(percent("10%")), ProgressDeadline: "30m",
			MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute},
		},
	}
	in.Placements = []rollout.Placement{placement("canary", names[:10]...), placement("all", names...)}
	flying := names[10 : 10+n/10]
	for i, name := range names {
		c := rollout.Cluster{
			Name: name, Installed: rollout.Ours, Reachable: true, Running: "v1", UpToDateStable: true,
			Health: rollout.Health{State: rollout.HealthVerified},
		}
		if i < 10+len(flying) {
			c.Running, c.UpToDate, c.UpToDateStable = "v2", true, false
		}
		in.Clusters = append(in.Clusters, c)
	}
	var records []rollout.Record
	for i, name := range names[:10+len(flying)] {
		r := rollout.Record{
			Cluster: name, RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "everyone", State: rollout.Updating},
			Admitted: in.Now.Add(-5 * time.Minute), Since: in.Now.Add(-5 * time.Minute),
		}
		switch {
		case i < 10:
			r.Stage, r.State = "canary", rollout.Done
		case i < 10+len(flying)/2:
			r.State, r.Since = rollout.Soaking, in.Now.Add(-3*time.Minute)
		}
		records = append(records, r)
	}
	keepRecords(&in, records)
	return stored(in)
}

// stored is the input with its ledger in the form in which the planner stores it.
func stored(in rollout.Input) rollout.Input {
	plan, err := rollout.New(in)
	if err != nil {
		panic(err) // the inputs of these benchmarks are valid
	}
	in.Ledger = plan.Ledger
	return in
}

// BenchmarkNew is one plan in the middle of a rollout. It is linear in clusters, and
// under 20 ms at 10,000.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		in := fleetOf(n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rollout.New(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/cluster")
		})
	}
}

// BenchmarkNewAtRest is one plan when there is nothing to do, which is most of them.
func BenchmarkNewAtRest(b *testing.B) {
	in := fleetOf(10000)
	in.Stable, in.Ledger, in.TargetProven, in.Ended = "v2", v1alpha1.Ledger{}, true, true
	for i := range in.Clusters {
		in.Clusters[i].Running, in.Clusters[i].UpToDate, in.Clusters[i].UpToDateStable = "v2", true, true
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rollout.New(in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewShuffled is BenchmarkNew with an input in a random order.
func BenchmarkNewShuffled(b *testing.B) {
	in := rollouttest.Shuffled(fleetOf(10000), rand.New(rand.NewSource(1)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rollout.New(in); err != nil {
			b.Fatal(err)
		}
	}
}
