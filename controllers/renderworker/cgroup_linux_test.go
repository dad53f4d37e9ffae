package renderworker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hierarchy is a version of memory cgroups.
type hierarchy struct {
	// root is where it is mounted, prefix begins its line in /proc/self/cgroup.
	root, prefix string
	// limit and swap are the files with the limits. Version 1 limits memory and swap together.
	limit, swap string
	// most is the file with the most memory that was used, events the file with the number of
	// processes that the kernel killed.
	most, events string
}

func hierarchies() []hierarchy {
	return []hierarchy{
		{root: "/sys/fs/cgroup", prefix: "0::", limit: "memory.max", swap: "memory.swap.max", most: "memory.peak", events: "memory.events"},
		{
			root: "/sys/fs/cgroup/memory", prefix: ":memory:", limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes",
			most: "memory.max_usage_in_bytes", events: "memory.oom_control",
		},
	}
}

// contain limits this process and its children together to limit bytes of memory until the test ends,
// with a cgroup. Where no cgroup can be made, it limits the data of this process to what a child with
// its own limit leaves of it.
func contain(t *testing.T, limit, child int64) {
	t.Helper()
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hierarchies() {
		for line := range strings.Lines(string(membership)) {
			_, path, found := strings.Cut(strings.TrimSpace(line), h.prefix)
			if found && h.contain(t, path, limit) {
				return
			}
		}
	}
	t.Log("no memory cgroup can be made here: the limit is RLIMIT_DATA")
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &before); err != nil {
		t.Fatal(err)
	}
	ours := unix.Rlimit{Cur: uint64(limit - child), Max: before.Max} //nolint:gosec // positive
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &ours); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_DATA, &before); err != nil {
			t.Error(err)
		}
	})
}

// contain makes a cgroup below path or, where that is not allowed, below one of its parents. A
// container may see paths of its host, which do not exist in it.
func (h hierarchy) contain(t *testing.T, path string, limit int64) bool {
	t.Helper()
	for {
		own := filepath.Join(h.root, path)
		dir := filepath.Join(own, fmt.Sprintf("renderworker-%d", os.Getpid()))
		if err := h.enter(dir, limit); err == nil {
			t.Logf("the limit is that of cgroup %s", dir)
			t.Cleanup(func() { h.leave(t, dir, own) })
			return true
		}
		_ = os.Remove(dir)
		if path = filepath.Dir(path); path == "/" || path == "." {
			return false
		}
	}
}

// enter makes a cgroup with the limit, without swap, and moves this process to it. What the process
// holds already is still charged to its old cgroup, so that the limit is lower by it.
func (h hierarchy) enter(dir string, limit int64) error {
	held, err := resident()
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := write(dir, h.limit, limit-held); err != nil {
		return err
	}
	swap := int64(0)
	if h.prefix != "0::" {
		swap = limit - held
	}
	if err := write(dir, h.swap, swap); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // the file does not exist where the kernel has no swap
	}
	return write(dir, "cgroup.procs", int64(os.Getpid()))
}

// leave moves this process back and removes the cgroup. The kernel must not have killed any process
// in it.
func (h hierarchy) leave(t *testing.T, dir, own string) {
	t.Helper()
	events, err := os.ReadFile(filepath.Join(dir, h.events))
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(events)) {
		if killed, found := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); found && killed != "0" {
			t.Errorf("the kernel killed %s processes: operator and child do not fit in the limit", killed)
		}
	}
	if most, err := os.ReadFile(filepath.Join(dir, h.most)); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(most)), 10, 64); err == nil {
			status, _ := os.ReadFile("/proc/self/status")
			_, own, _ := strings.Cut(string(status), "VmHWM:")
			own, _, _ = strings.Cut(own, "\n")
			t.Logf("peak of operator and child: %d MiB, files included; of the operator: %s", n>>20, strings.TrimSpace(own))
		}
	}
	if err := write(own, "cgroup.procs", int64(os.Getpid())); err != nil {
		t.Errorf("cannot leave %s: %v", dir, err)
	}
	_ = os.Remove(dir) // a child may still end
}

// resident is the memory that this process holds.
func resident() (int64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("unexpected /proc/self/statm: %q", statm)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

func write(dir, name string, n int64) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(n, 10))
	return errors.Join(err, f.Close())
}
