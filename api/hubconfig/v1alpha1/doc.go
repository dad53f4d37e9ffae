// Package v1alpha1 holds AddOnHubConfig, which OCM's add-on lifecycle describes and
// OCM's API module does not have. Its group is OCM's, so that references to it read
// like those to any other configuration.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1
