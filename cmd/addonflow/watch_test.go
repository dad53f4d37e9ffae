package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// eventful is a stage where, once it is watched, hello succeeds and is deleted.
func eventful(t *testing.T) *stage {
	t.Helper()
	return newStageWith(t, interceptor.Funcs{Watch: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		w, err := hub.Watch(ctx, list, options...)
		if err != nil {
			return w, err
		}
		r := hello("")
		if err := hub.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
			return w, err
		}
		r.Status.Phase, r.Status.Counts.Updated = v1alpha1.PhaseSucceeded, 2
		if err := hub.Status().Update(ctx, r); err != nil {
			return w, err
		}
		return w, hub.Delete(ctx, r)
	}}, hello(v1alpha1.PhaseProgressing))
}

// TestStatusWatched: a line per change, until the outcome, which is the exit code.
func TestStatusWatched(t *testing.T) {
	s := eventful(t)
	if code := s.run(t.Context(), "status", "hello", "--watch"); code != 0 {
		t.Errorf("exit code %d; %s", code, s.err.String())
	}
	want := []string{"⟳ hello main@2222222 Progressing 1/2: as it is", "✔ hello main@2222222 Succeeded 2/2: as it is"}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(s.out.String()), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// until cancels after that many lines were written.
type until struct {
	bytes.Buffer
	lines  int
	cancel context.CancelFunc
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Count(u.String(), "\n") == u.lines {
		u.cancel()
	}
	return n, err
}

// TestTreeWatchedWithoutATerminal: one line per change, and nothing to redraw with.
func TestTreeWatchedWithoutATerminal(t *testing.T) {
	s := eventful(t)
	if code := s.run(t.Context(), "tree", "hello", "--watch"); code != 0 {
		t.Errorf("exit code %d; %s", code, s.err.String())
	}
	want := []string{"⟳ hello main@2222222 Progressing 1/2: as it is", "✔ hello main@2222222 Succeeded 2/2: as it is", "hello is gone"}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(s.out.String()), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGetWatched: the command prints the table, and then a row per change under the same header. For a deleted object
// it prints the last state, as kubectl does.
func TestGetWatched(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, out := eventful(t), &until{lines: 4, cancel: cancel}
	s.cli.Out = out
	if code := s.run(ctx, "get", "rollouts", "-w"); code != exitInterrupted {
		t.Errorf("exit code %d, want %d; %s", code, exitInterrupted, s.err.String())
	}
	want := []string{
		"NAME    READY     SUSPENDED   PHASE         REVISION       UPDATED   FAILED   STAGE   AGE",
		"hello   Unknown   False       Progressing   main@2222222   1/2       0        1/1     60m",
		"hello   Unknown   False   Succeeded   main@2222222   2/2   0     1/1   60m",
		"hello   Unknown   False   Succeeded   main@2222222   2/2   0     1/1   60m",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGetClustersWatched: after a rollout was deleted, the command continues with the others.
func TestGetClustersWatched(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := eventful(t)
	s.cli.explain = func(ctx context.Context, hub client.Client, key types.NamespacedName) (rollout.Plan, error) {
		if err := hub.Get(ctx, key, &v1alpha1.AddOnRollout{}); err != nil {
			cancel() // it is deleted; the command has the event or will get it
			return rollout.Plan{}, err
		}
		return explained(ctx, hub, key)
	}
	if code := s.run(ctx, "get", "clusters", "-w"); code != exitInterrupted {
		t.Errorf("exit code %d, want %d; %s", code, exitInterrupted, s.err.String())
	}
	if n := strings.Count(s.out.String(), "\n"); n != 3 {
		t.Errorf("the clusters stand there once, and no more: %s", s.out.String())
	}
}

// TestEventsWatched_OmitEventsThatTheHubDeletesAfterAnHour: printed again, they would look as if they had just happened.
func TestEventsWatched_OmitEventsThatTheHubDeletesAfterAnHour(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStageWith(t, interceptor.Funcs{Watch: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		w, err := hub.Watch(ctx, list, options...)
		if err != nil {
			return w, err
		}
		events := threeEvents()
		fresh, ok := events[1].DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("cannot copy a %T", events[1])
		}
		fresh.SetName("fresh")
		fresh.SetResourceVersion("")
		return w, errors.Join(hub.Delete(ctx, events[0]), hub.Create(ctx, fresh))
	}}, threeEvents()...)
	out := &until{lines: 3, cancel: cancel}
	s.cli.Out = out
	if code := s.run(ctx, "events", "-w", "--no-headers"); code != exitInterrupted {
		t.Errorf("exit code %d, want %d; %s", code, exitInterrupted, s.err.String())
	}
	if n := strings.Count(out.String(), "cannot read"); n != 1 {
		t.Errorf("the deleted event is printed %d times:\n%s", n, out)
	}
}

// TestScreen: cleared once, then drawn over from the top, line by line.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := screen{out: &out}
	for _, picture := range []string{"a\nb\n", "c\n"} {
		if err := s.draw(picture); err != nil {
			t.Fatal(err)
		}
	}
	const all, home, rest, below = "\x1b[2J", "\x1b[H", "\x1b[K\n", "\x1b[J"
	if want := all + home + "a" + rest + "b" + rest + below + home + "c" + rest + below; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestWide: what -o wide adds, for every kind.
func TestWide(t *testing.T) {
	for args, want := range map[string]string{
		"get sources -o wide": "NAME    READY   SUSPENDED   REVISION       ADD-ONS   AGE   MESSAGE   URL                                 PATH\n" +
			"fleet   True    False       main@2222222   0         60m   applied   https://git.example.com/fleet.git   –\n",
		"get rollouts -o wide": "NAME    READY     SUSPENDED   PHASE         REVISION       UPDATED   FAILED   STAGE   AGE   STABLE   MESSAGE\n" +
			"hello   Unknown   False       Progressing   main@2222222   1/2       0        1/1     60m   –        as it is\n",
		"get revisions -o wide": "NAME               ADD-ON   SUCCEEDED   QUARANTINED   AGE   DIGEST                                                                       REASON\n" +
			"hello-2222222222   hello    –           –             0s    " + digest + "   –\n",
		"get clusters -o wide": "CLUSTER   ROLLOUT   STAGE      STATE     REVISION           REASON                         SOAKING UNTIL   DEADLINE\n" +
			"eu-01     hello     canary     Done      hello-2222222222   –                              –               –\n" +
			"us-01     hello     everyone   Waiting   hello-2222222222   stage canary is not complete   –               –\n",
	} {
		t.Run(args, func(t *testing.T) {
			s := newStage(t, hello(v1alpha1.PhaseProgressing), fleetSource("True", "applied"), revision())
			if code := s.run(t.Context(), strings.Fields(args)...); code != 0 {
				t.Fatal(s.err.String())
			}
			if diff := cmp.Diff(want, s.out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
