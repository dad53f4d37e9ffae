package main

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// A rollout cannot know that the commit after its own was refused; status says so.
func TestStatusOfRefusedCommit(t *testing.T) {
	const refused = "main@sha1:3333333333333333333333333333333333333333"
	for name, c := range map[string]struct {
		attempted string
		condition string
		want      bool
	}{
		"Refused": {refused, meta.StalledCondition, true},
		"Waiting": {refused, meta.ReconcilingCondition, false},
		"Applied": {commit, meta.StalledCondition, false},
	} {
		t.Run(name, func(t *testing.T) {
			source := reporting(fleetSource("False", "wrong"), c.condition)
			source.Status.LastAttemptedRevision = c.attempted
			s := newStage(t, hello(v1alpha1.PhaseSucceeded), source)
			if code := s.run(t.Context(), "status", "hello"); code != 0 {
				t.Errorf("exit code %d, want 0; %s", code, s.err.String())
			}
			if got := strings.Contains(s.err.String(), "fleet refused "+refused); got != c.want {
				t.Errorf("stderr %q", s.err.String())
			}
		})
	}
}
