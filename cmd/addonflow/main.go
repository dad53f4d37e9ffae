// Command addonflow is the operator and its user's tool in one binary; as
// kubectl-addonflow on the PATH it is a kubectl plugin.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // windows of gates name time zones, and an image may have none
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	code := exitUsage
	if exit, ok := errors.AsType[*exitError](err); ok {
		code = exit.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(os.Stderr, "✗ "+text)
	}
	os.Exit(code)
}
