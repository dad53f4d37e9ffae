package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersionCommand(c *cli) *cobra.Command {
	return offline(&cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Example: `  # For a report of a problem
  addonflow version`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.Out, "addonflow %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	})
}
