package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout"
	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
)

// exitInterrupted is the exit code of a command that Ctrl-C ended, as in shells.
const exitInterrupted = 130

// defaultHost is client-go's host without any configuration.
const defaultHost = "http://localhost:8080"

const exitCodesHelp = `
Exit codes:
  0    done, or succeeded
  1    failed: the rollout failed or is stalled, or the input is refused
  2    wrong usage
  3    still progressing, at the timeout or when asked
  4    suspended, or held for a decision
  5    not found
  6    the hub cannot be reached, or refuses to answer
  130  interrupted`

// cli has the inputs and outputs of the commands for people. Out is for data; ErrOut is for progress and hints.
type cli struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	// name is the name by which the user called the program, for commands in hints.
	name   string
	charts chart.Engines
	// The fields below are replaced by tests.
	connect  func() (client.WithWatch, error)
	explain  func(context.Context, client.Client, types.NamespacedName) (rollout.Plan, error)
	change   func(ctx context.Context, hub client.Client, key types.NamespacedName, stage string) (addonrollout.Change, error)
	changeOn func(ctx context.Context, hub client.Client, key types.NamespacedName, cluster string) (addonrollout.Change, error)
	now      func() time.Time
	terminal func() terminal
	// asks reports whether a user can answer questions.
	asks func() bool
	// putBack is the time for which an operator could add a finalizer again.
	putBack time.Duration
}

// output is the writer for data. If a write fails, for example because a disk is full, the command fails; this is not
// wrong usage.
type output struct{ io.Writer }

// Write gives an error its exit code.
func (o output) Write(text []byte) (int, error) {
	n, err := o.Writer.Write(text)
	if err != nil {
		err = &exitError{code: exitFailed, err: fmt.Errorf("cannot print: %w", err)}
	}
	return n, err
}

// newCLI returns the inputs and outputs of commands: the real hub, the real terminal, and the name with which the
// program was called.
func newCLI(name string) *cli {
	charts := renderworker.NewPool(renderworker.Options{}) // its children end with this process
	// inspectors keep renderings, because get clusters --watch plans again at each change.
	inspectors := map[types.NamespacedName]*addonrollout.Inspector{}
	c := &cli{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: output{os.Stdout}, ErrOut: os.Stderr},
		flags:     genericclioptions.NewConfigFlags(true),
		name:      name,
		charts:    charts,
		explain: func(ctx context.Context, hub client.Client, key types.NamespacedName) (rollout.Plan, error) {
			if inspectors[key] == nil {
				inspectors[key] = addonrollout.NewInspector(hub, key, charts)
			}
			i, err := inspectors[key].Inspect(ctx)
			return i.Plan(), err
		},
		change: func(ctx context.Context, hub client.Client, key types.NamespacedName, stage string) (addonrollout.Change, error) {
			return addonrollout.ChangeOf(ctx, hub, key, stage, charts)
		},
		changeOn: func(ctx context.Context, hub client.Client, key types.NamespacedName, cluster string) (addonrollout.Change, error) {
			return addonrollout.ChangeOn(ctx, hub, key, cluster, charts)
		},
		now:      time.Now,
		putBack:  5 * time.Second,
		terminal: func() terminal { return terminalOf(os.Stdout, os.Getenv) },
		asks:     func() bool { return term.IsTerminal(int(os.Stdin.Fd())) },
	}
	c.connect = c.dial
	return c
}

type group struct {
	title    string
	commands []*cobra.Command
}

// groups are all commands for people, by purpose, as help lists them.
func (c *cli) groups() []group {
	return []group{
		{"Follow a rollout:", []*cobra.Command{
			newStatusCommand(c), newTreeCommand(c), newWhyCommand(c), newDiffCommand(c), newHistoryCommand(c), newEventsCommand(c), newGetCommand(c), newDashboardCommand(c),
		}},
		{"Decide about a rollout:", []*cobra.Command{
			newApproveCommand(c), newRejectCommand(c), newPromoteCommand(c), newRetryCommand(c), newAbortCommand(c), newRollbackCommand(c), newUnblockCommand(c),
			newSuspendCommand(c), newResumeCommand(c), newReconcileCommand(c),
		}},
		{"Write add-ons, without a hub:", []*cobra.Command{newLintCommand(c), newRenderCommand(c), newPlanCommand(c), newVendorCommand(c)}},
		{"Operate:", []*cobra.Command{newControllerCommand(), newCheckCommand(c), newWebhookCommand(c), newReleaseCommand(c), newUninstallCommand(c)}},
		{"Try it:", []*cobra.Command{newDemoCommand(c)}},
	}
}

func (c *cli) addTo(root *cobra.Command) {
	for _, g := range c.groups() {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(newOptionsCommand(c), newVersionCommand(c))
}

// dial connects with the user's kubeconfig and the flags of kubectl.
func (c *cli) dial() (client.WithWatch, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, &exitError{code: exitUnreachable, err: fmt.Errorf("cannot load a kubeconfig: %w", err)}
	}
	if err := c.unnamed(config.Host); err != nil {
		return nil, err
	}
	// One command sends few requests; a rate limit would only slow it down.
	config.QPS = -1
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	hub, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, &exitError{code: exitUnreachable, err: fmt.Errorf("cannot reach the hub: %w", err)}
	}
	return hub, nil
}

// unnamed returns an error if neither a kubeconfig nor a flag names a hub. The configuration
// then has the default address on this machine, which the user did not choose.
func (c *cli) unnamed(host string) error {
	loader := c.flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	switch {
	case err != nil:
		return &exitError{code: exitUnreachable, err: fmt.Errorf("cannot load a kubeconfig: %w", err)}
	case len(raw.Clusters) > 0 || *c.flags.APIServer != "" || host != defaultHost:
		return nil
	}
	return &exitError{code: exitUnreachable, err: fmt.Errorf("cannot find a hub: no cluster in %s; use --kubeconfig or $KUBECONFIG",
		strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), ", "))}
}

// namespace is the namespace in the flag, or in the kubeconfig's context.
func (c *cli) namespace() (string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", &exitError{code: exitUnreachable, err: fmt.Errorf("cannot load a kubeconfig: %w", err)}
	}
	return namespace, nil
}

// open connects, and returns the key of the named object in the namespace.
func (c *cli) open(name string) (client.WithWatch, types.NamespacedName, error) {
	namespace, err := c.namespace()
	if err != nil {
		return nil, types.NamespacedName{}, err
	}
	hub, err := c.connect()
	return hub, types.NamespacedName{Namespace: namespace, Name: name}, err
}

func (c *cli) rollout(ctx context.Context, name string) (client.WithWatch, *v1alpha1.AddOnRollout, error) {
	hub, key, err := c.open(name)
	if err != nil {
		return nil, nil, err
	}
	r := &v1alpha1.AddOnRollout{}
	return hub, r, hubError("read "+rolloutKey(key), hub.Get(ctx, key, r))
}

// shown reads a rollout with the orders without an answer of the operator. The orders are read first, so that the
// status is not older than the answers.
func shown(ctx context.Context, hub client.Reader, key client.ObjectKey) (*v1alpha1.AddOnRollout, error) {
	orders, err := ordersIn(ctx, hub, key.Namespace)
	if err != nil {
		return nil, err
	}
	r := &v1alpha1.AddOnRollout{}
	if err := hub.Get(ctx, key, r); err != nil {
		return nil, hubError("read "+rolloutKey(key), err)
	}
	return show.WithOrders(r, orders), nil
}

// ordersIn lists the orders of a namespace; "": of all. Without the right to list them, it returns none.
func ordersIn(ctx context.Context, hub client.Reader, namespace string) ([]v1alpha1.AddOnOrder, error) {
	var list v1alpha1.AddOnOrderList
	if err := hub.List(ctx, &list, client.InNamespace(namespace)); err != nil && !apierrors.IsForbidden(err) {
		text := "list the orders"
		if namespace != "" {
			text += " in namespace " + namespace
		}
		return nil, hubError(text, err)
	}
	return list.Items, nil
}

// hint prints advice for the user. It is not part of the command's output.
func (c *cli) hint(format string, args ...any) {
	_, _ = fmt.Fprintf(c.ErrOut, format+"\n", args...)
}

// printJSON prints a value as indented JSON.
func (c *cli) printJSON(value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot print as JSON: %w", err)
	}
	_, err = fmt.Fprintf(c.Out, "%s\n", text)
	return err
}

// command adds the exit codes to the help of a command, the flags of kubectl, and a completion that offers nothing
// unless the command has its own.
func (c *cli) command(cmd *cobra.Command) *cobra.Command {
	offline(cmd)
	c.flags.AddFlags(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("namespace", c.completeNames(&corev1.NamespaceList{}))
	return cmd
}

// offline is command for commands that need no hub.
func offline(cmd *cobra.Command) *cobra.Command {
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long += "\n" + exitCodesHelp
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return failure(run(cmd, args)) }
	}
	return cmd
}

// failure sets the exit code exitFailed on an error of RunE that has no exit code. Errors without an exit code are errors
// of arguments and flags: wrong usage.
func failure(err error) error {
	if _, ok := errors.AsType[*exitError](err); ok || err == nil {
		return err
	}
	return &exitError{code: exitFailed, err: err}
}

// takes requires exactly the arguments in the command's usage.
func takes(cmd *cobra.Command, args []string) error {
	wanted := strings.Fields(cmd.Use)[1:]
	if len(args) == len(wanted) {
		return nil
	}
	return fmt.Errorf("cannot run %q with %s: it takes %s; see %s --help",
		cmd.CommandPath(), brief.Count(len(args), "argument"), strings.Join(wanted, " and "), cmd.CommandPath())
}

// takesKind refuses an argument that is not the name of a subcommand. Each subcommand is a kind
// of object.
func takesKind(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var kinds []string
	for _, sub := range cmd.Commands() {
		kinds = append(kinds, sub.Name())
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := "see " + cmd.CommandPath() + " --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + near[0] + "?"
	}
	return fmt.Errorf("cannot run %q with %q: it takes a kind first, one of %s; %s", cmd.CommandPath(), args[0], strings.Join(kinds, ", "), hint)
}

// wrongFlag names the command that lists the flags.
func wrongFlag(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// hubError gives an error of the hub its exit code, and a text for a person.
func hubError(doing string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return &exitError{code: exitInterrupted}
	case apimeta.IsNoMatchError(err):
		return &exitError{code: exitUnreachable, err: fmt.Errorf("cannot %s: AddonFlow is not installed on this hub; use --context for another hub: %w", doing, err)}
	case apierrors.IsNotFound(err):
		return &exitError{code: exitNotFound, err: fmt.Errorf("cannot %s: %w; use -n NAMESPACE for another namespace", doing, err)}
	case apierrors.IsInvalid(err): // the input is refused
	case errors.As(err, &status), silent(err):
		return &exitError{code: exitUnreachable, err: fmt.Errorf("cannot %s: %w", doing, err)}
	}
	return &exitError{code: exitFailed, err: fmt.Errorf("cannot %s: %w", doing, err)}
}

// silent reports whether the hub gives this user no answer: it cannot be reached, or does not accept the login.
func silent(err error) bool {
	var network net.Error
	return apierrors.IsUnauthorized(err) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF)
}
