package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

type reconcileOptions struct {
	*cli
	wait    bool
	force   bool
	timeout time.Duration
}

func newReconcileCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "reconcile", Short: "Ask the operator to reconcile a source or rollout now"}
	return c.eachTarget(cmd, func(t target) *cobra.Command {
		o := &reconcileOptions{cli: c}
		sub := &cobra.Command{
			Short: "Reconcile a " + t.kind + " now, with the annotation " + meta.ReconcileRequestAnnotation,
			Long: "Reconcile a " + t.kind + " now, with the annotation " + meta.ReconcileRequestAnnotation + ".\n\n" +
				"With --wait the command prints what the operator finds, and prints it again when it\n" +
				"changes. It ends with an outcome, such as a refused commit. While the operator retries,\n" +
				"for example to read a repository, it waits until the timeout (exit code 3)." + t.differs,
			Example: fmt.Sprintf(`  # Right after a push
  addonflow reconcile %[1]s %[2]s
  # Wait for the outcome
  addonflow reconcile %[1]s %[2]s --wait --timeout 2m`, t.kind, t.example),
			RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), t, args[0]) },
		}
		if t.kind == sourceTarget().kind {
			sub.Flags().BoolVar(&o.force, "force", false, "Read and check the commit again, and take its add-ons and commit statuses over again from other writers, with the annotation "+meta.ForceRequestAnnotation+".")
		}
		sub.Flags().BoolVar(&o.wait, "wait", false, "Wait until the request is carried out and there is an outcome.")
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
	annotations := map[string]string{meta.ReconcileRequestAnnotation: request}
	if o.force {
		annotations[meta.ForceRequestAnnotation] = request // the annotation counts only together with an equal request
	}
	object, err := annotate(ctx, hub, t, key, annotations)
	if err != nil {
		return err
	}
	if !o.wait {
		_, err = fmt.Fprintf(o.Out, "%s %s: reconciliation requested\n", t.kind, key)
		return err
	}
	o.hint("► waiting for the operator to reconcile %s %s", t.kind, key)
	return o.await(ctx, hub, t, object, request)
}

// await returns when the operator has reconciled the object for this request and the result is final. It waits while
// the result can still change by itself, for instance while a Placement does not exist yet.
func (o *reconcileOptions) await(ctx context.Context, hub client.WithWatch, t target, asked client.Object, request string) error {
	key := client.ObjectKeyFromObject(asked)
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	var last client.Object
	outcome := show.Running
	said := ""
	f := follower{
		hub: hub, list: t.list,
		options: []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name}},
		see: func(changes []change) error {
			for _, ch := range changes {
				switch {
				case ch.object.GetName() != key.Name:
					continue
				case ch.kind == watch.Deleted && leaving(last):
					outcome = show.Succeeded
					return errSeenEnough
				case ch.kind == watch.Deleted:
					return &exitError{code: exitNotFound, err: fmt.Errorf("%s %s is gone", t.kind, key)}
				case t.handled(ch.object) != request:
					asked = ch.object
					continue
				}
				last, outcome = ch.object, t.outcome(ch.object)
				if outcome != show.Running {
					return errSeenEnough
				}
				// A retry or a wait may take as long as the timeout, so it is printed now.
				if reason := show.FirstLine(readyMessage(t.conditions(last))); reason != said {
					said = reason
					o.hint("⟳ %s %s: %s", t.kind, key, reason)
				}
			}
			return nil
		},
	}
	err := f.runFrom(ctx, asked)
	var exit *exitError
	switch {
	case errors.As(err, &exit):
		return exit
	case errors.Is(err, context.DeadlineExceeded) && last != nil:
		return o.report(t, last, outcome)
	case errors.Is(err, context.DeadlineExceeded) && t.outcome(asked) == show.Failed:
		return &exitError{code: exitTimeout, err: fmt.Errorf("the request to %s %s was not carried out within %s: %s", t.kind, key, o.timeout, readyMessage(t.conditions(asked)))}
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{code: exitTimeout, err: fmt.Errorf("%s %s was not reconciled within %s: is the operator running, and does it watch this namespace?", t.kind, key, o.timeout)}
	case err != nil:
		return hubError("watch "+t.kind+" "+key.String(), err)
	}
	if t.kind != sourceTarget().kind || outcome != show.Succeeded {
		return o.report(t, last, outcome)
	}
	differ, err := o.returned(ctx, hub, key)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		outcome = show.Waiting
	}
	err = o.report(t, last, outcome)
	for _, r := range differ {
		o.hint("%s", o.terminal().style.Line(r))
		o.hintNext(rolloutTarget(), r, show.Waiting)
	}
	return err
}

// plannedWithin is how long the result of a source waits for the first plans of the applied rollouts. A running
// operator plans at once. Until then it is not known whether the content is quarantined.
const plannedWithin = 10 * time.Second

// returned are the rollouts of a source whose clusters moved back from the content that the source declares. Newer
// content that waits for them is not refused.
func (o *reconcileOptions) returned(ctx context.Context, hub client.Reader, source client.ObjectKey) ([]*v1alpha1.AddOnRollout, error) {
	var differ []*v1alpha1.AddOnRollout
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, plannedWithin, true, func(ctx context.Context) (bool, error) {
		var list v1alpha1.AddOnRolloutList
		if err := hub.List(ctx, &list, client.InNamespace(source.Namespace)); err != nil {
			return false, hubError("list the rollouts of source "+source.String(), err)
		}
		planned := true
		differ = nil
		for i := range list.Items {
			r := &list.Items[i]
			switch {
			case r.Spec.Target == nil || r.Spec.Target.Source != source.Name || leaving(r):
			case !show.Current(r):
				planned = false
			case r.Status.Override.Returns() && !r.Status.Override.Waits():
				differ = append(differ, r)
			}
		}
		return planned, nil
	})
	if wait.Interrupted(err) {
		return differ, nil
	}
	return differ, err
}

// report prints the result of the operator. The returned error has the exit code of the outcome.
func (o *reconcileOptions) report(t target, object client.Object, outcome show.Outcome) error {
	marks := map[show.Outcome]string{show.Succeeded: "✔", show.Failed: "✗", show.Waiting: "⏸", show.Running: "⟳"}
	key := client.ObjectKeyFromObject(object)
	if _, err := fmt.Fprintf(o.Out, "%s %s %s: %s\n", marks[outcome], t.kind, key, readyMessage(t.conditions(object))); err != nil {
		return err
	}
	if outcome == show.Running {
		o.hint("%s %s still reconciling after %s", t.kind, key, o.timeout)
	}
	o.hintNext(t, object, outcome)
	return exitOf(outcome)
}
