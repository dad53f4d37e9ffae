package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/show"
)

func newDiffCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff ROLLOUT [CLUSTER]",
		Short: "Print what the target of a rollout changes on a cluster",
		Long: `Print what the target of a rollout changes on a cluster.

The command renders the content that the cluster runs and the target, with your own
credentials and without writing anything, and prints their difference as a unified diff per
object. If the rollout has moved the cluster to the target already, it compares what the
cluster ran before. The values of Secrets are masked. Without a cluster it takes the first one
that does not run the target. The same for a commit that is not merged yet: plan.`,
		Example: `  # What does the rollout change on a cluster?
  addonflow diff hello
  # On one cluster, with its own values
  addonflow diff hello eu-west-7`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.diff(cmd.Context(), args[0], strings.Join(args[1:], ""))
		},
	}
	cmd.ValidArgsFunction = c.completeRolloutAndCluster
	return c.command(cmd)
}

// diff prints the difference on stdout. Which commits and which cluster it compares, or why there is nothing to compare,
// goes to stderr.
func (c *cli) diff(ctx context.Context, name, cluster string) error {
	hub, r, err := c.rollout(ctx, name)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(r)
	if r.Spec.Target == nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("%s has no target yet: its source has not declared the add-on", rolloutKey(key))}
	}
	change, err := c.changeOn(ctx, hub, key, cluster)
	if missing, ok := errors.AsType[*addonrollout.MissingError](err); ok {
		return &exitError{code: exitFailed, err: missing}
	}
	if errors.Is(err, addonrollout.ErrNoSuchCluster) {
		return &exitError{code: exitNotFound, err: fmt.Errorf("cannot find cluster %q in %s: neither its install strategy nor a stage selects it", cluster, rolloutKey(key))}
	}
	if err != nil {
		return hubError("show the change of "+rolloutKey(key), err)
	}
	target := show.ShortCommit(change.To.Commit)
	defer c.hintOverride(r)
	switch {
	case change.Cluster == "":
		c.hint("Every cluster of %s runs the target, %s.", rolloutKey(key), target)
		return nil
	case change.From != nil && change.From.Digest == change.To.Digest:
		c.hint("This rollout does not change %s, which ran the content of %s before.", change.Cluster, target)
		return nil
	}
	diff, err := c.terminal().style.Diff(change.Before, change.After)
	if err != nil {
		return err
	}
	from := "nothing"
	if t := change.From; t != nil {
		from = cmp.Or(show.ShortCommit(t.Commit), t.Revision)
	}
	c.hint("From %s to %s on %s:", from, target, change.Cluster)
	if diff == "" {
		c.hint("no difference")
	}
	_, err = fmt.Fprint(c.Out, diff)
	return err
}

// hintOverride says that the target is not the content of Git, and why.
func (c *cli) hintOverride(r *v1alpha1.AddOnRollout) {
	o := r.Status.Override
	switch {
	case o == nil || !show.Current(r):
	case o.Waits():
		c.hint("Git declares %s, which waits until the clusters are at the target: %s",
			show.ShortCommit(o.Declared.Commit), show.Command(c.name, "status", r.Name, "-n", r.Namespace))
	default:
		c.hint("Git declares %s, which is quarantined or blocked (%s). What ends that: %s",
			show.ShortCommit(o.Declared.Commit), show.FirstLine(o.Reason), show.Command(c.name, "status", r.Name, "-n", r.Namespace))
	}
}
