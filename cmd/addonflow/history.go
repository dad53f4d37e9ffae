package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

func newHistoryCommand(c *cli) *cobra.Command {
	o := &getOptions{cli: c}
	cmd := c.command(&cobra.Command{
		Use:   "history ROLLOUT",
		Short: "Print the last rollouts of an add-on and the decisions of the operator",
		Long: `Print the last rollouts of an add-on and the decisions of the operator.

The first table has the last 50 rollouts, newest first: how each ended and why, when its
stages began, and the first ten clusters that failed. The second has the last decisions about
stages, oldest first: at most 100. A decision that is made for the clusters of a stage
one by one is shown when their number reaches 1, 2, 4, 8 and so on, or the size of the stage.
The operator's log has the same decisions, and at --log-level=debug one line for each cluster.

With -o both are one object, a RolloutHistory, which is not an object of the API.`,
		Example: `  # What happened, and why
  addonflow history hello
  # Which clusters failed in the last rollouts
  addonflow history hello -o jsonpath='{range .history[*].failing[*]}{.cluster}: {.reason}{"\n"}{end}'`,
		Args:              takes,
		ValidArgsFunction: only(c.completeNames(&v1alpha1.AddOnRolloutList{})),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.history(cmd.Context(), args[0]) },
	})
	o.bindOutput(cmd)
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Do not print the headers of the tables.")
	return cmd
}

// history prints the past rollouts and decisions in the status of a rollout.
func (o *getOptions) history(ctx context.Context, name string) error {
	printer, err := o.printer()
	if err != nil {
		return err
	}
	_, r, err := o.rollout(ctx, name)
	if err != nil {
		return err
	}
	if !o.table() {
		object, err := show.History(r)
		if err != nil {
			return err
		}
		return printer.PrintObj(object, o.Out)
	}
	if len(r.Status.History) == 0 && len(r.Status.Journal) == 0 {
		o.hint("No rollout of %s has begun.", r.Name)
		return nil
	}
	// A printer of tables omits the header of a second table, so each table has its own printer.
	journal, err := o.printer()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := printer.PrintObj(show.HistoryTable(o.now(), r), &text); err != nil {
		return fmt.Errorf("cannot print the history: %w", err)
	}
	text.WriteString("\n")
	if err := journal.PrintObj(show.JournalTable(r), &text); err != nil {
		return fmt.Errorf("cannot print the journal: %w", err)
	}
	_, err = o.Out.Write(text.Bytes())
	return err
}
