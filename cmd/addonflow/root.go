package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// newRootCommand assembles every command.
func newRootCommand() *cobra.Command {
	name := commandName(os.Args[0])
	cmd := &cobra.Command{
		Use: programName,
		// Use is cut at its first word, so the name of a plugin is said here.
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:         "Run a fleet's add-ons from Git: canary first, and the outcome on every commit",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(newControllerCommand(), newRenderWorkerCommand())
	cmd.AddCommand(newCLI(name).commands()...)
	if name == pluginName {
		cmd.AddCommand(newPluginCompletionCommand(cmd.OutOrStdout))
	}
	cmd.SetFlagErrorFunc(wrongFlag)
	callExamples(cmd, name)
	return cmd
}

// callExamples replaces addonflow in the examples by the name with which the program was called.
func callExamples(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, programName+" ", name+" ")
	for _, sub := range cmd.Commands() {
		callExamples(sub, name)
	}
}

// The names that the program is called by.
const (
	programName = "addonflow"
	pluginName  = "kubectl addonflow"
)

// commandName is what help calls the program: as a kubectl plugin, kubectl addonflow.
func commandName(arg0 string) string {
	if strings.HasPrefix(filepath.Base(arg0), "kubectl-") {
		return pluginName
	}
	return programName
}
