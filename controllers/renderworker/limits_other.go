//go:build !linux

package renderworker

import (
	"os/exec"
	"time"
)

// On other systems there are only the deadline and the child's own check of its memory.

func prepare(*exec.Cmd) {}

func confine(int, uint64) error { return nil }

func confineSpace(int, uint64) error { return nil }

func allowCPU(int, uint64) error { return nil }

func watchCPU(func()) {}

func usedCPU() time.Duration { return 0 }
