package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/kubectl/pkg/cmd/get"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

// outputWide is the table with more columns; the other formats are cli-runtime's.
const outputWide = "wide"

type getOptions struct {
	*cli
	print         *genericclioptions.PrintFlags
	columns       *get.CustomColumnsPrintFlags
	allNamespaces bool
	watch         bool
	noHeaders     bool
	selector      string
}

// listed is a kind that `get` lists from the API server.
type listed struct {
	name    string              // in the command line
	kind    string              // in the API
	group   schema.GroupVersion // of the kind; zero: AddonFlow's
	aliases []string
	short   string
	example string
	list    client.ObjectList
	// expires: the hub deletes the objects after a time, and this deletion is not reported.
	expires bool
	table   func(now time.Time, objects []client.Object) *metav1.Table
}

func listedKinds() []listed {
	return []listed{
		{
			name: "sources", kind: v1alpha1.AddOnSourceKind, aliases: []string{"source", "addonsources", "aosrc"}, short: "List AddOnSources: which commit is applied, and what is wrong with the newest",
			example: `  # Sources of the current namespace, and why one is not ready
  addonflow get sources
  # Every source, as it changes
  addonflow get sources -A -w`,
			list: &v1alpha1.AddOnSourceList{},
			table: func(now time.Time, objects []client.Object) *metav1.Table {
				return show.SourcesTable(now, typed[v1alpha1.AddOnSource](objects)...)
			},
		}, {
			name: "rollouts", kind: v1alpha1.AddOnRolloutKind, aliases: []string{"rollout", "addonrollouts", "aoroll"}, short: "List AddOnRollouts: phase, commit, clusters updated and failed, stage",
			example: `  # Every rollout of the hub
  addonflow get rollouts -A
  # The phases alone, for a script
  addonflow get rollouts -o jsonpath='{range .items[*]}{.metadata.name} {.status.phase}{"\n"}{end}'`,
			list: &v1alpha1.AddOnRolloutList{},
			table: func(now time.Time, objects []client.Object) *metav1.Table {
				return show.RolloutsTable(now, typed[v1alpha1.AddOnRollout](objects)...)
			},
		}, {
			name: "revisions", kind: v1alpha1.AddOnRevisionKind, aliases: []string{"revision", "addonrevisions", "aorev"}, short: "List AddOnRevisions: the contents kept, and which succeeded here",
			example: `  # Revisions of one add-on
  addonflow get revisions -l addonflow.io/add-on=hello
  # With full digests
  addonflow get revisions -o wide`,
			list: &v1alpha1.AddOnRevisionList{},
			table: func(now time.Time, objects []client.Object) *metav1.Table {
				return show.RevisionsTable(now, typed[v1alpha1.AddOnRevision](objects)...)
			},
		},
	}
}

// label writes the kind into objects that are printed unchanged, because the API server omits it in the items of a
// list.
func (k listed) label(objects []client.Object) {
	for _, o := range objects {
		o.GetObjectKind().SetGroupVersionKind(cmp.Or(k.group, v1alpha1.GroupVersion).WithKind(k.kind))
	}
}

// typed turns objects into values of their kind. Objects of other kinds are omitted.
func typed[T any](objects []client.Object) []T {
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		if value, ok := any(o).(*T); ok {
			out = append(out, *value)
		}
	}
	return out
}

func newGetCommand(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List sources, rollouts, revisions or clusters",
		Args:  takesKind,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, kind := range listedKinds() {
		cmd.AddCommand(newListCommand(c, kind))
	}
	cmd.AddCommand(newGetClustersCommand(c))
	return cmd
}

func newListCommand(c *cli, kind listed) *cobra.Command {
	o := &getOptions{cli: c}
	cmd := &cobra.Command{
		Use:     kind.name + " [NAME...]",
		Aliases: kind.aliases,
		Short:   kind.short,
		Example: kind.example,
		RunE: func(cmd *cobra.Command, names []string) error {
			l, err := o.listing(names)
			if err != nil {
				return err
			}
			return l.run(cmd.Context(), kind)
		},
	}
	o.bind(cmd)
	cmd.ValidArgsFunction = c.completeNames(kind.list)
	return c.command(cmd)
}

func (o *getOptions) bind(cmd *cobra.Command) {
	o.bindOutput(cmd)
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List across all namespaces.")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "After listing, print every change.")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Do not print the header of the table.")
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Label selector, such as addonflow.io/add-on=hello.")
}

func (o *getOptions) bindOutput(cmd *cobra.Command) {
	o.print = genericclioptions.NewPrintFlags("")
	o.print.AddFlags(cmd)
	o.columns = get.NewCustomColumnsPrintFlags()
	output := cmd.Flags().Lookup("output")
	output.Usage = strings.Replace(output.Usage, "(", "("+outputWide+", "+strings.Join(o.columns.AllowedFormats(), ", ")+", ", 1)
	_ = cmd.RegisterFlagCompletionFunc(output.Name, cobra.FixedCompletions(o.formats(), cobra.ShellCompDirectiveNoFileComp))
}

// formats returns the values of -o.
func (o *getOptions) formats() []string {
	return slices.Concat([]string{outputWide}, o.columns.AllowedFormats(), o.print.AllowedFormats())
}

func (o *getOptions) table() bool {
	return *o.print.OutputFormat == outputWide || *o.print.OutputFormat == "" && !o.print.OutputFlagSpecified()
}

// printer writes tables, or the format of -o.
func (o *getOptions) printer() (printers.ResourcePrinter, error) {
	if o.table() {
		return printers.NewTablePrinter(printers.PrintOptions{
			NoHeaders: o.noHeaders, WithNamespace: o.allNamespaces, Wide: *o.print.OutputFormat == outputWide,
		}), nil
	}
	o.columns.NoHeaders, o.columns.TemplateArgument = o.noHeaders, ""
	printer, err := o.columns.ToPrinter(*o.print.OutputFormat)
	if err == nil {
		return printer, nil
	}
	if !genericclioptions.IsNoCompatiblePrinterError(err) {
		return nil, &exitError{code: exitUsage, err: err}
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	printer, err = o.print.WithTypeSetter(scheme).ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot print as %q: one of %s", *o.print.OutputFormat, strings.Join(o.formats(), ", "))}
	case err != nil:
		return nil, &exitError{code: exitUsage, err: err}
	}
	return printer, nil
}

// options are the selectors of the request to the API server.
func (o *getOptions) options() ([]client.ListOption, error) {
	selector, err := metav1.ParseToLabelSelector(o.selector)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot read the selector: %w", err)}
	}
	match, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot read the selector: %w", err)}
	}
	options := []client.ListOption{client.MatchingLabelsSelector{Selector: match}}
	if o.allNamespaces {
		return options, nil
	}
	namespace, err := o.namespace()
	return append(options, client.InNamespace(namespace)), err
}
