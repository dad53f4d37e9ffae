package main

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// orderOf is an order about a rollout that the operator has not answered.
func orderOf(r *v1alpha1.AddOnRollout, verb v1alpha1.OrderVerb) *v1alpha1.AddOnOrder {
	return &v1alpha1.AddOnOrder{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name + "-" + string(verb)},
		Spec: v1alpha1.AddOnOrderSpec{
			RolloutUID: r.UID, Rollout: r.Name, Verb: verb, Digest: digest, Attempt: 1, Author: "ann", Reason: "wrong region",
		},
	}
}

// helloWithUID is a rollout that orders can name.
func helloWithUID(phase v1alpha1.Phase) *v1alpha1.AddOnRollout {
	r := hello(phase)
	r.UID = "rollout-1"
	return r
}

func TestStatus_IsPendingUntilEveryOrderIsAnswered(t *testing.T) {
	for phase, verb := range map[v1alpha1.Phase]v1alpha1.OrderVerb{
		v1alpha1.PhaseHeld: v1alpha1.OrderAbort, v1alpha1.PhaseFailed: v1alpha1.OrderRetry, v1alpha1.PhaseSucceeded: v1alpha1.OrderRollback,
	} {
		r := helloWithUID(phase)
		want := "Pending: waits for the operator to answer the order of ann: " + string(verb) + " (wrong region)"
		for _, args := range []string{"status hello", "status hello --watch --timeout 10ms"} {
			s := newStage(t, r, orderOf(r, verb))
			if code := s.run(t.Context(), strings.Fields(args)...); code != exitTimeout || !strings.Contains(s.out.String(), want) {
				t.Errorf("%s, %s: exit code %d, want %d; %q does not have %q", phase, args, code, exitTimeout, s.out.String(), want)
			}
		}
		s := newStage(t, r, orderOf(r, verb))
		if code := s.run(t.Context(), "why", "hello", "us-01"); code != 0 || !strings.Contains(s.err.String(), want) {
			t.Errorf("why: exit code %d, %q does not have %q", code, s.err.String(), want)
		}
	}
}

func TestGetRollouts_ArePendingUntilEveryOrderIsAnswered(t *testing.T) {
	r := helloWithUID(v1alpha1.PhaseFailed)
	other := helloWithUID(v1alpha1.PhaseHeld)
	other.Name, other.UID = "other", "rollout-2"
	for _, args := range []string{"get rollouts", "get rollouts -A", "get rollouts --no-headers"} {
		lists := 0
		s := newStageWith(t, interceptor.Funcs{List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return hub.List(ctx, list, options...)
		}}, r, other, orderOf(r, v1alpha1.OrderRetry))
		code := s.run(t.Context(), strings.Fields(args)...)
		shown := map[string]bool{}
		for line := range strings.Lines(s.out.String()) {
			shown["hello is pending"] = shown["hello is pending"] || strings.Contains(line, "hello ") && strings.Contains(line, "Pending")
			shown["other is held"] = shown["other is held"] || strings.Contains(line, "other ") && strings.Contains(line, "Held")
		}
		if code != 0 || !shown["hello is pending"] || !shown["other is held"] || lists != 2 {
			t.Errorf("%s: exit code %d, %d lists\n%s", args, code, lists, s.out.String())
		}
	}
}

func TestStatus_DoesNotWaitForOrdersThatAreAnsweredOrOfAnotherRollout(t *testing.T) {
	r := helloWithUID(v1alpha1.PhaseSucceeded)
	answered, other := orderOf(r, v1alpha1.OrderRetry), orderOf(r, v1alpha1.OrderAbort)
	answered.Status.State, other.Spec.RolloutUID = v1alpha1.OrderRefused, "rollout-0"
	s := newStage(t, r, answered, other)
	if code := s.run(t.Context(), "status", "hello"); code != 0 {
		t.Errorf("exit code %d, %s", code, s.out.String())
	}
}

// The operator refuses the order, which changes nothing in the rollout that the command could watch.
func TestStatus_WatchEndsWhenTheLastOrderIsRefused(t *testing.T) {
	r := helloWithUID(v1alpha1.PhaseHeld)
	order, lists := orderOf(r, v1alpha1.OrderPromote), 0
	s := newStageWith(t, interceptor.Funcs{List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		err := hub.List(ctx, list, options...)
		if orders, ok := list.(*v1alpha1.AddOnOrderList); ok {
			if lists++; lists > 1 {
				orders.Items[0].Status.State = v1alpha1.OrderRefused
			}
		}
		return err
	}}, r, order)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if code := s.run(ctx, "status", "hello", "--watch"); code != exitSuspended || !strings.Contains(s.out.String(), "Held") {
		t.Errorf("exit code %d, %s", code, s.out.String())
	}
}

func TestStatus_OfAUserWithoutTheRightToListOrders(t *testing.T) {
	r := helloWithUID(v1alpha1.PhaseHeld)
	s := newStageWith(t, interceptor.Funcs{List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.AddOnOrderList); ok {
			return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "addonorders"}, "", nil)
		}
		return hub.List(ctx, list, options...)
	}}, r, orderOf(r, v1alpha1.OrderAbort))
	if code := s.run(t.Context(), "status", "hello"); code != exitSuspended || !strings.Contains(s.out.String(), "Held") {
		t.Errorf("exit code %d, %s%s", code, s.out.String(), s.err.String())
	}
}
