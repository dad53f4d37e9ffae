package addonsource

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// objectKey identifies a hub object, whatever version it is read in.
type objectKey struct {
	Group, Kind, Namespace, Name string
}

// String returns Kind/namespace/name, as texts name an object.
func (k objectKey) String() string {
	if k.Namespace == "" {
		return k.Kind + "/" + k.Name
	}
	return k.Kind + "/" + k.Namespace + "/" + k.Name
}

// compare orders by kind, namespace and name.
func (k objectKey) compare(other objectKey) int {
	return cmp.Or(
		strings.Compare(k.Group, other.Group), strings.Compare(k.Kind, other.Kind),
		strings.Compare(k.Namespace, other.Namespace), strings.Compare(k.Name, other.Name),
	)
}

func keyOf(u *unstructured.Unstructured) objectKey {
	kind := u.GroupVersionKind()
	return objectKey{Group: kind.Group, Kind: kind.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// addOnGVK is the kind ClusterManagementAddOn, in the version to which content is normalised.
func addOnGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: addonv1alpha1.GroupVersion.Version, Kind: addOnKind}
}

func addOnKey(name string) objectKey {
	return objectKey{Group: addonv1alpha1.GroupName, Kind: addOnKind, Name: name}
}

func sourceKey(source types.NamespacedName) objectKey {
	return objectKey{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.AddOnSourceKind, Namespace: source.Namespace, Name: source.Name}
}

func rolloutKey(namespace, addOn string) objectKey {
	return objectKey{Group: v1alpha1.GroupVersion.Group, Kind: v1alpha1.AddOnRolloutKind, Namespace: namespace, Name: addOn}
}

func (k objectKey) isAddOn() bool {
	return k.Group == addonv1alpha1.GroupName && k.Kind == addOnKind
}

func (k objectKey) isRollout() bool {
	return k.Group == v1alpha1.GroupVersion.Group && k.Kind == v1alpha1.AddOnRolloutKind
}

func (k objectKey) isNamespace() bool { return k.Group == "" && k.Kind == "Namespace" }

// referenceTo returns an object as the inventory lists it.
func referenceTo(u *unstructured.Unstructured) v1alpha1.ObjectReference {
	return v1alpha1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func keyOfReference(r v1alpha1.ObjectReference) objectKey {
	return objectKey{Group: groupOf(r.APIVersion), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// emptyOf returns an object with only the identity of an entry of the inventory.
func emptyOf(r v1alpha1.ObjectReference) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(r.APIVersion)
	u.SetKind(r.Kind)
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	return u
}

// groupOf returns the group of an apiVersion, "" if it cannot be parsed.
func groupOf(apiVersion string) string {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ""
	}
	return gv.Group
}

func compareReferences(a, b v1alpha1.ObjectReference) int {
	return keyOfReference(a).compare(keyOfReference(b))
}

// ownerOf returns the source in the mark of an object; "": none.
func ownerOf(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	return u.GetAnnotations()[v1alpha1.SourceAnnotation]
}

// ours reports whether an object has both marks of a source and is not part of AddonFlow itself. Only such objects
// are ever deleted.
func ours(u *unstructured.Unstructured, source string) bool {
	return u != nil && ownerOf(u) == source && u.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue && !installs(u)
}

// installs reports whether an object is part of AddonFlow itself, by the labels of manifests/install and the chart.
func installs(u *unstructured.Unstructured) bool {
	if u == nil {
		return false
	}
	const product = "addonflow"
	return u.GetLabels()["app.kubernetes.io/name"] == product && u.GetLabels()["app.kubernetes.io/part-of"] == product
}
