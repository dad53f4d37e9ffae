package hubbin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is how often a taken lock is tried again. flock could block
// instead, but then nothing could end the wait.
const lockPoll = 500 * time.Millisecond

// lock takes an exclusive lock on path, and waits for its holder. The kernel releases it when
// the process ends, however it ends, so a killed build blocks no other. The caller must call
// the returned function.
func lock(ctx context.Context, path string, out io.Writer) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot lock the cache: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the cache: %w", err)
	}
	unlock := func() { _ = file.Close() }
	for said := false; ; said = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			unlock()
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		if !said {
			fmt.Fprintln(out, "hub: waiting for another process that builds the binaries")
		}
		if err := pause(ctx, lockPoll); err != nil {
			unlock()
			return nil, fmt.Errorf("cannot wait for the lock %s: %w", path, err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
