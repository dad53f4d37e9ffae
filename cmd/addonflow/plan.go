package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
)

// outputMarkdown is the -o of `plan` besides json.
const outputMarkdown = "markdown"

type planOptions struct {
	*cli
	from, to, dir               string
	crds, ignore, fleet, output string
	versions                    []string
}

func newPlanCommand(c *cli) *cobra.Command {
	o := &planOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say what a branch would do to the fleet, without a cluster",
		Long: `Say what a branch would do to the fleet, without a cluster.

The commit --to is built as if it was merged into the commit --from: a file that only one of
the two changed since they diverged is taken from there. If both changed a file, the plan is
refused with "conflict: both sides changed it; rebase". Only commits are read, no uncommitted
file, and nothing of them is run.

For each add-on that changes, the plan has the difference of the rendered objects, with the
values of Secrets masked, the number of clusters, the stages in order with their gates, and the
time that the declared pace takes. Without --fleet there are 100 clusters, divided as in lint.
--fleet FILE takes yours; see lint --help for the commands that write it. If it lacks a Placement
of an add-on, there are 100 clusters for that add-on.

For a required check, use the exit code. 0: the operator would apply the result, also if it
changes nothing. 1: the operator would refuse it or not roll it out (spec.blocked), or the branch
has to be rebased. 2: wrong usage, such as a --path that is in no clone. 3: there is no plan, for
example because the rendering was interrupted or a limit is exceeded. 5: a commit, or the commit
from which both diverged, is not in the clone.`,
		Example: `  # What does my branch do?
  addonflow plan --from main
  # In a pipeline, as a comment
  git fetch --unshallow origin
  addonflow plan --from origin/main --to HEAD -f fleet.yaml -o markdown > plan.md`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.from, "from", "main", "Commit into which the change is merged.")
	cmd.Flags().StringVar(&o.to, "to", "HEAD", "Commit that is merged.")
	cmd.Flags().StringVar(&o.dir, "path", ".", "Directory of the add-ons in a clone of the repository, relative to the working directory.")
	bindCRDs(cmd.Flags(), &o.crds)
	bindIgnore(cmd.Flags(), &o.ignore)
	cmd.Flags().StringVarP(&o.fleet, "fleet", "f", "", "File with the ManagedClusters, as kubectl prints them. Without it: 100 clusters.")
	cmd.Flags().StringSliceVar(&o.versions, "kube-version", nil, "Kubernetes version to check packages with, as your clusters have it; may be repeated. Default: a version that the chart allows.")
	cmd.Flags().StringVarP(&o.output, "output", "o", outputMarkdown, "What to print: "+outputMarkdown+" (at most 60 KB, as in a comment) or "+outputJSON+" (everything).")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputMarkdown, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("path")
	return offline(cmd)
}

func (o *planOptions) run(ctx context.Context) error {
	if o.output != outputJSON && o.output != outputMarkdown {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot print %q: want %s or %s", o.output, outputMarkdown, outputJSON)}
	}
	if err := checkKubeVersions(o.versions...); err != nil {
		return err
	}
	hub, err := readCRDs(o.crds)
	if err != nil {
		return err
	}
	known, err := readFleet(o.fleet)
	if err != nil {
		return err
	}
	fleet := proposal.Fleet{Privacy: proposal.ShowFleet}
	if known != nil {
		fleet.Known = *known
	}
	if stat, err := os.Stat(o.dir); err == nil && !stat.IsDir() {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot read %s alone: name the directory that holds it", o.dir)}
	}
	merge, err := gitsource.MergeFromDir(o.dir, o.from, o.to)
	switch {
	case errors.Is(err, gitsource.ErrNotGit):
		return &exitError{code: exitUsage, err: err}
	case errors.Is(err, gitsource.ErrRefNotFound), errors.Is(err, gitsource.ErrShallow):
		return &exitError{code: exitNotFound, err: err}
	case errors.Is(err, gitsource.ErrNoMergeBase): // the branch has to be rebased
		return &exitError{code: exitFailed, err: err}
	case err != nil:
		return &exitError{code: exitTimeout, err: err}
	}
	defer merge.Close()
	before, after := o.side(ctx, o.from, merge.Before, hub), o.side(ctx, o.to, merge.After, hub)
	if slices.ContainsFunc(before.Problems, isPathMissing) {
		before = proposal.Side{Name: o.from} // the change creates the directory
	}
	planned, err := proposal.Of(before, after, fleet, o.charts)
	if errors.Is(err, render.ErrInterrupted) {
		err = fmt.Errorf("%w; try again", err)
	}
	if err != nil {
		return &exitError{code: exitTimeout, err: err}
	}
	if err := o.print(planned); err != nil {
		return err
	}
	if len(planned.Refused) > 0 {
		err := fmt.Errorf("%s: %s; nothing of it would be applied", o.to, brief.Count(len(planned.Refused), "problem"))
		if slices.ContainsFunc(planned.Refused, isPathMissing) {
			err = fmt.Errorf("%w; --path is relative to the working directory", err)
		}
		return &exitError{code: exitFailed, err: err}
	}
	if !planned.Accepted() {
		return &exitError{code: exitFailed, err: fmt.Errorf("%s: %s", o.to, planned.Summary())}
	}
	return nil
}

// isPathMissing reports whether a commit does not have the directory of --path.
func isPathMissing(p problem.Problem) bool {
	return p.Reason == gitsource.PathNotFound && p.Field == "spec.path"
}

// side compiles one of the two commits. A commit without the directory counts as a source without objects.
func (o *planOptions) side(ctx context.Context, name string, tree *gitsource.Tree, hub load.Lookup) proposal.Side {
	result := o.compileTree(ctx, o.dir, tree, o.ignore, hub, o.versions)
	return proposal.Side{Name: name, Commit: result.commit, Problems: result.problems}
}

func (o *planOptions) print(planned proposal.Proposal) error {
	if o.output == outputMarkdown {
		_, err := fmt.Fprint(o.Out, planned.Markdown())
		return err
	}
	return o.printJSON(planned)
}
