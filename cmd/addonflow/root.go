package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newRootCommand assembles every command.
func newRootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "addonflow",
		// Use is cut at its first word, so the name of a plugin is said here.
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: commandName(os.Args[0])},
		Short:         "Run a fleet's add-ons from Git: canary first, the truth on every commit",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(newControllerCommand())
	cmd.AddCommand(newCLI().commands()...)
	return cmd
}

// commandName is what help calls the program: as a kubectl plugin, kubectl addonflow.
func commandName(arg0 string) string {
	if strings.HasPrefix(filepath.Base(arg0), "kubectl-") {
		return "kubectl addonflow"
	}
	return "addonflow"
}
