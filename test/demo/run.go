package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/addonflow/addonflow/test/fleet"
)

const (
	// The deadline of a step, plus some time per cluster: far more than it takes, to end a step
	// that hangs.
	stepDeadline       = 3 * time.Minute
	deadlinePerCluster = 250 * time.Millisecond
	// Times at speed 1.
	usualSoak     = 5 * time.Second
	usualLatency  = 300 * time.Millisecond
	usualPatience = 3 * time.Second
	// canaryCount is how many clusters the placement canary selects.
	canaryCount = 2
	// fewest clusters for the story: two canaries, and others in two waves.
	fewest = 4
)

// ErrOptions is returned for invalid options.
var ErrOptions = errors.New("invalid option")

// Options of the show.
type Options struct {
	// Binary is addonflow, operator and user's tool in one.
	Binary string
	// Clusters is how many managed clusters are simulated.
	Clusters int
	// Speed divides the soak and the latency of the simulated clusters.
	Speed float64
	// Keep keeps everything running after the last step, until ctx ends.
	Keep bool
	// Out receives the story.
	Out io.Writer
}

// soak is the canaries' minSuccessTime, in tenths of a second as a person would write it.
func (o Options) soak() time.Duration {
	return max(o.scaled(usualSoak).Round(100*time.Millisecond), 100*time.Millisecond)
}

func (o Options) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / o.Speed)
}

// deadline of one step.
func (o Options) deadline() time.Duration {
	return stepDeadline + time.Duration(o.Clusters)*deadlinePerCluster
}

// validate refuses options that the show cannot run with.
func (o Options) validate() error {
	switch {
	case o.Clusters < fewest:
		return fmt.Errorf("%w: %d clusters are too few to show waves; at least %d", ErrOptions, o.Clusters, fewest)
	case o.Speed <= 0:
		return fmt.Errorf("%w: speed %g; more than 0", ErrOptions, o.Speed)
	}
	return nil
}

// clusterNames spreads n clusters over three regions: eu-01, us-01, ap-01, eu-02 ...
func clusterNames(n int) []string {
	regions := []string{"eu", "us", "ap"}
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%02d", regions[i%len(regions)], i/len(regions)+1))
	}
	return names
}

// Run shows the story from an empty machine to an automatic rollback. Its error is the first wrong
// state; explanations were printed before. Everything it started has ended when it returns.
func Run(ctx context.Context, o Options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	names := clusterNames(o.Clusters)
	world := WorldOptions{
		Binary: o.Binary, Clusters: names, Canaries: names[:canaryCount], Output: o.Out,
		Fleet: fleet.Options{Latency: o.scaled(usualLatency), DeadlineAfter: o.scaled(usualPatience)},
		// The service that measures is on this machine.
		OperatorFlags: []string{"--gate-allow-http", "--gate-allow-loopback", "--enable-leader-election"}, // addonflow check asks for its Lease
	}
	fmt.Fprintf(o.Out, "AddonFlow: a hub, %d clusters, a Git repository and a forge on this machine\n", o.Clusters)
	w, err := StartWorld(ctx, world)
	if err != nil {
		return err
	}
	defer func() {
		// After Ctrl-C in a terminal the hub's servers got the signal as well.
		if stopped := w.Stop(); ctx.Err() == nil {
			err = errors.Join(err, stopped)
		}
	}()
	if err := perform(ctx, w, world, o); err != nil {
		return err
	}
	if o.Keep {
		return stay(ctx, w, o)
	}
	return nil
}

// perform starts the operator and plays the steps.
func perform(ctx context.Context, w *World, world WorldOptions, o Options) error {
	if err := w.StartOperator(world); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "  ✔ the operator: %s controller, process %d\n", ToolName, w.Operator.PID())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-w.Operator.Done():
			cancel(endedItself(w.Operator))
		case <-ctx.Done():
		}
	}()
	recorder, err := Record(ctx, w.Client)
	if err != nil {
		return err
	}
	s := &show{Options: o, world: w, recorder: recorder, clusters: world.Clusters, canaries: world.Canaries}
	return s.play(ctx)
}

// ErrOperatorEnded is returned if the operator ends by itself.
var ErrOperatorEnded = errors.New("the operator ended by itself")

// endedItself says how an operator ended.
func endedItself(o *Operator) error {
	if err := o.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrOperatorEnded, err)
	}
	return ErrOperatorEnded
}

// Commands revert the commit that was rolled back in the last step, and look at the result. Each runs as it is
// in a shell, in this order.
func Commands(w *World, binary string) []string {
	return []string{
		strings.Join(append([]string{"export"}, Environment(w, binary)...), " "),
		`git -C "$CLONE" revert --no-edit HEAD`,
		`git -C "$CLONE" push origin HEAD:main`,
		ToolName + " reconcile source " + SourceName + " --wait",
		ToolName + " tree " + AddOn,
		ToolName + " history " + AddOn,
	}
}

// Environment is what Commands, and those of docs/tutorial.md, need: the hub, a clone of the
// repository, this program as addonflow, and an author of commits.
func Environment(w *World, binary string) []string {
	return []string{
		"KUBECONFIG=" + quoted(w.Kubeconfig), "CLONE=" + quoted(w.Repo.Clone()), "PATH=" + quoted(filepath.Dir(binary)) + `:"$PATH"`,
		"GIT_AUTHOR_NAME=you", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_COMMITTER_NAME=you", "GIT_COMMITTER_EMAIL=you@example.com",
	}
}

// quoted is a word of a shell.
func quoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// stay keeps everything running until ctx ends.
func stay(ctx context.Context, w *World, o Options) error {
	fmt.Fprintf(o.Out, "\nEverything stays up until Ctrl-C. Commit statuses: %s/log\nIn another terminal:\n", w.Forge.URL())
	for _, command := range Commands(w, o.Binary) {
		fmt.Fprintln(o.Out, "  "+command)
	}
	fmt.Fprintf(o.Out, "To break something: commit an image whose tag ends with -bad, which never starts, or a typo in a file below $CLONE/%s. To see why it failed: "+ToolName+" dashboard prints the address of the pages. To write an add-on of your own: docs/tutorial.md\n", addOnDir)
	select {
	case <-ctx.Done():
		return nil
	case <-w.Operator.Done():
		return endedItself(w.Operator)
	}
}
