package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AddOnHubConfigKind is the kind of AddOnHubConfig.
const AddOnHubConfigKind = "AddOnHubConfig"

// VersionLabel on an AddOnTemplate says which version of its add-on it is.
const VersionLabel = "addonflow.io/version"

// AddOnHubConfigSpec selects the version of an add-on: as a default, for a placement, or for one ManagedClusterAddOn.
type AddOnHubConfigSpec struct {
	// DesiredVersion selects the AddOnTemplate of the add-on whose label addonflow.io/version
	// has this value. It is an error if none or more than one has it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"
	DesiredVersion string `json:"desiredVersion"`
}

// AddOnHubConfig selects the version of an add-on. It is bound like any configuration: as a
// default or by a placement of a ClusterManagementAddOn, or by a ManagedClusterAddOn. An
// AddOnTemplate at the same level conflicts with it; an AddOnTemplate at a more specific level
// overrides it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=aohc,categories=addonflow
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.desiredVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AddOnHubConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired version.
	Spec AddOnHubConfigSpec `json:"spec"`
}

// AddOnHubConfigList is a list of AddOnHubConfig.
//
// +kubebuilder:object:root=true
type AddOnHubConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddOnHubConfig `json:"items"`
}
