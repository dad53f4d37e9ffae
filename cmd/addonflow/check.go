package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
)

func newCheckCommand(c *cli) *cobra.Command {
	var pre bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that the hub has what AddonFlow needs, and that AddonFlow is installed",
		Long: `Check that the hub has what AddonFlow needs, and that AddonFlow is installed.

With --pre, before an installation: the kinds of OCM and Kubernetes that the operator reads,
clusters that have joined, and your own rights to install. Without it, afterwards: also
AddonFlow's kinds, the policy that proves the authors of approvals, and a leading operator.`,
		Example: `  # Can it be installed here?
  addonflow check --pre
  # Is it running?
  addonflow check`,
		Args: takesKind,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.checkHub(cmd.Context(), pre) },
	}
	cmd.Flags().BoolVar(&pre, "pre", false, "Check a hub on which AddonFlow is not installed yet.")
	c.command(cmd)
	cmd.AddCommand(newCheckForgeCommand(c))
	return cmd
}

func newCheckForgeCommand(c *cli) *cobra.Command {
	var commit string
	cmd := &cobra.Command{
		Use:   "forge NAME",
		Short: "Check that a source's forge takes and shows commit statuses",
		Long: `Check that a source's forge takes and shows commit statuses.

The command reads commitStatus of the AddOnSource and its Secret, posts every kind of
status that the operator posts to one commit, and reads each back. It uses the contexts
` + commitstatus.CheckContext + ` and ` + commitstatus.CheckContext + `/xxx..., and leaves both as success: forges do
not delete statuses. Give it a commit of a branch of its own, and delete that branch
afterwards.`,
		Example: `  git switch --orphan addonflow-check && git commit --allow-empty -m "check the forge"
  git push origin addonflow-check
  addonflow check forge fleet --commit "$(git rev-parse addonflow-check)"
  git push origin --delete addonflow-check && git switch main && git branch -D addonflow-check`,
		Args:              takes,
		ValidArgsFunction: only(c.completeNames(&v1alpha1.AddOnSourceList{})),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.checkForge(cmd.Context(), args[0], commit) },
	}
	cmd.Flags().StringVar(&commit, "commit", "", "The full sha of a commit that the forge has.")
	_ = cmd.MarkFlagRequired("commit")
	return c.command(cmd)
}

// fullSHA matches the form that forges accept: they do not complete the first digits of a commit.
var fullSHA = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// checkForge runs the check and prints each finding at once.
func (c *cli) checkForge(ctx context.Context, name, commit string) error {
	if !fullSHA.MatchString(commit) {
		return &exitError{code: exitUsage, err: fmt.Errorf("--commit %q is not the full sha of a commit: use git rev-parse", commit)}
	}
	hub, key, err := c.open(name)
	if err != nil {
		return err
	}
	var source v1alpha1.AddOnSource
	if err := hub.Get(ctx, key, &source); err != nil {
		return hubError("read source "+key.String(), err)
	}
	if source.Spec.CommitStatus == nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("source %s has no spec.commitStatus", key)}
	}
	to, err := forge.Of(ctx, hub, &source)
	if err != nil {
		return &exitError{code: exitFailed, err: err}
	}
	kind := source.Spec.CommitStatus.Provider
	for finding := range commitstatus.Check(ctx, kind, to, commit) {
		if finding.Err == nil {
			if _, err := fmt.Fprintf(c.Out, "✔ %s\n", finding.Step); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(c.Out, "✗ %s: %v\n", finding.Step, finding.Err); err != nil {
			return err
		}
		if refused, ok := errors.AsType[*commitstatus.DeliveryError](finding.Err); ok && refused.Denied != "" {
			c.hint("Next: the token needs %s", commitstatus.Permission(kind))
		}
		return &exitError{code: exitFailed, err: fmt.Errorf("the step above failed at %s, and the operator needs it; commit %.10s may keep statuses of the context %s", kind, commit, commitstatus.CheckContext)}
	}
	c.hint("Commit %.10s keeps its statuses: delete its branch", commit)
	return nil
}
