package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/addonflow/addonflow/api/problem"
)

// newLintCommand is `lint`.
func newLintCommand(c *cli) *cobra.Command {
	var crds, ignore string
	var versions []string
	cmd := &cobra.Command{
		Use:   "lint PATH",
		Short: "Check a directory as the operator checks a commit, without a cluster",
		Long: `Check a directory as the operator checks a commit, without a cluster.

Every problem is one line, path:line: Kind/name: field: problem; hint. A referenced
object that is not in the directory is a warning, because the hub may have it. Problems
that only the hub can find, such as a name that another source owns, are not reported.`,
		Example: `  # Before a commit
  addonflow lint addons/hello
  # In a pipeline
  addonflow lint . || exit 1`,
		Args:              takes,
		ValidArgsFunction: directories,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.lint(cmd.Context(), args[0], crds, ignore, versions)
		},
	}
	bindCRDs(cmd.Flags(), &crds)
	bindIgnore(cmd.Flags(), &ignore)
	cmd.Flags().StringSliceVar(&versions, "kube-version", nil, "Kubernetes version to check packages with, as your clusters have it; may be repeated. Default: a version that the chart allows.")
	return offline(cmd)
}

// bindIgnore binds --ignore.
func bindIgnore(flags *pflag.FlagSet, ignore *string) {
	flags.StringVar(ignore, "ignore", "", "Files to leave out, as spec.ignore of the source does: .gitignore syntax from the root of the repository.")
}

// What lint prints at most: a tree of 10,000 files can have as many problems.
const (
	mostProblems     = 100
	mostProblemBytes = 64 << 10
)

// lint prints what is wrong with a directory.
func (c *cli) lint(ctx context.Context, dir, crds, ignore string, versions []string) error {
	if err := checkKubeVersions(versions...); err != nil {
		return err
	}
	hub, err := readCRDs(crds)
	if err != nil {
		return err
	}
	result, err := c.compileDir(ctx, dir, ignore, hub, versions...)
	if err != nil {
		return err
	}
	if len(result.problems) > 0 {
		if _, err := fmt.Fprint(c.Out, shownProblems(result.problems)); err != nil {
			return err
		}
	}
	c.warn(result.commit)
	if n := len(result.problems); n > 0 {
		return &exitError{code: exitFailed, err: fmt.Errorf("%s: %s; nothing of it would be applied", dir, counted(n, "problem"))}
	}
	c.hint("✔ %s: %s, %s", dir, counted(result.objects, "object"), counted(len(result.commit.AddOns), "add-on"))
	return nil
}

// shownProblems are the lines of the first problems, and how many there are besides.
func shownProblems(problems problem.List) string {
	var b strings.Builder
	for i, p := range problems {
		line := strings.ToValidUTF8(p.String()[:min(len(p.String()), mostProblemBytes/2)], "") + "\n"
		if i == mostProblems || b.Len()+len(line) > mostProblemBytes {
			fmt.Fprintf(&b, "... and %s\n", counted(len(problems)-i, "more problem"))
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// checkKubeVersions refuses what is no version of Kubernetes.
func checkKubeVersions(versions ...string) error {
	for _, v := range versions {
		if _, err := utilversion.ParseSemantic(v); err != nil {
			return &exitError{code: exitUsage, err: fmt.Errorf("cannot use --kube-version=%s: %w; want one such as v1.33.0", v, err)}
		}
	}
	return nil
}

// directories completes directory names.
func directories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
