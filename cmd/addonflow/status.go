package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

type statusOptions struct {
	*cli
	watch   bool
	timeout time.Duration
}

func newStatusCommand(c *cli) *cobra.Command {
	o := &statusOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "status ROLLOUT",
		Short: "Print the state of a rollout, with its outcome as exit code",
		Long: `Print the state of a rollout, with its outcome as exit code.

With --watch, one line per change until the rollout has an outcome: succeeded,
failed, or waiting for a user.

The exit code is also 1 while the source refuses its newest commit or is stalled: the state
is then that of an older commit. It says nothing about a commit that the source has not read
yet. After a push, make the source read it first, as in the example.`,
		Example: `  # In a pipeline, after a push
  addonflow reconcile source fleet --wait && addonflow status hello --watch --timeout 30m
  # Is it done?
  addonflow status hello`,
		Args:              takes,
		ValidArgsFunction: only(c.completeNames(&v1alpha1.AddOnRolloutList{})),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print every change until there is an outcome.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "Give up watching after this long; 0: never.")
	return c.command(cmd)
}

func (o *statusOptions) run(ctx context.Context, name string) error {
	if o.timeout != 0 && !o.watch {
		return &exitError{code: exitUsage, err: errors.New("cannot use --timeout without --watch")}
	}
	hub, key, err := o.open(name)
	if err != nil {
		return err
	}
	lines := lineWriter{out: o.Out, style: o.terminal().style}
	if o.watch {
		return o.await(ctx, hub, key, &lines)
	}
	r, err := shown(ctx, hub, key)
	if err != nil {
		return err
	}
	if err := lines.write(r); err != nil {
		return err
	}
	return o.verdict(ctx, hub, r)
}

// await prints every change until there is an outcome.
func (o *statusOptions) await(ctx context.Context, hub client.WithWatch, key types.NamespacedName, lines *lineWriter) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	var last *v1alpha1.AddOnRollout
	err := followRollout(ctx, hub, key, func(r *v1alpha1.AddOnRollout) error {
		if r == nil {
			return errSeenEnough
		}
		orders, err := ordersIn(ctx, hub, key.Namespace)
		for last = show.WithOrders(r, orders); err == nil; last, err = shown(ctx, hub, key) {
			if err := lines.write(last); err != nil {
				return err
			}
			if len(last.Status.CarriedOut) == 0 {
				break
			}
			if err := pause(ctx, answersEvery); err != nil {
				return err
			}
		}
		switch {
		case apierrors.IsNotFound(err):
			last = r // the watch reports the deletion
			return nil
		case err == nil && show.OutcomeOf(last) != show.Running:
			return errSeenEnough
		}
		return err
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && o.timeout > 0:
		return &exitError{code: exitTimeout, err: fmt.Errorf("%s is still progressing after %s; see addonflow tree %s -n %s", rolloutKey(key), o.timeout, key.Name, key.Namespace)}
	case err != nil:
		return hubError("watch "+rolloutKey(key), err)
	}
	if show.OutcomeOf(last) == show.Running {
		if leaving(last) {
			return nil
		}
		return &exitError{code: exitNotFound, err: fmt.Errorf("%s was deleted before it ended; addonflow get rollouts -n %s lists the others", rolloutKey(key), key.Namespace)}
	}
	return o.verdict(ctx, hub, last)
}

// answersEvery is the time between two reads of a rollout while an order has no answer, because a refused order
// changes no rollout.
const answersEvery = 500 * time.Millisecond

// pause waits, or returns the error of the context.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// verdict is the exit code of an outcome, with a hint. If the source refuses a newer commit, it is a failure even if
// the current rollout succeeded: a script that just pushed must not treat that as the outcome of its commit.
func (o *statusOptions) verdict(ctx context.Context, hub client.Reader, r *v1alpha1.AddOnRollout) error {
	if err := o.refused(ctx, hub, r); err != nil {
		return err
	}
	outcome := show.OutcomeOf(r)
	o.hintNext(rolloutTarget(), r, outcome)
	return exitOf(outcome)
}

// refused returns an error if the rollout's source refused its newest commit, or is stalled. If the source does
// not exist, there is no error; if it cannot be read or is suspended, refused says so.
func (o *statusOptions) refused(ctx context.Context, hub client.Reader, r *v1alpha1.AddOnRollout) error {
	if r.Spec.Target == nil {
		return nil
	}
	var source v1alpha1.AddOnSource
	key := types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.Target.Source}
	err := hub.Get(ctx, key, &source)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		o.hint("warning: cannot read source %s, so whether it refused a newer commit is not known: %s", key, err)
		return nil
	}
	switch why := show.Refusal(&source); {
	case why != "":
		o.hint("✗ source %s %s; rollout %s is of what was applied before", key, why, r.Name)
		o.hintNext(sourceTarget(), &source, show.Failed)
		return &exitError{code: exitFailed}
	case show.SourceOutcome(&source) == show.Waiting:
		o.hint("source %s is suspended: it reads no newer commit", key)
		o.hintNext(sourceTarget(), &source, show.Waiting)
	}
	return nil
}

// exitOf is the exit code of an outcome, for every command that has one.
func exitOf(outcome show.Outcome) error {
	switch outcome {
	case show.Succeeded:
		return nil
	case show.Failed:
		return &exitError{code: exitFailed}
	case show.Waiting:
		return &exitError{code: exitSuspended}
	case show.Running:
	}
	return &exitError{code: exitTimeout}
}

// leaving reports whether an object is a rollout that ends with its own deletion.
func leaving(object client.Object) bool {
	r, ok := object.(*v1alpha1.AddOnRollout)
	return ok && (r.Status.Phase == v1alpha1.PhaseRemoving || r.Status.Phase == v1alpha1.PhaseRemoved)
}

// lineWriter writes one line per change of a rollout.
type lineWriter struct {
	out   io.Writer
	style show.Style
	last  string
}

// write writes the line of a rollout, unless it equals the previous line.
func (w *lineWriter) write(r *v1alpha1.AddOnRollout) error {
	line := w.style.Line(r)
	if line == w.last {
		return nil
	}
	w.last = line
	_, err := fmt.Fprintln(w.out, line)
	return err
}
