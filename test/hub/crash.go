package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Server is one of a hub's two programs.
type Server string

const (
	// APIServer is the kube-apiserver.
	APIServer Server = "kube-apiserver"
	// Etcd is its database.
	Etcd Server = "etcd"
)

const (
	// startsWithin is how long the process of a server may be absent; it does not answer by then.
	startsWithin = 10 * time.Second
	// restartAfter is how long keep waits before it starts a server again.
	restartAfter = time.Second
)

// Freeze stops a server as SIGSTOP does; Thaw continues it.
func (h *Hub) Freeze(s Server) error { return h.signal(s, syscall.SIGSTOP) }

// Thaw ends Freeze.
func (h *Hub) Thaw(s Server) error { return h.signal(s, syscall.SIGCONT) }

// Crash ends a server as kill -9 does, and starts it again after a while with the same
// arguments. It returns when the process runs; it may not answer yet.
func (h *Hub) Crash(ctx context.Context, s Server, down time.Duration) error {
	pid, args, err := h.await(s)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("cannot kill %s: %w", s, err)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(down):
	}
	h.startAgain(args) //nolint:contextcheck // it outlives the crash, which ctx bounds
	if _, _, err := h.await(s); err != nil {
		return fmt.Errorf("cannot start %s again: %w", s, err)
	}
	return nil
}

// startAgain starts a server that runs until Stop.
func (h *Hub) startAgain(args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.keep(ctx, args) }()
	h.again = append(h.again, func() error {
		cancel()
		return <-ended
	})
}

// await is find for a server that may be about to start again.
func (h *Hub) await(s Server) (pid int, args []string, err error) {
	for until := time.Now().Add(startsWithin); ; <-time.After(pollInterval) {
		if pid, args, err = h.find(s); err == nil || time.Now().After(until) {
			return pid, args, err
		}
	}
}

// keep runs a server until it is killed or ctx ends. A server that ends by itself is started again, as a kubelet starts a
// static pod: a kube-apiserver ends if etcd, or its own bootstrap, is too slow while it starts.
func (h *Hub) keep(ctx context.Context, args []string) error {
	for {
		killed, err := h.run(ctx, args)
		if killed || err != nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartAfter):
		}
	}
}

// run runs a server once, with a guard of its own.
func (h *Hub) run(ctx context.Context, args []string) (killed bool, err error) {
	dir, err := os.MkdirTemp(h.scripts, "again-")
	if err != nil {
		return false, fmt.Errorf("cannot start a server again: %w", err)
	}
	g, err := newGuard(dir, args[0])
	if err != nil {
		return false, err
	}
	command := exec.CommandContext(ctx, g.path, args[1:]...)
	command.Stdout, command.Stderr = h.serverLog, h.serverLog
	err = command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		killed, err = !exit.Exited(), nil
	}
	if ctx.Err() != nil {
		err = nil
	}
	return killed, errors.Join(err, g.dismiss())
}

// stopRestarted ends the servers that were started again, the newest first. They are killed:
// they have nothing to keep that the hub's other server would miss.
func (h *Hub) stopRestarted() error {
	var err error
	for _, stop := range slices.Backward(h.again) {
		err = errors.Join(err, stop())
	}
	h.again = nil
	return err
}

func (h *Hub) signal(s Server, signal syscall.Signal) error {
	pid, _, err := h.await(s)
	if err == nil {
		err = syscall.Kill(pid, signal)
	}
	if err != nil {
		return fmt.Errorf("cannot send %s to %s: %w", signal, s, err)
	}
	return nil
}

// find returns the process of a server and its arguments, from /proc: envtest does not say. The
// server is the one with this hub's etcd in its arguments.
func (h *Hub) find(s Server) (int, []string, error) {
	flag := "--listen-client-urls=" + h.plane.Etcd.URL.String()
	if s == APIServer {
		flag = "--etcd-servers=" + h.plane.Etcd.URL.String()
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		if filepath.Base(args[0]) != string(s) || !slices.Contains(args, flag) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		return pid, args, err
	}
	return 0, nil, fmt.Errorf("%s does not run", s)
}

// Fill makes etcd refuse every write, as it does when its space is used up, until Empty.
func (h *Hub) Fill(ctx context.Context) error { return h.alarm(ctx, "ACTIVATE") }

// Empty ends Fill.
func (h *Hub) Empty(ctx context.Context) error { return h.alarm(ctx, "DEACTIVATE") }

func (h *Hub) alarm(ctx context.Context, action string) error {
	body, err := h.askEtcd(ctx, "v3/maintenance/alarm", map[string]string{"action": action, "alarm": "NOSPACE"})
	if err == nil {
		err = body.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot %s etcd's alarm about its space: %w", strings.ToLower(action), err)
	}
	return nil
}
