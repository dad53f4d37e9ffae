// Command faults runs the shipped operator as a child process under the shipped roles against an
// embedded hub, makes one thing after the other go wrong, and judges what was stored.
//
//	make faults                                        every point; finished ones are kept
//	make faults SHORT=1                                five minutes
//	make faults ONLY='two operators|kill-after at create events #1'  the points with one of these words in their name
//
// A point is one run of the reference workload (workload.go) on a fresh hub with one kind of
// fault (points.go, disturb.go). The faults are injected by package proxy, between the operator
// and the API server or the forge. Package oracle judges every revision that etcd stored. Then
// the end state and the number of writes are compared with those of the undisturbed run. The
// names of points contain their seeds: the same name makes the same faults.
//
// The exit code is 1 if a promise was broken, and 2 if the harness itself failed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

var (
	// errBroken is returned when a promise was broken.
	errBroken = errors.New("a promise was broken")
	// errOver ends the points under way when a limited run is over.
	errOver = errors.New("the time is over")
)

// hubsAtOnce is how many two cores bear: a run mostly waits.
const hubsAtOnce = 4

// stopWithin is how long the hubs of points take to stop.
const stopWithin = 10 * time.Second

// options are the command line.
type options struct {
	operator, clocked, previous string
	only, state, report, keep   string
	commit                      string
	limit                       time.Duration
	parallel                    int
	summary                     bool
}

func main() {
	var o options
	flag.StringVar(&o.operator, "operator", "bin/addonflow", "path of the operator's binary")
	flag.StringVar(&o.clocked, "clocked", "bin/addonflow-faultclock", "path of the operator that was built with the tag faultclock")
	flag.StringVar(&o.previous, "previous", "", "path of the operator of the commit in test/faults/previous")
	flag.StringVar(&o.only, "only", "", "run the points whose name contains one of these words, separated by |, although they are finished")
	flag.StringVar(&o.state, "state", "bin/faults/state.jsonl", "file with the finished points; they are not run again")
	flag.StringVar(&o.commit, "commit", "unknown", "the operator's commit, for the report")
	flag.StringVar(&o.report, "report", "", "file that the report on all finished points is written to")
	flag.StringVar(&o.keep, "keep", "bin/faults", "directory for what failing runs leave")
	flag.DurationVar(&o.limit, "for", 0, "how long to run: points of each class in turn, and what is not finished then is not judged; 0: until all are finished")
	flag.BoolVar(&o.summary, "summary", false, "run nothing, and report on what ran")
	flag.IntVar(&o.parallel, "parallel", hubsAtOnce, "number of hubs at once")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard()) // the lines of the operators are in their own logs
	signal.Ignore(syscall.SIGPIPE)    // without a reader the run goes on, so that no operator is left behind
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
	}
	switch {
	case errors.Is(err, errBroken):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

// run runs the points that are asked for and not finished.
func run(ctx context.Context, o options, out io.Writer) error {
	end := time.Now().Add(o.limit - stopWithin)
	if o.limit > 0 {
		limited, cancel := context.WithDeadlineCause(ctx, end, errOver)
		defer cancel()
		ctx = limited
	}
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	state, err := openState(o.state, o.commit, o.operator, self)
	if err != nil {
		return err
	}
	if o.summary {
		known := cmp.Or(state.reference, state.past)
		if known == nil {
			return errors.New("nothing ran yet")
		}
		return o.write(state, known)
	}
	h := harness{operator: o.operator, clocked: o.clocked, previous: o.previous, keep: o.keep}
	undisturbed, err := h.undisturbed(ctx, state, out)
	if err != nil {
		return err
	}
	all := matrix(undisturbed, o.killed(undisturbed))
	never, before := pending(all, state)
	todo, left := slices.Concat(never, before), len(never)+len(before)
	if o.only != "" {
		todo = choose(all, undisturbed, o.only)
	}
	stopAt := time.Time{}
	if o.limit > 0 {
		stopAt = end.Add(-undisturbed.Took)
		if o.only == "" {
			todo = slices.Concat(inTurn(never), inTurn(before))
		}
	}
	if _, err := os.Stat(o.previous); err != nil {
		fmt.Fprintln(out, "without an upgrade: there is no operator of the commit in test/faults/previous")
		todo = slices.DeleteFunc(todo, func(p point) bool { return p.upgraded || p.rolledBack })
	}
	kills := 0
	for _, p := range o.killed(undisturbed) {
		kills += len(p.faults)
	}
	fmt.Fprintf(out, "%d points with %d kills, %d of them finished, %d to run\n", len(all), kills, len(all)-left, len(todo))
	stopped := h.runAll(ctx, todo, undisturbed, o.parallel, stopAt, state, out)
	if errors.Is(stopped, errOver) && len(state.ran) > 0 {
		stopped = nil
	}
	if err := errors.Join(stopped, o.write(state, undisturbed)); err != nil {
		return err
	}
	ran := state.of(all)
	if o.limit > 0 || o.only != "" {
		ran = state.of(state.ran)
	}
	table := summarise(all, ran, undisturbed)
	failed := len(slices.DeleteFunc(slices.Clone(ran), func(r result) bool { return len(r.Violations) == 0 }))
	fmt.Fprintf(out, "\n%s\n%d passed, %d failed\n", table.text(), len(ran)-failed, failed)
	if table.broken() {
		return errBroken
	}
	return nil
}

// write writes the report on all that ever ran, if it is asked for. What did not run since is as the report has it.
func (o options) write(state *state, undisturbed *reference) error {
	if o.report == "" {
		return nil
	}
	earlier, err := published(o.report)
	if err != nil {
		return err
	}
	all := matrix(undisturbed, o.killed(undisturbed))
	return os.WriteFile(o.report, []byte(document(summarise(all, state.of(all), undisturbed).since(earlier))), 0o644)
}

// pending are the points that are not finished: those that never ran, and those that ran before with another program.
func pending(all []point, state *state) (never, before []point) {
	for _, p := range all {
		_, finished := state.results[p.name]
		_, ran := state.earlier[p.name]
		switch {
		case finished:
		case ran:
			before = append(before, p)
		default:
			never = append(never, p)
		}
	}
	return never, before
}

// inTurn orders points: first those that found a mistake before, then one point of each class, then a second one of
// each class, and so on.
func inTurn(points []point) []point {
	var classes []string
	by := map[string][]point{}
	for _, p := range points {
		if by[p.class] == nil {
			classes = append(classes, p.class)
		}
		by[p.class] = append(by[p.class], p)
	}
	var all []point
	for _, p := range points {
		if slices.Contains(regressions, p.name) {
			all = append(all, p)
			by[p.class] = slices.DeleteFunc(by[p.class], func(x point) bool { return x.name == p.name })
		}
	}
	for len(all) < len(points) {
		for _, c := range classes {
			if n := len(by[c]); n > 0 {
				// Not the first of those that are left: neighbours are alike.
				i := (n * 5 / 8) % n
				all = append(all, by[c][i])
				by[c] = append(by[c][:i:i], by[c][i+1:]...)
			}
		}
	}
	return all
}

// undisturbed returns the run that all others are compared with.
func (h harness) undisturbed(ctx context.Context, state *state, out io.Writer) (*reference, error) {
	if state.reference != nil {
		return state.reference, nil
	}
	r, reference, err := h.run(ctx, point{name: "undisturbed", class: "none"}, nil)
	if err != nil {
		return nil, err
	}
	r.print(out)
	fmt.Fprintf(out, "    seconds: %s\n", r.Timings)
	if len(r.Violations) > 0 {
		return nil, fmt.Errorf("%w in the undisturbed run", errBroken)
	}
	reference.Took, reference.Revisions = r.Took, r.Revisions
	return reference, state.keepReference(reference)
}

// runAll runs points on several hubs at once. None is started after stopAt, unless that is zero.
func (h harness) runAll(ctx context.Context, todo []point, undisturbed *reference, parallel int, stopAt time.Time, state *state, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan point)
	go func() {
		defer close(next)
		for _, p := range todo {
			select {
			case next <- p:
			case <-ctx.Done():
				return
			}
		}
	}()
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for p := range next {
				if !stopAt.IsZero() && time.Now().After(stopAt) {
					continue
				}
				r, _, err := h.run(ctx, p, undisturbed)
				if err == nil {
					err = state.keep(p, r, out)
				}
				if err != nil {
					cancel(fmt.Errorf("%s: %w", p.name, err))
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
