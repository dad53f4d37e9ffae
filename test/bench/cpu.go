package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The names that the kernel has for the programs of the hub.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
)

// cpuTimes are user and system time by program.
type cpuTimes map[string]time.Duration

// cpuOfChildren reads the CPU time of the programs that this process started. It is empty
// on a system without /proc.
func cpuOfChildren() (cpuTimes, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	self := strconv.Itoa(os.Getpid())
	out := cpuTimes{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // another process, which has ended
		}
		// "17 (etcd) S 16 ...": number, name, state, parent; see proc_pid_stat(5).
		head, rest, _ := strings.Cut(string(text), ") ")
		_, name, _ := strings.Cut(head, "(")
		fields := strings.Fields(rest)
		if len(fields) < 13 || fields[1] != self {
			continue
		}
		user, errUser := strconv.Atoi(fields[11])
		system, errSystem := strconv.Atoi(fields[12])
		if err := errors.Join(errUser, errSystem); err != nil {
			return nil, fmt.Errorf("cannot read the CPU time of %s: %w", name, err)
		}
		out[name] += time.Duration(user+system) * 10 * time.Millisecond // the kernel counts hundredths
	}
	return out, nil
}

// commandName is what the kernel calls the process of a program: 15 bytes of its name.
func commandName(binary string) string {
	name := filepath.Base(binary)
	return name[:min(15, len(name))]
}

// memory is a process's resident set, in bytes: the highest so far, and which part of the present one is pages of
// files, for the operator those of its program.
type memory struct{ peak, files int64 }

// String is the peak, and the peak without pages of files, in MiB.
func (m memory) String() string { return fmt.Sprintf("%d, %d", m.peak>>20, (m.peak-m.files)>>20) }

// memoryOf reads the memory of a process; zero on a system without /proc.
func memoryOf(pid int) (memory, error) {
	var m memory
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		for name, into := range map[string]*int64{"VmHWM:": &m.peak, "RssFile:": &m.files} {
			rest, ok := strings.CutPrefix(line, name)
			if !ok {
				continue
			}
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return m, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
			}
			*into = kib * 1024
		}
	}
	return m, nil
}
