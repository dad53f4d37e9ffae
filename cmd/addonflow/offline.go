package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/load"
)

// compiled is a local directory, compiled like a commit.
type compiled struct {
	objects  int
	commit   load.Commit
	problems problem.List
}

// compileDir reads a directory and compiles it as the operator compiles a commit, without a hub. A referenced object
// that is not in the directory counts as missing, not as an error. hub has the objects from flags. Packages are
// checked with the given Kubernetes versions, and ignore is the spec.ignore of the source.
func (c *cli) compileDir(ctx context.Context, dir, ignore string, hub load.Lookup, versions ...string) (compiled, error) {
	if stat, err := os.Stat(dir); err == nil && !stat.IsDir() {
		return compiled{}, &exitError{code: exitUsage, err: fmt.Errorf("cannot read %s alone: name the directory that holds it", dir)}
	}
	tree, err := gitsource.TreeFromDir(dir)
	if err != nil {
		return compiled{}, &exitError{code: exitNotFound, err: err}
	}
	result := c.compileTree(ctx, dir, tree, ignore, hub, versions)
	switch {
	case result.objects+len(result.problems) == 0:
		return compiled{}, &exitError{code: exitNotFound, err: fmt.Errorf("cannot find anything to check: no *.yaml or *.yml file in %s declares an object", dir)}
	case len(result.problems) == 0 && result.commit.Interrupted != nil:
		return compiled{}, &exitError{code: exitFailed, err: fmt.Errorf("cannot check the packages of %s: %w; try again", dir, result.commit.Interrupted)}
	}
	return result, nil
}

// compileTree compiles the directory of a tree.
func (c *cli) compileTree(ctx context.Context, dir string, tree *gitsource.Tree, ignore string, hub load.Lookup, versions []string) compiled {
	var warnings problem.List
	objects, unread := tree.Build(ctx, gitsource.BuildOptions{
		Ignore: ignore, Warn: func(p problem.Problem) { warnings = append(warnings, p) },
	})
	commit, problems := addonsource.Compile(objects, hub, addonsource.CompileOptions{
		Unread: unread, Now: time.Now(), Options: load.Options{KubeVersions: versions, Charts: c.charts.For(dir)},
	})
	if len(problems) == 0 {
		commit.Warnings = slices.Concat(warnings, commit.Warnings, addonsource.HubWarnings(objects, commit))
	}
	return compiled{objects: len(objects), commit: commit, problems: problems}
}

// warn names probable mistakes, and facts that only a hub knows.
func (c *cli) warn(commit load.Commit) {
	first, more := firstOf(commit.Warnings)
	for _, s := range first {
		c.hint("warning: %s", s)
	}
	if more > 0 {
		c.hint("... and %s", brief.Count(more, "more warning"))
	}
	for _, u := range commit.Undefined {
		c.hint("warning: without CustomResourceDefinition %s its objects are taken as they are written; --crds names a file with it", u.Name)
	}
}
