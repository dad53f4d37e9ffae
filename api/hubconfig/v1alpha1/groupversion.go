package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of AddOnHubConfig.
var GroupVersion = schema.GroupVersion{Group: "addon.open-cluster-management.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme, beside OCM's own kinds of the
// same group.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &AddOnHubConfig{}, &AddOnHubConfigList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
