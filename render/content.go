package render

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/variable"
)

// Content has everything that decides which objects run on a cluster for one add-on, and nothing else. Pace and
// install placements are policy and not part of it; only the configurations that a placement assigns are. It is the
// body of an AddOnRevision; equal Content has an equal digest.
//
// Invariant: Templates and Configs are sorted by reference, normalised to the hub's storage version with the CRD's
// structural schema, and reduced to name and namespace in their metadata. Placements are in declared order, because
// the last one that selects a cluster applies.
type Content struct {
	// AddOn is the name of the add-on.
	AddOn string `json:"addOn"`
	// Supported lists the configuration kinds the add-on declares, sorted.
	Supported []addonv1alpha1.ConfigGroupResource `json:"supported,omitempty"`
	// MergeConfigs: all AddOnDeploymentConfigs of a level are merged, instead of using only the
	// first.
	MergeConfigs bool `json:"mergeConfigs,omitempty"`
	// Defaults are the default configurations, sorted by group and resource.
	Defaults []ConfigReference `json:"defaults,omitempty"`
	// Placements says which configurations each placement assigns. Placements without
	// configurations are omitted, so that a new placement changes the policy and not the content.
	Placements []PlacementConfigs `json:"placements,omitempty"`
	// Templates by name.
	Templates []Template `json:"templates,omitempty"`
	// Package is set instead of Templates, from an AddOnPackage.
	Package *Package `json:"package,omitempty"`
	// Configs are the other configurations: AddOnDeploymentConfigs and any kind
	// the add-on declares as supported.
	Configs []Config `json:"configs,omitempty"`
}

// ConfigReference names one configuration object.
type ConfigReference struct {
	Group     string `json:"group"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// PlacementConfigs are the configurations that one placement assigns to its clusters, in declared order.
type PlacementConfigs struct {
	v1alpha1.PlacementReference `json:",inline"`
	Configs                     []ConfigReference `json:"configs"`
}

// Template is an AddOnTemplate as the API server stores it.
type Template struct {
	Name string `json:"name"`
	// SpecHash is OCM's hash of the stored object.
	SpecHash string `json:"specHash"`
	// Typed are the variables declared with a type, by name, from the annotation
	// TypedAnnotation; see ParseTyped.
	Typed map[string]string `json:"typed,omitempty"`
	// FromConfigs are the variables that configurations give, sorted by name, from the
	// annotation FromConfigsAnnotation.
	FromConfigs []variable.FromConfig `json:"fromConfigs,omitempty"`
	// Newer are the names of strict.NewerNamesAnnotation.
	Newer []string `json:"newer,omitempty"`
	// Version is the label addonflow.io/version, in an add-on that lists AddOnHubConfig.
	Version string `json:"version,omitempty"`
	// Spec is the stored spec, as unstructured JSON.
	Spec map[string]any `json:"spec"`
}

// Config is a configuration object as the API server stores it.
type Config struct {
	ConfigReference `json:",inline"`
	// APIVersion and Kind of the stored object.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// SpecHash is OCM's hash of the stored object.
	SpecHash string `json:"specHash"`
	// Body holds every top-level field but apiVersion, kind, metadata and status.
	Body map[string]any `json:"body"`
	// Typed and FromConfigs are those of Template, for an AddOnTemplate that a ManagedClusterAddOn names. Other
	// configurations, and those of a Content, have none.
	Typed       map[string]string     `json:"-"`
	FromConfigs []variable.FromConfig `json:"-"`
}

// String is resource.group/namespace/name; the namespace is left out if there is none.
func (c ConfigReference) String() string {
	text := schema.GroupResource{Group: c.Group, Resource: c.Resource}.String() + "/"
	if c.Namespace != "" {
		text += c.Namespace + "/"
	}
	return text + c.Name
}
