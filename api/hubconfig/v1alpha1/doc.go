// Package v1alpha1 holds AddOnHubConfig. OCM's add-on lifecycle proposal describes this kind, but OCM's API module
// does not contain it. The kind is in OCM's API group, so that it is referred to like any other configuration.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1
