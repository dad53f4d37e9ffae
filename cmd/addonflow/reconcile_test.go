package main

import (
	"context"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// requested answers a reconcile request as the operator does.
func requested(t *testing.T, s *stage) interceptor.Funcs {
	t.Helper()
	return interceptor.Funcs{Watch: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		w, err := hub.Watch(ctx, list, options...)
		if err != nil {
			return w, err
		}
		var source v1alpha1.AddOnSource
		if err := s.hub.Get(ctx, types.NamespacedName{Namespace: "default", Name: "fleet"}, &source); err != nil {
			t.Error(err)
		}
		source.Status.SetLastHandledReconcileRequest(source.Annotations[meta.ReconcileRequestAnnotation])
		if err := s.hub.Status().Update(ctx, &source); err != nil {
			t.Error(err)
		}
		return w, nil
	}}
}

// reporting adds a condition that is true.
func reporting(source *v1alpha1.AddOnSource, condition string) *v1alpha1.AddOnSource {
	source.Status.Conditions = append(source.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Tested"})
	return source
}

// suspendedSource is ready with what it applied before it was suspended.
func suspendedSource(declared bool, annotations map[string]string) *v1alpha1.AddOnSource {
	source := fleetSource("True", "applied main")
	source.Spec.Suspend, source.Annotations = declared, annotations
	return source
}

func TestReconcile(t *testing.T) {
	t.Run("Forced", func(t *testing.T) {
		s := newStage(t, fleetSource("True", "applied"))
		if code := s.run(t.Context(), "reconcile", "source", "fleet", "--force"); code != 0 {
			t.Fatal(s.err.String())
		}
		var source v1alpha1.AddOnSource
		if err := s.hub.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "fleet"}, &source); err != nil {
			t.Fatal(err)
		}
		if at := source.Annotations[meta.ForceRequestAnnotation]; at == "" || at != source.Annotations[meta.ReconcileRequestAnnotation] {
			t.Errorf("the operator heeds a forced request only with an equal one: %v", source.Annotations)
		}
	})
	t.Run("WithoutWaiting", func(t *testing.T) {
		s := newStage(t, fleetSource("True", "applied"))
		if code := s.run(t.Context(), "reconcile", "source", "fleet"); code != 0 {
			t.Fatal(s.err.String())
		}
		var source v1alpha1.AddOnSource
		if err := s.hub.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "fleet"}, &source); err != nil {
			t.Fatal(err)
		}
		if got := source.Annotations[meta.ReconcileRequestAnnotation]; got != "2026-03-04T14:30:00Z" {
			t.Errorf("requested at %q", got)
		}
	})
	for name, c := range map[string]struct {
		source *v1alpha1.AddOnSource
		code   int
		out    string
		err    string
	}{
		"Ready":             {source: fleetSource("True", "applied main"), out: "✔ source default/fleet: applied main\n"},
		"NotReady":          {fleetSource("False", "a.yaml:3: wrong\nb.yaml:1: wrong"), exitFailed, "✗ source default/fleet: a.yaml:3: wrong\nb.yaml:1: wrong\n", ""},
		"Stalled":           {reporting(fleetSource("False", "wrong"), meta.StalledCondition), exitFailed, "✗ source default/fleet: wrong\n", ""},
		"PassesByItself":    {reporting(fleetSource("False", "waits for a Placement"), meta.ReconcilingCondition), exitTimeout, "⟳ source default/fleet: waits for a Placement\n", "still reconciling after 1ms"},
		"SuspendedBySpec":   {suspendedSource(true, nil), exitSuspended, "⏸ source default/fleet: applied main\n", "Next: The AddOnSource says spec.suspend: true. Change it where the source is declared."},
		"SuspendedByWord":   {suspendedSource(false, map[string]string{v1alpha1.SuspendAnnotation: "yes"}), exitSuspended, "⏸ source default/fleet: applied main\n", "addonflow resume source fleet"},
		"SuspendedByNoWord": {suspendedSource(false, map[string]string{v1alpha1.SuspendAnnotation: ""}), exitSuspended, "⏸ source default/fleet: applied main\n", "addonflow resume source fleet"},
		"Releasing":         {source: fleetSource("True", "applied main; hello is being released: it stays on its clusters"), out: "✔ source default/fleet: applied main; hello is being released: it stays on its clusters\n"},
		"NotSuspended":      {suspendedSource(false, map[string]string{v1alpha1.SuspendAnnotation: "false"}), 0, "✔ source default/fleet: applied main\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"reconcile", "source", "fleet", "--wait"}
			if c.code == exitTimeout { // handled already, so that the time does not matter
				c.source.Status.SetLastHandledReconcileRequest("2026-03-04T14:30:00Z")
				args = append(args, "--timeout", "1ms")
			}
			s := &stage{}
			*s = *newStageWith(t, requested(t, s), c.source)
			s.cli.Out, s.cli.ErrOut = &s.out, &s.err
			s.cli.connect = func() (client.WithWatch, error) { return s.hub, nil }
			if code := s.run(t.Context(), args...); code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, s.err.String())
			}
			if diff := cmp.Diff(c.out, s.out.String()); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(s.err.String(), c.err) {
				t.Errorf("stderr %q, want %q", s.err.String(), c.err)
			}
		})
	}
	for name, c := range map[string]struct {
		source *v1alpha1.AddOnSource
		err    string
	}{
		"Unanswered": {fleetSource("True", "applied"), "was not reconciled within 1ms"},
		"Barred":     {reporting(fleetSource("False", "health cannot be judged"), meta.StalledCondition), "was not carried out within 1ms: health cannot be judged"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.source)
			if code := s.run(t.Context(), "reconcile", "source", "fleet", "--wait", "--timeout", "1ms"); code != exitTimeout || !strings.Contains(s.err.String(), c.err) {
				t.Errorf("exit code %d, want %d; %s", code, exitTimeout, s.err.String())
			}
		})
	}
}

// TestReconcileOfASourceWhoseContentWasWithdrawn: the commit is applied and the source is ready, but the fleet differs
// from Git. A rollout of another source does not count. One that is not planned since the commit is waited for.
func TestReconcileOfASourceWhoseContentWasWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.AddOnRollout)
		code   int
	}{
		"RolledBack":  {func(*v1alpha1.AddOnRollout) {}, exitSuspended},
		"OfAnother":   {func(r *v1alpha1.AddOnRollout) { r.Spec.Target.Source = "other" }, 0},
		"NotPlanned":  {func(r *v1alpha1.AddOnRollout) { r.Generation = 1000 }, 0},
		"PlannedSoon": {func(r *v1alpha1.AddOnRollout) { r.Generation++ }, exitSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			r := proposed()
			c.change(r)
			s, looks := &stage{}, int64(0)
			calls := requested(t, s)
			calls.List = func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				err := hub.List(ctx, list, options...)
				if rollouts, is := list.(*v1alpha1.AddOnRolloutList); is { // the operator plans between two looks
					for i := range rollouts.Items {
						rollouts.Items[i].Status.ObservedGeneration += looks
					}
					looks++
				}
				return err
			}
			*s = *newStageWith(t, calls, fleetSource("True", "Applied revision main"), r)
			s.cli.Out, s.cli.ErrOut = &s.out, &s.err
			s.cli.connect = func() (client.WithWatch, error) { return s.hub, nil }
			if code := s.run(t.Context(), "reconcile", "source", "fleet", "--wait", "--timeout", "1s"); code != c.code {
				t.Errorf("exit code %d, want %d; %s", code, c.code, s.err.String())
			}
			if c.code == 0 {
				return
			}
			if want := "⏸ source default/fleet: Applied revision main\n"; s.out.String() != want {
				t.Errorf("got %q, want %q", s.out.String(), want)
			}
			for _, want := range []string{"hello main@2222222 RolledBack", "https://gitea.example/team/fleet/pulls/12", "addonflow unblock hello -n default"} {
				if !strings.Contains(s.err.String(), want) {
					t.Errorf("%q is missing in %q", want, s.err.String())
				}
			}
		})
	}
}

// TestReconcileSaysTheReasonWhileItWaits: one line per change, and a refused commit ends it.
func TestReconcileSaysTheReasonWhileItWaits(t *testing.T) {
	source := reporting(fleetSource("False", "cannot reach git.example.com"), meta.ReconcilingCondition)
	s := &stage{}
	turns := []string{"cannot reach git.example.com\nmore", "cannot reach git.example.com\nmore", "cannot log in", "bad.yaml:3: wrong"}
	*s = *newStageWith(t, interceptor.Funcs{Watch: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		w, err := hub.Watch(ctx, list, options...)
		if err != nil {
			return w, err
		}
		for i, message := range turns {
			var looked v1alpha1.AddOnSource
			if err := s.hub.Get(ctx, types.NamespacedName{Namespace: "default", Name: "fleet"}, &looked); err != nil {
				t.Error(err)
			}
			looked.Status.SetLastHandledReconcileRequest(looked.Annotations[meta.ReconcileRequestAnnotation])
			looked.Status.Conditions[0].Message = message
			if i == len(turns)-1 {
				looked.Status.Conditions[1].Type, looked.Status.Conditions[1].Reason = meta.StalledCondition, v1alpha1.ValidationFailedReason
			}
			if err := s.hub.Status().Update(ctx, &looked); err != nil {
				t.Error(err)
			}
		}
		return w, nil
	}}, source)
	s.cli.Out, s.cli.ErrOut = &s.out, &s.err
	s.cli.connect = func() (client.WithWatch, error) { return s.hub, nil }
	if code := s.run(t.Context(), "reconcile", "source", "fleet", "--wait"); code != exitFailed {
		t.Errorf("a refused commit ends it: exit code %d; %s", code, s.err.String())
	}
	want := "► waiting for the operator to reconcile source default/fleet\n" +
		"⟳ source default/fleet: cannot reach git.example.com\n" +
		"⟳ source default/fleet: cannot log in\n" +
		"Next: Fix the errors, and push. This checks a directory before the next commit.\n  addonflow lint PATH\n\n"
	if diff := cmp.Diff(want, s.err.String()); diff != "" {
		t.Errorf("one line per change:\n%s", diff)
	}
	if diff := cmp.Diff("✗ source default/fleet: bad.yaml:3: wrong\n", s.out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestInterrupted(t *testing.T) {
	for _, args := range []string{"get rollouts -w", "tree hello -w", "status hello -w"} {
		t.Run(args, func(t *testing.T) {
			s := newStage(t, hello(v1alpha1.PhaseProgressing))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if code := s.run(ctx, strings.Fields(args)...); code != exitInterrupted {
				t.Errorf("exit code %d, want %d; %s", code, exitInterrupted, s.err.String())
			}
		})
	}
}

// TestReadyMessage_IsTextOnly: a file in Git gives a part of it, such as the reason of a block.
func TestReadyMessage_IsTextOnly(t *testing.T) {
	got := readyMessage([]metav1.Condition{{Type: meta.ReadyCondition, Message: "a.yaml:1: wrong\nblocked: leaks \x1b[2J\u202ememory\n"}})
	if want := "a.yaml:1: wrong\nblocked: leaks [2J memory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
