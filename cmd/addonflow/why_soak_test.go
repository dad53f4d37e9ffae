package main

import (
	"testing"
	"time"

	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/show"
)

// The end of a soak is printed once, and as in the status.
func TestWhyNamesTheEndOfASoakOnce(t *testing.T) {
	until := time.Now().UTC().Truncate(time.Minute).Add(-time.Second)
	text := "soaking until " + clock.Text(until, time.Now())
	got := reasonLine(show.Cluster{Cluster: "c1", State: "Soaking", Stage: "canary", Reason: text, SoakingUntil: &until})
	if want := "c1: Soaking in stage canary: " + text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
