// Command bench measures what AddonFlow costs on an embedded hub with simulated
// clusters whose agents answer at once, against the floor: a loop that makes the
// writes which one content change costs at the least, and nothing else.
//
//	go run ./test/bench -clusters 1000 -operator bin/addonflow
//
// It prints times as ratios to the floor of the same run, because machines differ
// and are noisy; the CPU of operator, API server and etcd, because what the operator
// saves is little if the hub spends ten times as much; and the operator's requests by
// verb and resource as the API server counted them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/addonflow/addonflow/test/demo"
	"github.com/addonflow/addonflow/test/fleet"
	"github.com/addonflow/addonflow/test/freeport"
)

// settings are what the flags say.
type settings struct {
	clusters                int
	operator, profile, heap string
	steps                   int
	heartbeat               time.Duration
	out, shape              string
	// addOns and atOnce are of the shape with many add-ons.
	addOns, atOnce int
}

func main() {
	var s settings
	flag.IntVar(&s.clusters, "clusters", 1000, "number of simulated clusters")
	flag.StringVar(&s.operator, "operator", "bin/addonflow", "path of the operator's binary")
	flag.StringVar(&s.profile, "profile", "", "file for a CPU profile of the operator during the upgrade, to be read with `go tool pprof`")
	flag.StringVar(&s.heap, "heap", "", "file for a profile of what the operator keeps at rest")
	flag.IntVar(&s.steps, "steps", len(allSteps()), "how many of install, upgrade, revert, progressive upgrade to measure; less than all leaves out pushes and floor")
	flag.DurationVar(&s.heartbeat, "heartbeat", 0, "write the status of every ManagedCluster once in this time; 0: never")
	flag.StringVar(&s.out, "out", "", "file for the figures, as JSON")
	flag.StringVar(&s.shape, "shape", shapeFleet, "fleet: every cluster at once; stages: 100 clusters in stages of 20, 30 and 50, half of a stage at a time; addons: -addons on each cluster, -at-once of them upgraded at the same time")
	flag.IntVar(&s.addOns, "addons", 100, "number of add-ons, for -shape addons")
	flag.IntVar(&s.atOnce, "at-once", 20, "how many add-ons each commit moves, for -shape addons")
	limit := flag.Duration("timeout", 10*time.Minute, "bound on the whole run")
	sizes := flag.String("scale", "", "numbers of clusters, with commas: measure the growth between them, and write it into -document; what is in -state is not measured again")
	state := flag.String("state", "bin/scale", "directory for the figures of sizes that were measured")
	document := flag.String("document", "docs/scale.md", "document with the figures of -scale")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard()) // what the bench's own client does is of no interest
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, *limit)
	if s.shape == shapeStages {
		s.clusters = stagedClusters
	}
	var err error
	if *sizes == "" {
		err = run(ctx, s)
	} else {
		err = scale(ctx, s, *sizes, *state, *document)
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

// run measures AddonFlow first and then the floor on the very objects it wrote.
func run(ctx context.Context, s settings) error {
	fmt.Printf("AddonFlow on an embedded hub, %d clusters, agents answer at once\n", s.clusters)
	names := make([]string, 0, s.clusters)
	for _, c := range fleet.Numbered("cluster", s.clusters) {
		names = append(names, c.Name)
	}
	options := demo.WorldOptions{
		Binary: s.operator, Clusters: names, Canaries: names[:1], Output: os.Stdout,
		Fleet: fleet.Options{WithoutFinalizer: true},
	}
	profiler, err := newProfiler(ctx)
	if err != nil {
		return err
	}
	hookAddress, err := freeport.Address(ctx)
	if err != nil {
		return err
	}
	pagesAddress, err := freeport.Address(ctx)
	if err != nil {
		return err
	}
	options.OperatorFlags = append(profiler.flags(), "--webhook-addr="+hookAddress, "--dashboard-addr="+pagesAddress)
	w, err := demo.StartWorld(ctx, options)
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	b, err := newBench(ctx, w, names)
	if err != nil {
		return err
	}
	b.profiler, b.profile, b.operator, b.hookAddress, b.pagesAddress = profiler, s.profile, commandName(s.operator), hookAddress, pagesAddress
	b.heap, b.steps = s.heap, allSteps()[:s.steps]
	b.pushes = s.steps == len(allSteps())
	b.start = func() error { return w.StartOperator(options) }
	if err := b.start(); err != nil {
		return err
	}
	beating, cease := context.WithCancel(ctx)
	defer cease()
	b.beats = beat(beating, w.Client, names, s.heartbeat)
	measure := b.measureAll
	switch s.shape {
	case shapeStages:
		measure = b.measureStages
	case shapeAddOns:
		measure = func(ctx context.Context) error { return b.measureAddOns(ctx, s.addOns, s.atOnce) }
	}
	if err := measure(ctx); err != nil {
		return fmt.Errorf("%w\nthe operator's last words:\n%s", err, w.Operator.Tail(5))
	}
	switch s.shape {
	case shapeStages:
		b.printStages(os.Stdout)
		return nil
	case shapeAddOns:
		b.printAddOns(os.Stdout, s.addOns, s.atOnce)
		return nil
	}
	if err := w.Operator.Stop(); err != nil {
		return err
	}
	cease()
	if b.pushes {
		if err := b.measureFloor(ctx); err != nil {
			return err
		}
	}
	b.print(os.Stdout)
	if s.out == "" {
		return nil
	}
	f, err := b.figures(s)
	if err != nil {
		return err
	}
	return f.store(s.out)
}
