package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/cmd/addonflow/show"
)

// statusOptions are the flags of `status`.
type statusOptions struct {
	*cli
	watch   bool
	timeout time.Duration
}

// newStatusCommand is `status`.
func newStatusCommand(c *cli) *cobra.Command {
	o := &statusOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "status ROLLOUT",
		Short: "Say how a rollout stands; the exit code tells a script the outcome",
		Long: `Say how a rollout stands; the exit code tells a script the outcome.

With --watch, one line per change until the rollout has an outcome: succeeded,
failed, or waiting for somebody.`,
		Example: `  # In a pipeline, after a push
  addonflow reconcile source fleet --wait && addonflow status hello --watch --timeout 30m
  # Is it done?
  addonflow status hello`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: only(c.completeNames(&v1alpha1.AddOnRolloutList{})),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Go on with every change until there is an outcome.")
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
	var r v1alpha1.AddOnRollout
	if err := hub.Get(ctx, key, &r); err != nil {
		return hubError("read "+rolloutKey(key), err)
	}
	if err := lines.write(&r); err != nil {
		return err
	}
	o.hintRefused(ctx, hub, &r)
	return o.verdict(&r)
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
		last = r
		if err := lines.write(r); err != nil {
			return err
		}
		if show.OutcomeOf(r) != show.Running {
			return errSeenEnough
		}
		return nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && o.timeout > 0:
		return &exitError{code: exitTimeout, err: fmt.Errorf("%s still progressing after %s", key.Name, o.timeout)}
	case err != nil:
		return hubError("watch "+rolloutKey(key), err)
	}
	if show.OutcomeOf(last) == show.Running {
		if leaving(last) {
			return nil
		}
		return &exitError{code: exitNotFound, err: fmt.Errorf("%s is gone", rolloutKey(key))}
	}
	o.hintRefused(ctx, hub, last)
	return o.verdict(last)
}

// hintRefused says that the outcome is not that of the newest commit, when the source
// refused that one. It is a hint alone: a source that cannot be read has none.
func (o *statusOptions) hintRefused(ctx context.Context, hub client.Reader, r *v1alpha1.AddOnRollout) {
	if r.Spec.Target == nil {
		return
	}
	var source v1alpha1.AddOnSource
	key := types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.Target.Source}
	if err := hub.Get(ctx, key, &source); err != nil {
		return
	}
	s := source.Status
	if s.LastAttemptedRevision == s.LastAppliedRevision || s.LastAttemptedRevision == r.Spec.Target.Commit ||
		!apimeta.IsStatusConditionTrue(s.Conditions, meta.StalledCondition) {
		return
	}
	o.hint("warning: source %s refused %s, so this is about a commit before it; see: addonflow get sources %s -n %s",
		source.Name, s.LastAttemptedRevision, source.Name, source.Namespace)
}

// verdict is the exit code of an outcome, and what a person might do next.
func (o *statusOptions) verdict(r *v1alpha1.AddOnRollout) error {
	outcome := show.OutcomeOf(r)
	switch outcome {
	case show.Failed:
		o.hint("Next: addonflow tree %s -n %s, then fix it in Git or revert the commit", r.Name, r.Namespace)
	case show.Waiting:
		o.hint("Next: addonflow tree %s -n %s; a suspended rollout goes on with: addonflow resume rollout %s -n %s",
			r.Name, r.Namespace, r.Name, r.Namespace)
	case show.Running, show.Succeeded:
	}
	return exitOf(outcome)
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

// leaving tells whether an object is a rollout whose last step is that it goes itself.
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

// write writes the line of a rollout, unless it is the one before.
func (w *lineWriter) write(r *v1alpha1.AddOnRollout) error {
	line := w.style.Line(r)
	if line == w.last {
		return nil
	}
	w.last = line
	_, err := fmt.Fprintln(w.out, line)
	return err
}
