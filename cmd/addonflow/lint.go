package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

type lintOptions struct {
	*cli
	crds, ignore, fleet, output string
	versions                    []string
}

// outputJSON is the -o of `lint` besides text.
const outputJSON = "json"

func newLintCommand(c *cli) *cobra.Command {
	o := &lintOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "lint PATH",
		Short: "Check a directory as the operator checks a commit, without a cluster",
		Long: `Check a directory as the operator checks a commit, without a cluster.

Every problem is one line, path:line: Kind/name: field: problem; hint. A referenced
object that is not in the directory is a warning, because the hub may have it. Problems
that only the hub can find, such as a name that another source owns, are not reported.

For each add-on, an upgrade is simulated in which every cluster is verified two minutes
after its admission. The pace says how many clusters each stage has, how many of them
are in flight at once, and how long the rollout takes if it begins now: times in which a
window is closed are counted. A rollout that never ends is a warning. Without --fleet there are 100 clusters:

- A placement without predicates selects all of them, one with numberOfClusters that many.
- Any other placement of the first stage selects one cluster, the next stages share the rest.
- Other install placements have equal shares of the clusters.
- The first decision group has one cluster, the other groups share the rest.

--fleet FILE counts your clusters:

  kubectl get managedclusters,managedclustersets -o yaml > fleet.yaml
  echo --- >> fleet.yaml
  kubectl get placements,placementdecisions,managedclustersetbindings -A -o yaml >> fleet.yaml

The second kubectl is optional. Leave out kinds that the hub does not serve: kubectl fails.
A placement without decisions in the file, or with another spec in the directory, selects
clusters by cluster sets, labels and claims. Taints and priorities are not evaluated; a note
says where they matter. A celSelector cannot be evaluated: there is no estimate then.`,
		Example: `  # Before a commit
  addonflow lint addons/hello
  # In a pipeline
  addonflow lint . || exit 1
  # How long does it take for these clusters?
  addonflow lint addons/hello --fleet fleet.yaml`,
		Args:              takes,
		ValidArgsFunction: directories,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	bindCRDs(cmd.Flags(), &o.crds)
	bindIgnore(cmd.Flags(), &o.ignore)
	cmd.Flags().StringVar(&o.fleet, "fleet", "", "File with the ManagedClusters to estimate the pace for, as kubectl prints them. Without it: 100 clusters.")
	cmd.Flags().StringSliceVar(&o.versions, "kube-version", nil, "Kubernetes version to check packages with, as your clusters have it; may be repeated. Default: a version that the chart allows.")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "What to print: text if empty, or "+outputJSON+".")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	return offline(cmd)
}

func bindIgnore(flags *pflag.FlagSet, ignore *string) {
	flags.StringVar(ignore, "ignore", "", "Files to leave out, as spec.ignore of the source does: .gitignore syntax from the root of the repository.")
}

// Limits of lint's output: a tree of 10,000 files can have as many problems.
const (
	mostProblems     = 100
	mostProblemBytes = 64 << 10
)

func (o *lintOptions) run(ctx context.Context, dir string) error {
	if o.output != "" && o.output != outputJSON {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot print %q: want %s, or no -o for text", o.output, outputJSON)}
	}
	if err := checkKubeVersions(o.versions...); err != nil {
		return err
	}
	hub, err := readCRDs(o.crds)
	if err != nil {
		return err
	}
	fleet, err := readFleet(o.fleet)
	if err != nil {
		return err
	}
	result, err := o.compileDir(ctx, dir, o.ignore, hub, o.versions...)
	if err != nil {
		return err
	}
	var paces []pace
	if len(result.problems) == 0 {
		if paces, err = pacesOf(result.commit, fleet); err != nil {
			return &exitError{code: exitFailed, err: err}
		}
		for i, p := range paces {
			result.commit.Warnings = append(result.commit.Warnings, p.endless(result.commit.AddOns[i], result.commit.Warnings)...)
		}
	}
	if o.output == outputJSON {
		err = o.printJSON(result.asJSON(paces))
	} else {
		err = o.printText(dir, result, paces)
	}
	if n := len(result.problems); err == nil && n > 0 {
		err = &exitError{code: exitFailed, err: fmt.Errorf("%s: %s; nothing of it would be applied", dir, brief.Count(n, "problem"))}
	}
	return err
}

// printText prints problems as data, and the other results as hints.
func (o *lintOptions) printText(dir string, result compiled, paces []pace) error {
	if len(result.problems) > 0 {
		if _, err := fmt.Fprint(o.Out, shownProblems(result.problems)); err != nil {
			return err
		}
	}
	o.warn(result.commit)
	for i, p := range paces {
		if i == mostProblems {
			o.hint("... and the paces of %s", brief.Count(len(paces)-i, "more add-on"))
			break
		}
		o.sayPace(p, o.fleet)
	}
	if len(result.problems) == 0 {
		o.hint("✔ %s: %s, %s", dir, brief.Count(result.objects, "object"), brief.Count(len(result.commit.AddOns), "add-on"))
	}
	return nil
}

// lintResult is the output of `lint -o json`.
type lintResult struct {
	Problems problem.List `json:"problems"`
	// MoreProblems and MoreWarnings count the omitted ones.
	MoreProblems int          `json:"moreProblems,omitempty"`
	Warnings     problem.List `json:"warnings"`
	MoreWarnings int          `json:"moreWarnings,omitempty"`
	// Undefined are CustomResourceDefinitions that the check needed but did not have.
	Undefined []string   `json:"undefined,omitempty"`
	Paces     []lintPace `json:"paces"`
}

// lintPace is the forecast of one add-on. Times count from the begin of the rollout, which is now.
type lintPace struct {
	AddOn  string      `json:"addOn"`
	Stages []lintStage `json:"stages,omitempty"`
	// Unstaged counts the clusters in no stage.
	Unstaged int `json:"unstaged,omitempty"`
	// Duration is absent if the rollout does not end, or there is no forecast.
	Duration string `json:"duration,omitempty"`
	// PerCluster is the assumed time for each cluster.
	PerCluster string   `json:"perCluster,omitempty"`
	Notes      []string `json:"notes,omitempty"`
	// NotEstimated is why there is no forecast.
	NotEstimated string `json:"notEstimated,omitempty"`
}

type lintStage struct {
	Name     string `json:"name"`
	Clusters int    `json:"clusters"`
	AtOnce   int    `json:"atOnce"`
	// Waits before the stage. Only those for windows are included in the times.
	Waits  []string `json:"waits,omitempty"`
	Soak   string   `json:"soak,omitempty"`
	Begins string   `json:"begins,omitempty"`
	Ends   string   `json:"ends,omitempty"`
}

// asJSON is the JSON output of the command.
func (r compiled) asJSON(paces []pace) lintResult {
	problems, more := firstOf(r.problems)
	warnings, moreWarnings := firstOf(r.commit.Warnings)
	printed := lintResult{
		Problems: append(problem.List{}, problems...), MoreProblems: more, // an empty list is printed as []
		Warnings: append(problem.List{}, warnings...), MoreWarnings: moreWarnings, Paces: []lintPace{},
	}
	for _, u := range r.commit.Undefined {
		printed.Undefined = append(printed.Undefined, u.Name)
	}
	for _, p := range paces {
		printed.Paces = append(printed.Paces, p.printed())
	}
	return printed
}

func (p pace) printed() lintPace {
	out := lintPace{AddOn: p.AddOn, Unstaged: p.Unstaged, Notes: p.Notes, NotEstimated: p.Unknown}
	if p.Unknown != "" {
		return out
	}
	out.PerCluster = p.PerCluster.String()
	for _, st := range p.Stages {
		stage := lintStage{Name: st.Name, Clusters: st.Clusters, AtOnce: st.AtOnce, Waits: st.Waits}
		if st.Soak > 0 {
			stage.Soak = st.Soak.String()
		}
		if st.Ends > 0 {
			stage.Begins, stage.Ends = st.Begins.String(), st.Ends.String()
		}
		out.Stages = append(out.Stages, stage)
	}
	if len(p.Findings) == 0 {
		out.Duration = p.Duration.String()
	}
	return out
}

// shownProblems are the lines of the first problems, and the number of the others.
func shownProblems(problems problem.List) string {
	var b strings.Builder
	first, more := firstOf(problems)
	for _, p := range first {
		b.WriteString(p.String() + "\n")
	}
	if more > 0 {
		fmt.Fprintf(&b, "... and %s\n", brief.Count(more, "more problem"))
	}
	return b.String()
}

// firstOf are the first problems, whose texts have at most mostProblemBytes, and the number of the others.
func firstOf(problems problem.List) (first problem.List, more int) {
	size := 0
	for i, p := range problems {
		for text, most := range map[*string]int{
			&p.Message: mostProblemBytes / 4, &p.Hint: mostProblemBytes / 16,
			&p.Path: mostProblemBytes / 16, &p.Name: mostProblemBytes / 16, &p.Field: mostProblemBytes / 16,
		} {
			*text = strings.ToValidUTF8((*text)[:min(len(*text), most)], "")
		}
		size += len(p.String()) + 1
		if i == mostProblems || i > 0 && size > mostProblemBytes {
			return first, len(problems) - i
		}
		first = append(first, p)
	}
	return first, 0
}

// checkKubeVersions refuses a text that is not a version of Kubernetes.
func checkKubeVersions(versions ...string) error {
	for _, v := range versions {
		if _, err := utilversion.ParseSemantic(v); err != nil {
			return &exitError{code: exitUsage, err: fmt.Errorf("cannot use --kube-version=%s: %w; want one such as v1.33.0", v, err)}
		}
	}
	return nil
}

func directories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
