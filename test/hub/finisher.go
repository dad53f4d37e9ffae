package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// errNotEmpty: a deleted namespace still has objects.
var errNotEmpty = errors.New("namespace is not empty yet")

// finisher empties and finalizes deleted namespaces, the namespace
// controller's part. Every kind that can be listed and deleted is looked at,
// since an object left behind would come back with the next namespace of that
// name. Finalizers of objects are respected: the namespace waits for them.
type finisher struct {
	kube     kubernetes.Interface
	metadata metadata.Interface
}

func newFinisher(cfg *rest.Config, client metadata.Interface) (*finisher, error) {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot build the namespace finisher: %w", err)
	}
	return &finisher{kube: kube, metadata: client}, nil
}

// finish empties and finalizes a namespace that is being deleted. It returns errNotEmpty as
// long as something is left; the caller tries again.
func (f *finisher) finish(ctx context.Context, name string) error {
	resources, err := f.deletable()
	if err != nil {
		return err
	}
	left := false
	for _, r := range resources {
		some, err := f.empty(ctx, r, name)
		if err != nil {
			return err
		}
		left = left || some
	}
	if left {
		return errNotEmpty
	}
	namespace, err := f.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	namespace.Spec.Finalizers = nil
	_, err = f.kube.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

// deletable reads the resources each time: a test may have added a CRD.
func (f *finisher) deletable() ([]schema.GroupVersionResource, error) {
	lists, err := f.kube.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	var found []schema.GroupVersionResource
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "deletecollection"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			found = append(found, gv.WithResource(r.Name))
		}
	}
	return found, nil
}

// empty deletes all objects of one resource and reports whether there were any.
func (f *finisher) empty(ctx context.Context, r schema.GroupVersionResource, namespace string) (bool, error) {
	client := f.metadata.Resource(r).Namespace(namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, ignoreNotFound(err)
	}
	if len(list.Items) == 0 {
		return false, nil
	}
	isLive := func(o metav1.PartialObjectMetadata) bool { return o.DeletionTimestamp == nil }
	if !slices.ContainsFunc(list.Items, isLive) {
		return true, nil
	}
	policy := metav1.DeletePropagationBackground
	return true, client.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &policy}, metav1.ListOptions{})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
