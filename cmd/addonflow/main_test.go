package main

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/addonflow/addonflow/controllers/renderworker"
)

// TestMain lets the test binary also be the child that renders charts: the same argument starts it as in the program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == renderworker.Command {
		if err := newRootCommand().Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Flux's recorder retries without a context, see eventSender.Start.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("github.com/fluxcd/pkg/runtime/events.(*Recorder).AnnotatedEventf"))
}
