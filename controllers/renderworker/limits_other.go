//go:build !linux

package renderworker

import (
	"os/exec"
	"time"
)

// Without Linux there are the deadline and the child's own watch over its memory.

func prepare(*exec.Cmd) {}

func confine(int, uint64) error { return nil }

func allowCPU(int, uint64) error { return nil }

func watchCPU(func()) {}

func usedCPU() time.Duration { return 0 }
