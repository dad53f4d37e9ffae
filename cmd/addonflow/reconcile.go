package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcileOptions are the flags of `reconcile`.
type reconcileOptions struct {
	*cli
	wait    bool
	timeout time.Duration
}

// newReconcileCommand is `reconcile`.
func newReconcileCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "reconcile", Short: "Ask the operator to look at a source or rollout now"}
	return c.eachTarget(cmd, func(t target) *cobra.Command {
		o := &reconcileOptions{cli: c}
		sub := &cobra.Command{
			Short: "Reconcile a " + t.kind + " now, with the annotation " + meta.ReconcileRequestAnnotation,
			Example: fmt.Sprintf(`  # Right after a push
  addonflow reconcile %[1]s hello
  # Return when the operator has looked, with what it found
  addonflow reconcile %[1]s hello --wait --timeout 2m`, t.kind),
			RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), t, args[0]) },
		}
		sub.Flags().BoolVar(&o.wait, "wait", false, "Return when the request was worked on.")
		sub.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "Give up waiting after this long; 0: never.")
		return sub
	})
}

func (o *reconcileOptions) run(ctx context.Context, t target, name string) error {
	hub, key, err := o.open(name)
	if err != nil {
		return err
	}
	request := o.now().UTC().Format(time.RFC3339Nano)
	if _, err := annotate(ctx, hub, t, key, meta.ReconcileRequestAnnotation, request); err != nil {
		return err
	}
	if !o.wait {
		_, err = fmt.Fprintf(o.Out, "%s %s: reconciliation requested\n", t.kind, key)
		return err
	}
	o.hint("► waiting for the operator to look at %s %s", t.kind, key)
	return o.await(ctx, hub, t, key, request)
}

// await returns when the request was worked on, with what came of it. A source that
// waits for something to appear on the hub counts as worked on: it says so.
func (o *reconcileOptions) await(ctx context.Context, hub client.WithWatch, t target, key types.NamespacedName, request string) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	var last client.Object
	f := follower{
		hub: hub, list: t.list,
		options: []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}},
		see: func(changes []change) error {
			for _, ch := range changes {
				switch {
				case ch.object.GetName() != key.Name:
					continue
				case ch.kind == watch.Deleted:
					return &exitError{code: exitNotFound, err: fmt.Errorf("%s %s is gone", t.kind, key)}
				}
				last = ch.object
				if t.handled(last) == request {
					return errSeenEnough
				}
			}
			return nil
		},
	}
	err := f.run(ctx)
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{code: exitTimeout, err: fmt.Errorf("%s %s was not looked at within %s: is the operator running?", t.kind, key, o.timeout)}
	case err != nil:
		return hubError("watch "+t.kind+" "+key.String(), err)
	}
	return o.outcome(t, key, last)
}

// outcome prints what the operator found.
func (o *reconcileOptions) outcome(t target, key types.NamespacedName, object client.Object) error {
	ready, message := readyLine(t.conditions(object))
	icons := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "✔", metav1.ConditionFalse: "✗", metav1.ConditionUnknown: "⟳"}
	if _, err := fmt.Fprintf(o.Out, "%s %s %s: %s\n", icons[ready], t.kind, key, message); err != nil {
		return err
	}
	if ready == metav1.ConditionFalse {
		return &exitError{code: exitFailed}
	}
	return nil
}
