package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// completionScript is what kubectl runs to complete the words after its plugin's name.
const completionScript = `#!/bin/sh
exec kubectl addonflow __complete "$@"
`

// newPluginCompletionCommand is `completion` of the kubectl plugin, in the place of
// cobra's: a shell completes kubectl, and kubectl asks kubectl_complete-<plugin>.
func newPluginCompletionCommand(out func() io.Writer) *cobra.Command {
	return offline(&cobra.Command{
		Use:   "completion",
		Short: "Print the script through which kubectl completes this plugin",
		Long: `Print the script through which kubectl completes this plugin.

It belongs on the PATH, executable, as kubectl_complete-addonflow; kubectl's own
completion must be set up in the shell.`,
		Example: `  addonflow completion > ~/.local/bin/kubectl_complete-addonflow
  chmod +x ~/.local/bin/kubectl_complete-addonflow`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(out(), completionScript)
			return err
		},
	})
}
