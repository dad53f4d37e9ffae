package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// figures are what one run measured, as they are stored.
type figures struct {
	Clusters int `json:"clusters"`
	// Operator is the hash of the operator's program.
	Operator  string        `json:"operator"`
	Heartbeat time.Duration `json:"heartbeat"`
	// Cores and Memory (bytes) are those of the machine.
	Cores  int   `json:"cores"`
	Memory int64 `json:"memory"`

	Steps []stepFigures `json:"steps"`
	// In bytes: Live is the operator's heap at rest, Peak its largest resident set. Files is the part of Peak that
	// is mapped from the program's file.
	Live  int64 `json:"live"`
	Peak  int64 `json:"peak"`
	Files int64 `json:"files"`
	// RestRequests are those of the operator in 20 seconds with nothing to do, RestCPU what they cost it.
	RestRequests float64       `json:"restRequests"`
	RestCPU      time.Duration `json:"restCPU"`
	// Restart is from the start of a process to its first work, RestartPeak its highest resident set.
	Restart     time.Duration `json:"restart"`
	RestartCPU  time.Duration `json:"restartCPU"`
	RestartPeak int64         `json:"restartPeak"`
	// Page is how long the operator takes to send the page of the rollout for the first time, PageSize its bytes.
	Page      time.Duration `json:"page"`
	PageSize  int           `json:"pageSize"`
	Beats     int64         `json:"beats"`
	LostBeats int64         `json:"lostBeats"`
}

// stepFigures are those of one step. Durations are CPU time, except for Took.
type stepFigures struct {
	Name      string        `json:"name"`
	Took      time.Duration `json:"took"`
	Requests  float64       `json:"requests"`
	Conflicts float64       `json:"conflicts"`
	Operator  time.Duration `json:"operator"`
	Server    time.Duration `json:"server"`
	Etcd      time.Duration `json:"etcd"`
}

// figures of the run.
func (b *bench) figures(s settings) (figures, error) {
	sum, err := programSum(s.operator)
	if err != nil {
		return figures{}, err
	}
	memory, err := machineMemory()
	if err != nil {
		return figures{}, err
	}
	f := figures{
		Clusters: s.clusters, Operator: sum, Heartbeat: s.heartbeat, Cores: runtime.NumCPU(), Memory: memory, Live: b.live,
		RestCPU: b.rest.cpu[b.operator], Peak: b.rest.memory.peak, Files: b.rest.memory.files,
		Restart: b.restart.took, RestartCPU: b.restart.cpu, RestartPeak: b.restart.memory.peak,
		Page: b.page.first, PageSize: b.page.bytes,
		Beats: b.beats.written.Load(), LostBeats: b.beats.failed.Load(),
	}
	f.RestRequests, _ = b.rest.requests.total()
	for _, r := range b.results {
		all, conflicts := r.requests.total()
		f.Steps = append(f.Steps, stepFigures{
			Name: r.name, Took: r.took, Requests: all, Conflicts: conflicts,
			Operator: r.cpu[b.operator], Server: r.cpu[apiServer], Etcd: r.cpu[etcd],
		})
	}
	return f, nil
}

// store writes figures to a file.
func (f figures) store(file string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot store the figures: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("cannot store the figures: %w", err)
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// stored reads figures from a file; false if there are none.
func stored(file string) (figures, bool, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return figures{}, false, nil
	}
	if err != nil {
		return figures{}, false, fmt.Errorf("cannot read the figures: %w", err)
	}
	var f figures
	if err := json.Unmarshal(text, &f); err != nil {
		return figures{}, false, fmt.Errorf("cannot read the figures in %s: %w", file, err)
	}
	return f, true, nil
}

// programSum is the hash of a program.
func programSum(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the operator: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// machineMemory is how much memory the machine has, in bytes; 0 on a system without /proc.
func machineMemory() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the memory of the machine: %w", err)
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("MemTotal:")); ok {
			kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			return kib * 1024, err
		}
	}
	return 0, nil
}
