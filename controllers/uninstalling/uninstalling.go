package uninstalling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Cause names the object whose deletion deletes the sources and rollouts of a namespace: the
// Namespace, or a CustomResourceDefinition of AddonFlow's. That deletion uninstalls AddonFlow;
// it does not approve the removal of add-ons. It returns "" if there is none.
func Cause(ctx context.Context, live client.Reader, namespace string) (string, error) {
	definition := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	for _, of := range []struct {
		kind schema.GroupVersionKind
		name string
	}{
		{corev1.SchemeGroupVersion.WithKind("Namespace"), namespace},
		{definition, "addonsources." + v1alpha1.GroupVersion.Group},
		{definition, "addonrollouts." + v1alpha1.GroupVersion.Group},
	} {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(of.kind)
		if err := live.Get(ctx, client.ObjectKey{Name: of.name}, object); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("cannot read %s %s: %w", of.kind.Kind, of.name, err)
		}
		if object.DeletionTimestamp != nil {
			return of.kind.Kind + "/" + of.name, nil
		}
	}
	return "", nil
}
