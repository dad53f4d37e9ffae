// Package v1alpha1 holds AddOnHubConfig, which OCM's add-on lifecycle proposal describes and
// OCM's API module does not contain. It is in OCM's API group, so that references to it look
// like those to any other configuration.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1
