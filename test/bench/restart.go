package main

import (
	"context"
	"time"

	"github.com/addonflow/addonflow/test/demo"
)

// promisedRestart is how long a new process may take to its first useful write.
const promisedRestart = 30 * time.Second

// restarted is what a new process cost that found a commit to roll out.
type restarted struct {
	// took is from the start of the process to the first work that it wrote, and cpu what it spent in that time.
	took, cpu time.Duration
	// memory when the rollout had ended.
	memory memory
}

// again ends the operator, commits, and starts a new one.
func (b *bench) again(ctx context.Context) error {
	if err := b.world.Operator.Stop(); err != nil {
		return err
	}
	var err error
	b.restart.took, err = b.untilFirstWork(ctx, "restart", func(string) error {
		if _, err := b.request(ctx); err != nil {
			return err
		}
		return b.start()
	})
	if err != nil {
		return err
	}
	cpu, err := cpuOfChildren()
	if err != nil {
		return err
	}
	b.restart.cpu = cpu[b.operator]
	if err := b.concluded(ctx, demo.AddOn); err != nil {
		return err
	}
	b.restart.memory, err = memoryOf(b.world.Operator.PID())
	return err
}
