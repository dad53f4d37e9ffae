package v1alpha1

import (
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// AddOnPackageKind is the kind of an add-on that is given as a Helm chart or as manifests.
const AddOnPackageKind = "AddOnPackage"

// AddOnPackageSpec is an add-on in the form of a Helm chart or of Go-template manifests in the repository, instead of
// an AddOnTemplate. An AddOnPackage is read from Git only and does not exist on the hub: the AddOnRevision has its
// content.
//
// +kubebuilder:object:generate=false
type AddOnPackageSpec struct {
	// AddOn is the name of the ClusterManagementAddOn.
	AddOn string `json:"addOn"`
	// Helm names a Helm chart. Exactly one of Helm and Manifests is given.
	Helm *PackageChart `json:"helm,omitempty"`
	// Manifests names a folder of Go-template manifests. Every .yaml, .yml and .json file in it
	// is rendered; .tpl files are partials; other files are ignored.
	Manifests *PackageFolder `json:"manifests,omitempty"`
	// ValueFiles are files of values, relative to this file; a later file overrides an earlier
	// one.
	ValueFiles []string `json:"valueFiles,omitempty"`
	// Values override the values of the files.
	Values map[string]any `json:"values,omitempty"`
	// Variables map variables to values: customizedVariables of an AddOnDeploymentConfig, and variables of
	// configurations of other kinds. A variable that is not listed becomes a string at the top of the values, under
	// its own name. Labels and claims of the cluster become values only if they are listed. They have the same names
	// as in templates.
	Variables []PackageVariable `json:"variables,omitempty"`
	// Registration as in an AddOnTemplate.
	Registration []addonv1alpha1.RegistrationSpec `json:"registration,omitempty"`
	// ManifestConfigs as in an AddOnTemplate.
	ManifestConfigs []workv1.ManifestConfigOption `json:"manifestConfigs,omitempty"`
}

// PackageChart names a Helm chart: exactly one of its fields is given.
//
// +kubebuilder:object:generate=false
type PackageChart struct {
	// Path is the folder of the chart, relative to this file, inside the repository.
	Path string `json:"path,omitempty"`
	// OCI is a chart in a registry, by its digest: host/repository:tag@sha256:<hex>. The tag may be absent and is not
	// read. The host must be in spec.registries of the AddOnSource.
	OCI string `json:"oci,omitempty"`
}

// PackageFolder names a folder of the repository.
//
// +kubebuilder:object:generate=false
type PackageFolder struct {
	// Path is relative to this file and stays inside the repository.
	Path string `json:"path"`
}

// PackageVariable maps a variable to a value.
//
// +kubebuilder:object:generate=false
type PackageVariable struct {
	// Name of the variable: a customizedVariable, a variable of another configuration, or a
	// label or claim of the cluster, such as CLUSTER_LABEL_region or CLUSTER_CLAIM_id_k8s_io.
	Name string `json:"name"`
	// Value is the path of the value: names separated by dots, such as agent.replicas.
	Value string `json:"value"`
	// Type is string (the default), integer, number or boolean.
	Type string `json:"type,omitempty"`
}
