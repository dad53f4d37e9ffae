package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestSuspendAndResume(t *testing.T) {
	key := types.NamespacedName{Namespace: "default", Name: "hello"}
	s := newStage(t, hello(v1alpha1.PhaseProgressing))
	annotation := func() string {
		var r v1alpha1.AddOnRollout
		if err := s.hub.Get(t.Context(), key, &r); err != nil {
			t.Fatal(err)
		}
		return r.Annotations[v1alpha1.SuspendAnnotation]
	}
	if code := s.run(t.Context(), "suspend", "rollouts", "hello"); code != 0 || annotation() != "true" {
		t.Errorf("exit code %d, annotation %q", code, annotation())
	}
	if code := s.run(t.Context(), "resume", "rollout", "hello"); code != 0 || annotation() != "" {
		t.Errorf("exit code %d, annotation %q", code, annotation())
	}
	want := "rollout default/hello suspended\nrollout default/hello resumed\n"
	if diff := cmp.Diff(want, s.out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestRelease: the command prints what the release waits for, and resume cancels it.
func TestRelease(t *testing.T) {
	left := hello(v1alpha1.PhaseSucceeded)
	left.Spec.Removal = &v1alpha1.Removal{Commit: "c", Approved: true}
	for name, c := range map[string]struct {
		rollout *v1alpha1.AddOnRollout
		err     string
	}{
		"Declared": {hello(v1alpha1.PhaseProgressing), "warning: 1 of 2 clusters run the newest content; the next manager of the add-on decides when the others follow\n" +
			"Next: remove the add-on from Git, or delete source fleet if it is the last one. To cancel until then: addonflow resume rollout hello -n default\n"},
		"Left": {left, "warning: 1 of 2 clusters run the newest content; the next manager of the add-on decides when the others follow\n" +
			"Next: nothing; the add-on has left Git and is being released\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.rollout)
			annotated := func() bool {
				var r v1alpha1.AddOnRollout
				if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(c.rollout), &r); err != nil {
					t.Fatal(err)
				}
				return r.ReleaseRequested()
			}
			if code := s.run(t.Context(), "release", "hello"); code != 0 || !annotated() {
				t.Errorf("exit code %d, annotated %t", code, annotated())
			}
			if diff := cmp.Diff("rollout default/hello: release requested\n", s.out.String()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.err, s.err.String()); diff != "" {
				t.Error(diff)
			}
			if code := s.run(t.Context(), "resume", "rollout", "hello"); code != 0 || annotated() {
				t.Errorf("exit code %d, annotated %t", code, annotated())
			}
		})
	}
	if code := newStage(t).run(t.Context(), "release", "absent"); code != exitNotFound {
		t.Errorf("exit code %d, want %d", code, exitNotFound)
	}
}

// A suspend that Git declares wins over the command line, which says so.
func TestResumeRefusesASuspendDeclaredInGit(t *testing.T) {
	declared := hello(v1alpha1.PhaseSuspended)
	declared.Spec.Suspend = true
	s := newStage(t, declared)
	if code := s.run(t.Context(), "resume", "rollout", "hello"); code != exitSuspended {
		t.Errorf("exit code %d, want %d", code, exitSuspended)
	}
	if !strings.Contains(s.err.String(), "stays suspended") || !strings.Contains(s.err.String(), "in Git") {
		t.Errorf("stderr %q does not say where", s.err.String())
	}
}
