package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// answering is a hub on which alice works, and whose operator answers each order at once.
func answering(state v1alpha1.OrderState, message string, given *v1alpha1.AddOnOrderSpec) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		switch object := o.(type) {
		case *authenticationv1.SelfSubjectReview:
			object.Status.UserInfo.Username = "alice"
			return nil
		case *v1alpha1.AddOnOrder:
			*given = object.Spec
			object.Status = v1alpha1.AddOnOrderStatus{State: state, Message: message}
		}
		return c.Create(ctx, o, options...)
	}}
}

// TestOrderOfASuspendedRolloutNamesResume: the order is carried out, and no cluster moves before resume.
func TestOrderOfASuspendedRolloutNamesResume(t *testing.T) {
	r := hello(v1alpha1.PhaseSuspended)
	r.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"}
	s := newStageWith(t, answering(v1alpha1.OrderCarriedOut, "done", &v1alpha1.AddOnOrderSpec{}), r)
	want := "Next: Continue the rollout.\n  addonflow resume rollout hello -n default\n"
	if code := s.run(t.Context(), "rollback", "hello", "-m", "leaks"); code != 0 || s.err.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, s.err.String(), want)
	}
}

// TestOrderThatTheHubFindsInvalidIsRefusedInput: the hub was reached, and its answer is about the argument.
func TestOrderThatTheHubFindsInvalidIsRefusedInput(t *testing.T) {
	s := newStageWith(t, interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		if _, order := o.(*v1alpha1.AddOnOrder); order {
			return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("AddOnOrder").GroupKind(), "x", nil)
		}
		return nil
	}}, hello(v1alpha1.PhaseSucceeded))
	if code := s.run(t.Context(), "rollback", "hello", "--to", "x", "-m", "leaks"); code != exitFailed {
		t.Errorf("exit code %d, want %d: %s", code, exitFailed, s.err.String())
	}
}

// TestUnblockOfAWholeDigestNeedsNoRightToListContents: the smallest Role of the guide does not have it.
func TestUnblockOfAWholeDigestNeedsNoRightToListContents(t *testing.T) {
	var given v1alpha1.AddOnOrderSpec
	hub := answering(v1alpha1.OrderCarriedOut, "done", &given)
	hub.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("addonrevisions").GroupResource(), "", nil)
	}
	s := newStageWith(t, hub, hello(v1alpha1.PhaseRolledBack))
	if code := s.run(t.Context(), "unblock", "hello", digest); code != 0 || given.Digest != digest {
		t.Errorf("exit code %d, digest %q: %s", code, given.Digest, s.err.String())
	}
}

// The commands create orders in the user's own name, about the current content and attempt, and print the
// operator's answer.
func TestOrders_AreGivenAndAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		args  string
		state v1alpha1.OrderState
		want  v1alpha1.AddOnOrderSpec
		out   string
		code  int
	}{
		"Retry": {
			args: "retry hello -m again", state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderRetry, Reason: "again"},
		},
		"RetryOfClusters": {
			args: "retry hello c1 c2", state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderRetry, Arguments: &v1alpha1.OrderArguments{Clusters: []string{"c1", "c2"}}},
		},
		"Promote": {
			args: "promote hello canary", state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderPromote, Arguments: &v1alpha1.OrderArguments{Stage: "canary"}},
		},
		"RefusedAbort": {
			args: "abort hello", state: v1alpha1.OrderRefused, out: "refused: done", code: exitFailed,
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderAbort},
		},
		"Rollback": {
			args: "rollback hello --to 9f3c2ab --with-crds -m leaks", state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderRollback, Reason: "leaks", Arguments: &v1alpha1.OrderArguments{To: "9f3c2ab", WithCRDs: true}},
		},
		"RollbackToTheFirstDigitsOfADigest": {
			args: "rollback hello --to v1:sha256:3333333333 -m leaks", state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderRollback, Reason: "leaks", Arguments: &v1alpha1.OrderArguments{To: "3333333333"}},
		},
		"RollbackToADigest": {
			args: "rollback hello --to " + digest + " -m leaks", state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderRollback, Reason: "leaks", Arguments: &v1alpha1.OrderArguments{To: digest}},
		},
		"RollbackWithoutReason": {args: "rollback hello", out: "say it with -m", code: exitUsage},
		"UnblockOfADigest": {
			args: "unblock hello " + digest, state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderUnblock, Digest: digest},
		},
		"UnblockOfItsFirstDigits": {
			args: "unblock hello 3333333333", state: v1alpha1.OrderCarriedOut, out: "carried out: done",
			want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderUnblock, Digest: "v1:sha256:" + strings.Repeat("3", 64)},
		},
		"UnblockOfUnknown":   {args: "unblock hello 4444444444", out: `no content of hello has a digest that begins with "4444444444"; see addonflow history hello -n default`, code: exitNotFound},
		"UnblockOfAmbiguous": {args: "unblock hello v1:sha256:", out: `several digests begin with "v1:sha256:"`, code: exitFailed},
		"NoAnswer":           {args: "abort hello --timeout=300ms", out: "no answer within 300ms", code: exitTimeout, want: v1alpha1.AddOnOrderSpec{Verb: v1alpha1.OrderAbort}},
		"TooManyArgs":        {args: "abort hello c1", out: "it takes ROLLOUT", code: exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			r := hello(v1alpha1.PhaseFailed)
			r.UID, r.Status.Attempt = "uid-1", 3
			r.Status.History = []v1alpha1.HistoryEntry{{Target: v1alpha1.Target{Digest: "v1:sha256:" + strings.Repeat("3", 64)}}}
			var given v1alpha1.AddOnOrderSpec
			s := newStageWith(t, answering(c.state, "done", &given), r)
			code := s.run(t.Context(), strings.Fields(c.args)...)
			if text := s.out.String() + s.err.String(); code != c.code || !strings.Contains(text, c.out) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, text)
			}
			if c.want.Verb == "" {
				return
			}
			c.want.RolloutUID, c.want.Rollout, c.want.Author, c.want.Attempt = "uid-1", "hello", "alice", 3
			if c.want.Digest == "" {
				c.want.Digest = r.Status.Target.Digest
			}
			if diff := cmp.Diff(c.want, given); diff != "" {
				t.Error(diff)
			}
		})
	}
}
