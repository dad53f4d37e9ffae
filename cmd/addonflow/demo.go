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

// newDemoCommand is `demo`.
func newDemoCommand(c *cli) *cobra.Command {
	o := demo.Options{Out: c.Out}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole story on this machine: a hub, a simulated fleet, Git and a forge",
		Long: `Show the whole story on this machine: a hub, a simulated fleet, Git and a forge.

Five commits: install, upgrade by canary and waves, an image that never starts, its
revert, and a broken file. Each is checked through the API, at the forge and on the
simulated clusters; the first wrong state ends the demo with exit code 1.

It needs git, and a kube-apiserver and etcd: those in the directory KUBEBUILDER_ASSETS,
else those it downloads, which takes go and a network. In a clone of the repository, as
"make demo", they are built where they cannot be downloaded.`,
		Example: `  # In a clone of the repository
  make demo
  # More clusters, faster, and look around afterwards
  addonflow demo --clusters 60 --speed 3 --keep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), o) },
	}
	cmd.Flags().IntVar(&o.Clusters, "clusters", 24, "Number of simulated clusters.")
	cmd.Flags().Float64Var(&o.Speed, "speed", 1, "Divides the soak and the simulated clusters' latency.")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "Leave everything up after the last step, until Ctrl-C.")
	return offline(cmd)
}

// runDemo runs the demo with this very binary as the operator.
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
