package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// profiled is the step a profile is taken of, and profileSeconds how much of it: the
// operator answers when they are over, whether the step is or not.
const (
	profiled       = "upgrade"
	profileSeconds = 25
)

// profiler takes a CPU profile from the operator's own metrics server. A nil one takes none.
type profiler struct{ address, file string }

// newProfiler returns a profiler that writes to file, nil for no file.
func newProfiler(file string) (*profiler, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // a nil profiler is one that takes no profile
	}
	// A port that is free now; nobody else opens ports while a bench runs.
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		return nil, fmt.Errorf("cannot find a port for profiles: %w", err)
	}
	return &profiler{address: listener.Addr().String(), file: file}, listener.Close()
}

// flags are what the operator is started with, so that it can be asked.
func (p *profiler) flags() []string {
	if p == nil {
		return nil
	}
	return []string{"--metrics-addr=" + p.address}
}

// start begins a profile of the step, if it is the one; the returned function waits for
// its end.
func (p *profiler) start(ctx context.Context, step string) func() error {
	if p == nil || step != profiled {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() { done <- p.take(ctx) }()
	return func() error { return <-done }
}

// take asks for a profile and stores it.
func (p *profiler) take(ctx context.Context) (err error) {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", p.address, profileSeconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("cannot take a profile: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot take a profile: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot take a profile: %s", response.Status)
	}
	out, err := os.Create(p.file)
	if err != nil {
		return fmt.Errorf("cannot store a profile: %w", err)
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}
