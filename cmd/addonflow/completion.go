package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionScript is the program that kubectl runs to complete the words after its plugin's name.
const completionScript = `#!/bin/sh
exec kubectl addonflow __complete "$@"
`

// newPluginCompletionCommand is `completion` of the kubectl plugin, instead of cobra's command: a shell completes
// kubectl, and kubectl calls kubectl_complete-<plugin>.
func newPluginCompletionCommand(out func() io.Writer) *cobra.Command {
	return offline(&cobra.Command{
		Use:   "completion",
		Short: "Print the script for kubectl's completion of this plugin",
		Long: `Print the script for kubectl's completion of this plugin.

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

// completeNames offers the names of a kind to the shell. An unreachable hub offers
// nothing.
func (c *cli) completeNames(kind client.ObjectList) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		hub, key, err := c.open("")
		list, ok := kind.DeepCopyObject().(client.ObjectList)
		if err != nil || !ok {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		options := []client.ListOption{client.InNamespace(key.Namespace)}
		if _, everywhere := list.(*corev1.NamespaceList); everywhere {
			options = nil
		}
		if err := hub.List(ctx, list, options...); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		_ = apimeta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok {
				names = append(names, object.GetName())
			}
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// only completes the first argument only.
func only(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}
