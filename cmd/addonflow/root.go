package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newRootCommand() *cobra.Command {
	name := commandName(os.Args[0])
	cmd := &cobra.Command{
		Use: programName,
		// Use is cut at its first word, so this annotation has the name of a plugin.
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:         "Roll out a fleet's add-ons from Git: canary first, with the outcome on every commit",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c := newCLI(name)
	c.addTo(cmd)
	cmd.AddCommand(newRenderWorkerCommand())
	cmd.SetHelpFunc(c.help(cmd.HelpFunc()))
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

// help leaves kubectl's flags out of the help of a command. They are the same for all commands, and would hide the
// command's own flags. Completion still offers them.
func (c *cli) help(whole func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		remaining := 0
		c.hubFlags().VisitAll(func(hub *pflag.Flag) {
			if f := cmd.Flags().Lookup(hub.Name); f != nil && hub.Name != "namespace" {
				f.Hidden = true
				remaining++
			}
		})
		if remaining > 0 {
			cmd.Long += fmt.Sprintf("\n\nThe flags of kubectl that choose a hub and a user work as well: %s options lists them.", c.name)
		}
		whole(cmd, args)
	}
}

// newOptionsCommand lists the flags that help leaves out, as kubectl's options does.
func newOptionsCommand(c *cli) *cobra.Command {
	return offline(&cobra.Command{
		Use:   "options",
		Short: "List the flags of kubectl that commands take",
		Example: `  # How do I name another hub?
  addonflow options`,
		Args: takes,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(c.Out, c.hubFlags().FlagUsages())
			return err
		},
	})
}

// hubFlags are kubectl's flags. They choose a hub, a user and a namespace.
func (c *cli) hubFlags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.flags.AddFlags(flags)
	return flags
}

// The names by which the program can be called.
const (
	programName = "addonflow"
	pluginName  = "kubectl addonflow"
)

// commandName is the name of the program in help texts; as a kubectl plugin, it is kubectl addonflow.
func commandName(arg0 string) string {
	if strings.HasPrefix(filepath.Base(arg0), "kubectl-") {
		return pluginName
	}
	return programName
}
