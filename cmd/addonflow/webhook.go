package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

func newWebhookCommand(c *cli) *cobra.Command {
	var base string
	cmd := &cobra.Command{
		Use:   "webhook NAME",
		Short: "Print the URL of a source's webhook, and what to enter at the forge",
		Long: `Print the URL of a source's webhook, and what to enter at the forge.

The URL ends in a part that cannot be guessed; treat it as a secret. The token itself is
not printed: it is in the Secret that spec.webhook names.`,
		Example: `  # hooks.example.com leads to the Service addonflow-webhook
  addonflow webhook fleet --base-url https://hooks.example.com`,
		Args:              takes,
		ValidArgsFunction: only(c.completeNames(&v1alpha1.AddOnSourceList{})),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.webhook(cmd.Context(), args[0], base) },
	}
	cmd.Flags().StringVar(&base, "base-url", "", "The URL at which the forge reaches the Service addonflow-webhook.")
	return c.command(cmd)
}

func (c *cli) webhook(ctx context.Context, name, base string) error {
	hub, key, err := c.open(name)
	if err != nil {
		return err
	}
	if parsed, err := url.Parse(base); base != "" && (err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "") {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot use --base-url %q: it is not a URL such as https://hooks.example.com", base)}
	}
	var source v1alpha1.AddOnSource
	if err := hub.Get(ctx, key, &source); err != nil {
		return hubError("read source "+key.String(), err)
	}
	spec := source.Spec.Webhook
	switch {
	case spec == nil:
		return &exitError{code: exitFailed, err: fmt.Errorf("source %s has no spec.webhook", key)}
	case source.Status.WebhookPath == "":
		return &exitError{code: exitTimeout, err: fmt.Errorf("source %s has no path yet: the operator has not looked at spec.webhook", key)}
	}
	entries := []commitstatus.FormEntry{{Field: "URL", Value: strings.TrimSuffix(base, "/") + source.Status.WebhookPath}}
	entries = append(entries, commitstatus.Webhooks()[spec.Type].Form...)
	for _, entry := range entries {
		text := strings.ReplaceAll(entry.Value, commitstatus.WebhookToken, fmt.Sprintf("the key token of Secret %s/%s", key.Namespace, spec.SecretRef.Name))
		if _, err := fmt.Fprintf(c.Out, "%-14s %s\n", entry.Field+":", text); err != nil {
			return err
		}
	}
	if base == "" {
		c.hint("Next: put the address before it at which the forge reaches the Service addonflow-webhook; see --base-url")
	}
	return nil
}
