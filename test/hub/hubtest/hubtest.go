package hubtest

import (
	"context"
	"testing"
	"time"

	"github.com/addonflow/addonflow/test/hub"
)

// Patience is how long a test waits on a loaded machine before it fails.
const Patience = 2 * time.Minute

// Start starts a hub that is stopped with the test.
func Start(t *testing.T, o hub.Options) *hub.Hub {
	t.Helper()
	h, err := hub.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Eventually waits until a condition holds; a test in which it never does ends.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}
