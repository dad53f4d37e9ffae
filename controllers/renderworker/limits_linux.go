package renderworker

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// oomScore makes the kernel kill the child before any other process.
const oomScore = 1000

// prepare puts the child into its own process group, so that signals of a terminal do not reach
// it.
func prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// confine limits a child before it works. RLIMIT_DATA counts memory that Go has mapped
// writable, not the address space that it reserves.
func confine(pid int, memory uint64) error {
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}, nil); err != nil {
		return fmt.Errorf("cannot limit its memory: %w", err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil {
		return fmt.Errorf("cannot turn off core dumps: %w", err)
	}
	if err := os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o600); err != nil {
		return fmt.Errorf("cannot set oom_score_adj: %w", err)
	}
	return nil
}

// spaceBeside is address space that a child may reserve beside its memory: Go reserves its heap in units of 64 MiB, and
// needs more address space for data about the heap.
const spaceBeside = 128 << 20

// confineSpace limits the address space of a child that is ready to work. RLIMIT_DATA does not stop a single large
// allocation: Go reserves its addresses first, and the kernel does not count a mapping over another one of its size.
func confineSpace(pid int, memory uint64) error {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return fmt.Errorf("cannot read its address space: %w", err)
	}
	pages, err := strconv.ParseUint(strings.Fields(string(statm))[0], 10, 64)
	if err != nil {
		return fmt.Errorf("cannot read its address space: %w", err)
	}
	most := pages*uint64(os.Getpagesize()) + memory + spaceBeside //nolint:gosec // positive
	if err := unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
		return fmt.Errorf("cannot limit its address space: %w", err)
	}
	return nil
}

// allowCPU limits the CPU time of a child, from its start. It sets the soft limit, which can be
// raised for the next rendering: the child ends itself at SIGXCPU.
func allowCPU(pid int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now); err != nil {
		return fmt.Errorf("cannot read its limit of CPU time: %w", err)
	}
	now.Cur = min(most, now.Max)
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, &now, nil); err != nil {
		return fmt.Errorf("cannot limit its CPU time: %w", err)
	}
	return nil
}

// watchCPU calls reached when the process has used the CPU time that its parent allows.
func watchCPU(reached func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGXCPU)
	go func() {
		<-signals
		reached()
	}()
}

func usedCPU() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
