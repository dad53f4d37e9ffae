//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/addonflow/addonflow/test/demo"
)

func newDemoCommand(c *cli) *cobra.Command {
	o := demo.Options{Out: c.Out}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play seven commits on this machine, with a hub, a simulated fleet, Git and a forge",
		Long: `Play seven commits on this machine, with a hub, a simulated fleet, Git and a forge.

The commits are: install, upgrade by canary and waves, an image that never starts, its
revert, a broken file, an upgrade that waits for an approval, and one that a measurement fails and
that is rolled back automatically. The demo checks the result of each commit through the API, at
the forge and on the simulated clusters. It ends at the first wrong state, with exit code 1.

The demo needs git, kube-apiserver and etcd. It takes kube-apiserver and etcd from the
directory KUBEBUILDER_ASSETS, or else downloads them, which needs go and a network. "make
demo" in a clone of the repository builds them if they cannot be downloaded.`,
		Example: `  # In a clone of the repository
  make demo
  # More clusters, faster, and look around afterwards
  addonflow demo --clusters 60 --speed 3 --keep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), o) },
	}
	cmd.Flags().IntVar(&o.Clusters, "clusters", 24, "Number of simulated clusters.")
	cmd.Flags().Float64Var(&o.Speed, "speed", 1, "Divides the soak and the simulated clusters' latency.")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "Keep everything running after the last step, until Ctrl-C.")
	return offline(cmd)
}

// runDemo runs the demo, with this binary as the operator.
func runDemo(ctx context.Context, o demo.Options) error {
	binary, err := os.Executable()
	if err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot find this program: %w", err)}
	}
	if _, err := exec.LookPath("git"); err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot show the demo without git: %w", err)}
	}
	o.Binary = binary
	err = demo.Run(ctx, o)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, demo.ErrOptions):
		return &exitError{code: exitUsage, err: err}
	case ctx.Err() != nil:
		return &exitError{code: exitInterrupted, err: errors.New("interrupted; everything was stopped")}
	}
	return &exitError{code: exitFailed, err: err}
}
