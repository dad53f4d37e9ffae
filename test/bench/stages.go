package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
)

const (
	// shapeFleet is every cluster at once, shapeStages the shape that KubeFleet published figures for.
	shapeFleet, shapeStages = "fleet", "stages"
	// stagedClusters, stagedRuns: 100 clusters in three stages, upgraded so often.
	stagedClusters, stagedRuns = 100, 10
	// promisedStaged is the p90 that is promised.
	promisedStaged = 5 * time.Second
)

// stagesOf are how many clusters each stage has.
func stagesOf() []int { return []int{20, 30, 50} }

// stagedPace are the stages, half of each at a time, without a soak.
func stagedPace() string {
	lines := []string{"  stages:"}
	for i := range stagesOf() {
		lines = append(lines,
			fmt.Sprintf("  - name: stage-%d", i+1), fmt.Sprintf("    placement: {namespace: %s, name: stage-%d}", demo.Namespace, i+1), "    maxConcurrency: 50%")
	}
	return strings.Join(lines, "\n")
}

// measureStages upgrades the clusters stage by stage.
func (b *bench) measureStages(ctx context.Context) error {
	first := 0
	for i, n := range stagesOf() {
		p := fleet.Placement{Namespace: demo.Namespace, Name: fmt.Sprintf("stage-%d", i+1), Clusters: b.names[first : first+n]}
		if err := b.world.Fleet.Place(ctx, p); err != nil {
			return err
		}
		first += n
	}
	if err := b.idle(ctx); err != nil {
		return err
	}
	for i := range 1 + stagedRuns {
		r, err := b.measure(ctx, fmt.Sprintf("v%d", i), stagedPace())
		if err != nil {
			return fmt.Errorf("cannot measure the rollout of v%d: %w", i, err)
		}
		if i > 0 { // the first is the install
			b.staged = append(b.staged, r.took)
		}
		fmt.Printf("  ✔ %-34s %4.1fs\n", fmt.Sprintf("v%d", i), r.took.Seconds())
	}
	return nil
}

// percentile is the smallest of the times that a share of them does not exceed.
func percentile(times []time.Duration, share float64) time.Duration {
	s := slices.Sorted(slices.Values(times))
	return s[max(0, int(math.Ceil(share*float64(len(s))))-1)]
}

// printStages prints the times of the staged upgrades.
func (b *bench) printStages(w io.Writer) {
	p90 := percentile(b.staged, 0.9)
	fmt.Fprintf(w, "\n%d clusters in stages of %v, half of a stage at a time, from the request to look at Git to the last add-on done:\n"+
		"%s p50 %.1fs, p90 %.1fs, slowest %.1fs of %d; promised: p90 %s\n", len(b.names), stagesOf(),
		mark(p90 <= promisedStaged), percentile(b.staged, 0.5).Seconds(), p90.Seconds(), slices.Max(b.staged).Seconds(), len(b.staged), promisedStaged)
}
