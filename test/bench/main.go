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

func main() {
	clusters := flag.Int("clusters", 1000, "number of simulated clusters")
	operator := flag.String("operator", "bin/addonflow", "path of the operator's binary")
	limit := flag.Duration("timeout", 10*time.Minute, "bound on the whole run")
	profile := flag.String("profile", "", "file for a CPU profile of the operator during the upgrade, to be read with `go tool pprof`")
	heap := flag.String("heap", "", "file for a profile of what the operator keeps at rest")
	only := flag.Int("steps", len(allSteps()), "how many steps of install, upgrade, revert, progressive upgrade to measure; less than all leaves out pushes and floor")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard()) // what the bench's own client does is of no interest
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, *limit)
	err := run(ctx, *clusters, *operator, *profile, *heap, *only)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

// run measures AddonFlow first and then the floor on the very objects it wrote.
func run(ctx context.Context, n int, binary, profile, heap string, steps int) error {
	fmt.Printf("AddonFlow on an embedded hub, %d clusters, agents answer at once\n", n)
	names := make([]string, 0, n)
	for _, c := range fleet.Numbered("cluster", n) {
		names = append(names, c.Name)
	}
	options := demo.WorldOptions{
		Binary: binary, Clusters: names, Canaries: names[:1], Output: os.Stdout,
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
	options.OperatorFlags = append(profiler.flags(), "--webhook-addr="+hookAddress)
	w, err := demo.StartWorld(ctx, options)
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	b, err := newBench(ctx, w, names)
	if err != nil {
		return err
	}
	b.profiler, b.profile, b.operator, b.hookAddress = profiler, profile, commandName(binary), hookAddress
	b.heap, b.steps = heap, allSteps()[:steps]
	b.pushes = steps == len(allSteps())
	if err := w.StartOperator(options); err != nil {
		return err
	}
	if err := b.measureAll(ctx); err != nil {
		return fmt.Errorf("%w\nthe operator's last words:\n%s", err, w.Operator.Tail(5))
	}
	if err := w.Operator.Stop(); err != nil {
		return err
	}
	if b.pushes {
		if err := b.measureFloor(ctx); err != nil {
			return err
		}
	}
	b.print(os.Stdout)
	return nil
}
