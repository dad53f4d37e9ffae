package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/addonflow/addonflow/test/freeport"
)

const (
	// plannerPackage begins the names of the planner's functions.
	plannerPackage = "github.com/addonflow/addonflow/rollout."
	// profileSeconds is how much one profile covers. The operator answers when it is over,
	// whether the step is or not.
	profileSeconds = 2
)

// profiler takes CPU profiles from the operator's own metrics server.
type profiler struct{ address string }

// newProfiler returns a profiler of an operator that is started with its flags.
func newProfiler(ctx context.Context) (*profiler, error) {
	address, err := freeport.Address(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot find a port for profiles: %w", err)
	}
	return &profiler{address: address}, nil
}

// flags are the operator's flags for profiles.
func (p *profiler) flags() []string { return []string{"--metrics-addr=" + p.address} }

// profiles are CPU profiles, one taken after the other.
type profiles []*profile.Profile

// start takes profiles until the returned function is called, which waits for the last one.
func (p *profiler) start(ctx context.Context) func() (profiles, error) {
	stop, done := make(chan struct{}), make(chan error)
	var taken profiles
	go func() {
		defer close(done)
		for {
			one, err := p.take(ctx)
			if err != nil {
				done <- err
				return
			}
			taken = append(taken, one)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	return func() (profiles, error) {
		close(stop)
		err := <-done
		return taken, err
	}
}

// take takes one profile.
func (p *profiler) take(ctx context.Context) (*profile.Profile, error) {
	return p.fetch(ctx, fmt.Sprintf("profile?seconds=%d", profileSeconds))
}

// heap takes a profile of what the operator keeps, after a collection of garbage.
func (p *profiler) heap(ctx context.Context) (*profile.Profile, error) {
	return p.fetch(ctx, "heap?gc=1")
}

// live is how many bytes the operator keeps on its heap, after a collection of garbage. The profile above is a sample,
// which is wrong by some MiB.
func (p *profiler) live(ctx context.Context) (int64, error) {
	text, err := p.get(ctx, "heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	return heapOf(string(text))
}

// heapOf reads the size of the heap from a profile in text.
func heapOf(text string) (int64, error) {
	_, rest, _ := strings.Cut(text, "\n# HeapAlloc = ")
	number, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("cannot read the size of the heap: %w", err)
	}
	return n, nil
}

// fetch reads a profile.
func (p *profiler) fetch(ctx context.Context, name string) (*profile.Profile, error) {
	content, err := p.get(ctx, name)
	if err != nil {
		return nil, err
	}
	return profile.ParseData(content)
}

func (p *profiler) get(ctx context.Context, name string) (_ []byte, err error) {
	url := fmt.Sprintf("http://%s/debug/pprof/%s", p.address, name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot take a profile: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot take a profile: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot take a profile: %s", response.Status)
	}
	return io.ReadAll(response.Body)
}

// plannerCores is the planner's share of one core up to a moment. The time between two profiles is not counted.
func (all profiles) plannerCores(end time.Time) float64 {
	var planner, covered time.Duration
	for _, p := range all {
		covered += min(time.Duration(p.DurationNanos), end.Sub(time.Unix(0, p.TimeNanos)))
		for _, s := range p.Sample {
			if slices.ContainsFunc(s.Location, inPlanner) {
				planner += time.Duration(s.Value[len(s.Value)-1]) // samples, nanoseconds
			}
		}
	}
	return planner.Seconds() / covered.Seconds()
}

// inPlanner reports whether a frame of a stack is one of the planner.
func inPlanner(l *profile.Location) bool {
	return slices.ContainsFunc(l.Line, func(line profile.Line) bool {
		return strings.HasPrefix(line.Function.Name, plannerPackage)
	})
}

// store writes the profiles to a file as one.
func (all profiles) store(file string) error {
	one, err := profile.Merge(all)
	if err != nil {
		return fmt.Errorf("cannot store a profile: %w", err)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("cannot store a profile: %w", err)
	}
	return errors.Join(one.Write(out), out.Close())
}
