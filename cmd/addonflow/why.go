package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/show"
)

// planned is the plan that the operator would make of a rollout now. It prints warnings about the
// values that it had to assume.
func (c *cli) planned(ctx context.Context, hub client.Client, r *v1alpha1.AddOnRollout) (rollout.Plan, error) {
	key := client.ObjectKeyFromObject(r)
	if r.Status.ParkAfter == nil {
		c.hint("warning: no operator has planned %s yet; its times assume --park-after=%s and --removal-grace-period=%s",
			rolloutKey(key), addonrollout.DefaultParkAfter, addonrollout.DefaultRemovalGrace)
	}
	plan, err := c.explain(ctx, hub, key)
	if missing, ok := errors.AsType[*addonrollout.MissingError](err); ok {
		c.hintMissing(r, missing)
		return plan, nil
	}
	return plan, hubError("plan "+rolloutKey(key), err)
}

// hintMissing says which clusters a missing AddOnRevision holds, and how to fix it.
func (c *cli) hintMissing(r *v1alpha1.AddOnRollout, missing *addonrollout.MissingError) {
	key := client.ObjectKeyFromObject(r)
	if !missing.Target {
		c.hint("warning: %s: %s; the clusters that run it are not repaired. They are moved in their turn, with the next content",
			rolloutKey(key), missing)
		return
	}
	c.hint("warning: %s: %s, the target; no cluster is admitted to it, and clusters that run it are not repaired",
		rolloutKey(key), missing)
	c.hint("Next: %s reconcile source %s -n %s, which writes it again if Git's newest commit has that content; otherwise restore it, or push a commit with new content",
		c.name, r.Spec.Target.Source, key.Namespace)
}

func newWhyCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why ROLLOUT CLUSTER",
		Short: "Print the one thing that a cluster waits for, or the reason of its state",
		Long: `Print the one thing that a cluster waits for, or the reason of its state.

Observes and plans as the operator does, with your own credentials and without
writing anything.`,
		Example: `  # Why has cluster eu-west-7 not got the new version yet?
  addonflow why hello eu-west-7
  # In another namespace
  addonflow why hello eu-west-7 -n fleet-system`,
		Args: takes,
		RunE: func(cmd *cobra.Command, args []string) error { return c.why(cmd.Context(), args[0], args[1]) },
	}
	cmd.ValidArgsFunction = c.completeRolloutAndCluster
	return c.command(cmd)
}

func (c *cli) why(ctx context.Context, name, cluster string) error {
	hub, r, err := c.rollout(ctx, name)
	if err != nil {
		return err
	}
	plan, err := c.planned(ctx, hub, r)
	if err != nil {
		return err
	}
	found, ok := plan.Why(cluster)
	if !ok {
		return &exitError{code: exitNotFound, err: fmt.Errorf("cannot find cluster %q in %s: neither its install strategy nor a stage selects it", cluster, rolloutKey(client.ObjectKeyFromObject(r)))}
	}
	if _, err := fmt.Fprintln(c.Out, reasonLine(show.ClusterOf(r, found))); err != nil {
		return err
	}
	if r, err = shown(ctx, hub, client.ObjectKeyFromObject(r)); err != nil {
		return err
	}
	if word, _ := show.PhaseOf(r); len(r.Status.CarriedOut) > 0 {
		c.hint("%s: %s", word, show.Message(r))
	}
	c.hintOverride(r)
	if o := r.Status.Override; o.Returns() && o.Proposed != "" {
		c.hint("The fleet differs from Git; this pull request makes Git agree:\n  %s", o.Proposed)
	}
	return nil
}

// reasonLine says where a cluster is and why, such as
//
//	c07: Waiting in stage everyone: stage canary is not complete (1/2)
//
// The end of a soak is part of the reason, in the words of the status.
func reasonLine(c show.Cluster) string {
	var b strings.Builder
	b.WriteString(c.Cluster + ": " + c.State)
	if c.Stage != "" {
		b.WriteString(" in stage " + c.Stage)
	}
	switch c.Revision {
	case "":
	case rollout.Foreign:
		b.WriteString(" with works that AddonFlow did not write")
	case rollout.Mixed:
		b.WriteString(" at no known revision")
	default:
		b.WriteString(" at " + c.Revision)
	}
	if reason := show.FirstLine(c.Reason); reason != "" {
		b.WriteString(": " + reason)
	}
	if c.Deadline != nil {
		b.WriteString(", deadline " + clock.Text(*c.Deadline, time.Now()))
	}
	return b.String()
}

// completeRolloutAndCluster offers the rollouts to the shell, and then the clusters of the one that was chosen.
func (c *cli) completeRolloutAndCluster(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return only(c.completeNames(&v1alpha1.AddOnRolloutList{}))(cmd, args, word)
	}
	hub, key, err := c.open(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	plan, err := c.explain(cmd.Context(), hub, key)
	if _, missing := errors.AsType[*addonrollout.MissingError](err); err != nil && !missing {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]cobra.Completion, 0, len(plan.Clusters))
	for _, cluster := range plan.Clusters {
		names = append(names, cluster.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
