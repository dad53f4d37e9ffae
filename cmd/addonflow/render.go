package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
)

// Formats of `render -o`.
const (
	outputObjects = "objects"
	outputWorks   = "works"
)

type renderOptions struct {
	*cli
	cluster    string
	placements []string
	addOn      string
	registries string
	values     string
	hosting    string
	version    string
	labels     map[string]string
	claims     map[string]string
	crds       string
	ignore     string
	output     string
}

func newRenderCommand(c *cli) *cobra.Command {
	o := &renderOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "render PATH",
		Short: "Print what a directory would run on a cluster, without a cluster",
		Long: `Print what a directory would run on a cluster, without a cluster.

The directory is read, checked and rendered by the code the operator runs. Which
placements select the cluster is not known offline: without --placement it gets the
add-on's default configuration.`,
		Example: `  # The objects of every add-on in the directory
  addonflow render addons/hello
  # What a change does to a cluster of the canary placement
  diff <(git stash -q; addonflow render . --placement default/canary; git stash pop -q) \
       <(addonflow render . --placement default/canary)
  # The ManifestWorks the hub would hold
  addonflow render addons/hello --cluster eu-west-7 -o works`,
		Args:              takes,
		ValidArgsFunction: directories,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&o.cluster, "cluster", "cluster1", "Name of the cluster to render for.")
	cmd.Flags().StringSliceVar(&o.placements, "placement", nil, "Install placement, namespace/name, that selects the cluster; may be repeated.")
	cmd.Flags().StringVar(&o.addOn, "add-on", "", "Render only this add-on.")
	cmd.Flags().StringVar(&o.registries, "image-registries", "", "Value of the ManagedCluster's image-registries annotation.")
	cmd.Flags().StringVar(&o.hosting, "hosting-cluster", "", "Hosting cluster, for what the add-on is in hosted mode.")
	cmd.Flags().StringVar(&o.values, "values", "", "Value of the ManagedClusterAddOn's values annotation.")
	cmd.Flags().StringToStringVar(&o.labels, "cluster-label", nil, "Label of the cluster, name=value, for {{CLUSTER_LABEL_name}}; may be repeated.")
	cmd.Flags().StringToStringVar(&o.claims, "cluster-claim", nil, "Claim of the cluster, name=value, for {{CLUSTER_CLAIM_name}}; may be repeated.")
	cmd.Flags().StringVar(&o.version, "kube-version", "v1.33.0", "Kubernetes version of the cluster, for a package.")
	bindCRDs(cmd.Flags(), &o.crds)
	bindIgnore(cmd.Flags(), &o.ignore)
	cmd.Flags().StringVarP(&o.output, "output", "o", outputObjects, "What to print: "+outputObjects+" or "+outputWorks+".")
	return offline(cmd)
}

func (o *renderOptions) run(ctx context.Context, dir string) error {
	if o.output != outputObjects && o.output != outputWorks {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot print %q: one of %s, %s", o.output, outputObjects, outputWorks)}
	}
	if wrong := validation.IsDNS1123Label(o.cluster); len(wrong) > 0 {
		return &exitError{code: exitUsage, err: fmt.Errorf("cannot use --cluster=%q: %s", o.cluster, wrong[0])}
	}
	if err := checkKubeVersions(o.version); err != nil {
		return err
	}
	placements, err := parsePlacements(o.placements)
	if err != nil {
		return err
	}
	hub, err := readCRDs(o.crds)
	if err != nil {
		return err
	}
	result, err := o.compileDir(ctx, dir, o.ignore, hub)
	if err != nil {
		return err
	}
	if err := result.problems.Err(); err != nil {
		return &exitError{code: exitFailed, err: fmt.Errorf("cannot render %s:\n%w", dir, err)}
	}
	o.warn(result.commit)
	addOns := slices.DeleteFunc(slices.Clone(result.commit.AddOns), func(a load.AddOn) bool {
		return o.addOn != "" && a.Name != o.addOn
	})
	if len(addOns) == 0 {
		return &exitError{code: exitNotFound, err: absentAddOn(dir, o.addOn, result.commit)}
	}
	for _, addOn := range addOns {
		if err := o.render(addOn, placements); err != nil {
			if names := installedBy(addOn); len(placements) == 0 && len(names) > 0 {
				o.hint("%s is installed by placements %s; say which select the cluster with --placement", addOn.Name, strings.Join(names, ", "))
			}
			return &exitError{code: exitFailed, err: err}
		}
	}
	return nil
}

// absentAddOn is the error for an add-on that is not in a directory. It names the add-ons in the directory.
func absentAddOn(dir, asked string, commit load.Commit) error {
	names := make([]string, 0, len(commit.AddOns))
	for _, a := range commit.AddOns {
		names = append(names, a.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("cannot find an add-on to render in %s: it has no ClusterManagementAddOn", dir)
	}
	return fmt.Errorf("cannot find add-on %q in %s; it has %s", asked, dir, brief.Names(names))
}

func parsePlacements(names []string) ([]v1alpha1.PlacementReference, error) {
	out := make([]v1alpha1.PlacementReference, 0, len(names))
	for _, name := range names {
		namespace, short, ok := strings.Cut(name, "/")
		if !ok || namespace == "" || short == "" || strings.Contains(short, "/") {
			return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot use --placement=%q: want namespace/name", name)}
		}
		out = append(out, v1alpha1.PlacementReference{Namespace: namespace, Name: short})
	}
	return out, nil
}

func (o *renderOptions) render(addOn load.AddOn, placements []v1alpha1.PlacementReference) error {
	if len(addOn.Missing) > 0 {
		return fmt.Errorf("cannot render add-on %q: it refers to %s, which is not in the directory", addOn.Name, addOn.Missing[0])
	}
	if addOn.Unfetched != "" {
		return fmt.Errorf("cannot render add-on %q: its chart is in a registry, %s, from which only the operator fetches; "+
			"addonflow vendor writes a chart into the directory", addOn.Name, addOn.Unfetched)
	}
	selecting, err := inOrder(addOn, placements)
	if err != nil {
		return err
	}
	renderer, err := render.NewRenderer(addOn.Content, o.charts.For(addOn.Name))
	if err != nil {
		return err
	}
	rendered, err := renderer.Render(o.inputs(selecting))
	if problems := addOn.Place(err); len(problems) > 0 {
		return problems.Err()
	}
	if err != nil {
		return err
	}
	objects, err := rendered.Objects()
	if err == nil && o.output == outputWorks {
		objects, err = worksOf(rendered, addOn, o.cluster)
	}
	if err != nil {
		return err
	}
	return o.print(objects)
}

// inputs is the cluster that the flags describe.
func (o *renderOptions) inputs(selecting []v1alpha1.PlacementReference) render.Cluster {
	c := render.Cluster{
		Name: o.cluster, Placements: selecting, ImageRegistries: o.registries,
		Values: o.values, KubeVersion: o.version, Labels: o.labels, Hosting: o.hosting,
	}
	for name, value := range o.claims {
		c.Claims = append(c.Claims, clusterv1.ManagedClusterClaim{Name: name, Value: value})
	}
	return c
}

// inOrder sorts the placements in the order of the add-on, because the last placement that selects a cluster counts.
// A placement that the add-on does not declare is an error.
func inOrder(addOn load.AddOn, placements []v1alpha1.PlacementReference) ([]v1alpha1.PlacementReference, error) {
	var out []v1alpha1.PlacementReference
	for _, p := range addOn.Install.Placements {
		if slices.Contains(placements, p.PlacementReference) {
			out = append(out, p.PlacementReference)
		}
	}
	for _, p := range placements {
		if !slices.Contains(out, p) {
			return nil, fmt.Errorf("cannot render add-on %q: placement %s/%s does not install it; those that do: %s",
				addOn.Name, p.Namespace, p.Name, strings.Join(installedBy(addOn), ", "))
		}
	}
	return out, nil
}

// installedBy names the placements that install an add-on, in declared order.
func installedBy(addOn load.AddOn) []string {
	names := make([]string, 0, len(addOn.Install.Placements))
	for _, p := range addOn.Install.Placements {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

// worksOf are the works as the hub would have them. The works of pre-delete hooks are last, because the hub gets them
// only when the add-on is being removed. The owner is omitted, because only the hub knows its UID.
func worksOf(rendered render.Rendered, addOn load.AddOn, cluster string) ([]*unstructured.Unstructured, error) {
	owner := render.Owner{Name: addOn.Name, Namespace: cluster, Revision: addOn.Digest}
	works, _, err := rendered.Works(owner, nil)
	if err != nil {
		return nil, err
	}
	hooks, err := rendered.HookWorks(owner)
	if err != nil {
		return nil, err
	}
	works = append(works, hooks...)
	out := make([]*unstructured.Unstructured, 0, len(works))
	for _, work := range works {
		work.SetOwnerReferences(nil)
		work.APIVersion, work.Kind = workv1.GroupVersion.String(), "ManifestWork"
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(work)
		if err != nil {
			return nil, fmt.Errorf("cannot print work %s: %w", work.Name, err)
		}
		delete(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out, nil
}

// print writes the objects as YAML documents.
func (o *renderOptions) print(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("cannot print %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if _, err := fmt.Fprintf(o.Out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}
