//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newDemoCommand returns a command that says where the demo runs. The servers of its hub are controlled by signals that
// only Unix has.
func newDemoCommand(*cli) *cobra.Command {
	return offline(&cobra.Command{
		Use:   "demo",
		Short: "Play seven commits on this machine (on Linux and macOS)",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return &exitError{code: exitFailed, err: errors.New("the demo runs on Linux and macOS only")}
		},
	})
}
