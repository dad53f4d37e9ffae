package main

import (
	"testing"
	"time"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/show"
)

// A text that stands for no revision is printed in words.
func TestWhySaysWhatRunsIfItIsNoRevision(t *testing.T) {
	for revision, want := range map[string]string{
		rollout.Foreign: "c1: Unchanged in stage all with works that AddonFlow did not write",
		rollout.Mixed:   "c1: Unchanged in stage all at no known revision",
		"hello-1":       "c1: Unchanged in stage all at hello-1",
	} {
		if got := reasonLine(show.Cluster{Cluster: "c1", State: "Unchanged", Stage: "all", Revision: revision}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The end of a soak is printed once, and as in the status.
func TestWhyNamesTheEndOfASoakOnce(t *testing.T) {
	until := time.Now().UTC().Truncate(time.Minute).Add(-time.Second)
	text := "soaking until " + clock.Text(until, time.Now())
	got := reasonLine(show.Cluster{Cluster: "c1", State: "Soaking", Stage: "canary", Reason: text, SoakingUntil: &until})
	if want := "c1: Soaking in stage canary: " + text; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
