package proposal

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout/forecast"
)

// view is the fleet as one side of the comparison has it: with the placements that it declares.
type view struct {
	known    forecast.Known
	assumed  bool
	clusters map[string]*clusterv1.ManagedCluster
	privacy  Privacy
	// installed are the clusters that have each add-on; nil: not known.
	installed map[string]map[string]bool
}

// newView returns the fleet with the placements and the bindings of cluster sets of a commit.
func newView(commit load.Commit, fleet Fleet) (*view, error) {
	v := &view{known: fleet.Known, assumed: len(fleet.Clusters) == 0, clusters: map[string]*clusterv1.ManagedCluster{}, privacy: fleet.Privacy, installed: fleet.Installed}
	v.known.Declared = nil
	v.known.Bindings = slices.Clone(v.known.Bindings)
	for _, o := range commit.Objects {
		if o.GroupVersionKind().Group != clusterv1.GroupName {
			continue
		}
		var err error
		switch o.GetKind() {
		case "Placement":
			v.known.Declared, err = appended(v.known.Declared, o)
		case "ManagedClusterSetBinding":
			if set, _, _ := unstructured.NestedString(o.Object, "spec", "clusterSet"); !fleet.Unbindable[set] {
				v.known.Bindings, err = appended[clusterv1beta2.ManagedClusterSetBinding](v.known.Bindings, o)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range fleet.Clusters {
		v.clusters[fleet.Clusters[i].Name] = &fleet.Clusters[i]
	}
	return v, nil
}

// assume returns the view without the clusters of the hub.
func (v *view) assume() *view {
	return &view{known: forecast.Known{Declared: v.known.Declared}, assumed: true, privacy: v.privacy}
}

func appended[T any](list []T, o *unstructured.Unstructured) ([]T, error) {
	var value T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &value); err != nil {
		return list, err
	}
	return append(list, value), nil
}

// fleet is the clusters that have the add-on under a policy.
func (v *view) fleet(addOn string, policy v1alpha1.AddOnRolloutSpec) (forecast.Fleet, error) {
	if v.assumed {
		return forecast.Assumed(policy, v.known.Declared), nil
	}
	known := v.known
	byHand := policy.ClusterLabelSelector == nil && (policy.Install == nil || len(policy.Install.Placements) == 0)
	if v.installed != nil && byHand {
		known.Clusters = slices.DeleteFunc(slices.Clone(known.Clusters), func(c clusterv1.ManagedCluster) bool {
			return !v.installed[addOn][c.Name]
		})
	}
	return known.Fleet(policy)
}

// selection is which install placements select each cluster, in declared order.
type selection map[string][]v1alpha1.PlacementReference

func selectionOf(policy v1alpha1.AddOnRolloutSpec, fleet forecast.Fleet) selection {
	selected := selection{}
	if policy.Install == nil {
		return selected
	}
	for _, installed := range policy.Install.Placements {
		for _, name := range members(fleet, installed.PlacementReference) {
			selected[name] = append(selected[name], installed.PlacementReference)
		}
	}
	return selected
}

// members are the clusters that a placement selects.
func members(fleet forecast.Fleet, ref v1alpha1.PlacementReference) []string {
	var names []string
	for _, pl := range fleet.Placements {
		if pl.Namespace == ref.Namespace && pl.Name == ref.Name {
			for _, g := range pl.Groups {
				names = append(names, g.Clusters...)
			}
		}
	}
	return names
}

// What clusters are rendered with in place of their own names and values.
const (
	maskedName  = "cluster"
	maskedValue = "***"
)

// inputs returns the facts of a cluster that rendering reads.
func (v *view) inputs(name string, placements []v1alpha1.PlacementReference) render.Cluster {
	c := render.Cluster{Name: name, Placements: placements, KubeVersion: "v1.33.0"}
	if v.assumed {
		c.Name = render.ProbeCluster
	}
	found := v.clusters[name]
	if found == nil {
		return c
	}
	if found.Status.Version.Kubernetes != "" {
		c.KubeVersion = found.Status.Version.Kubernetes
	}
	if v.privacy == ShowFleet {
		c.ImageRegistries = found.Annotations[clusterv1.ClusterImageRegistriesAnnotationKey]
		c.Labels, c.Claims = found.Labels, found.Status.ClusterClaims
		return c
	}
	if v.privacy == HideNames {
		c.Name = maskedName
	}
	c.KubeVersion = minor(c.KubeVersion)
	c.Labels = map[string]string{}
	for label := range found.Labels {
		c.Labels[label] = maskedValue
	}
	for _, claim := range found.Status.ClusterClaims {
		c.Claims = append(c.Claims, clusterv1.ManagedClusterClaim{Name: claim.Name, Value: maskedValue})
	}
	return c
}

// minor is the first patch of a minor version: a cluster can be recognised by its build.
func minor(version string) string {
	v, err := utilversion.ParseGeneric(version)
	if err != nil {
		return "v1.33.0"
	}
	return "v" + v.WithPatch(0).WithPreRelease("").WithBuildMetadata("").String()
}

func placementNames(refs []v1alpha1.PlacementReference) []string {
	var names []string
	for _, ref := range refs {
		names = append(names, ref.Namespace+"/"+ref.Name)
	}
	return names
}

// key is a text that is equal for equal placements.
func key(refs []v1alpha1.PlacementReference) string { return strings.Join(placementNames(refs), ",") }
