package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/addonflow/addonflow/controllers/renderworker"
)

// newRenderWorkerCommand is the child process that renders charts.
func newRenderWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: renderworker.Command, Short: "Render charts for the process that started this one", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return renderworker.Serve(os.Stdin, os.Stdout) },
	}
}
