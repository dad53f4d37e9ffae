package spoke

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	kindNamespace = "Namespace"
	kindCRD       = "CustomResourceDefinition"
)

// clusterScoped lists the built-in kinds without a namespace.
func clusterScoped(kind string) bool {
	switch kind {
	case kindNamespace, kindCRD, "Node", "PersistentVolume", "APIService",
		"ClusterRole", "ClusterRoleBinding", "StorageClass", "CSIDriver", "CSINode", "VolumeAttachment",
		"PriorityClass", "RuntimeClass", "IngressClass", "IPAddress", "ServiceCIDR", "VolumeAttributesClass", "FlowSchema", "PriorityLevelConfiguration",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"CertificateSigningRequest", "ClusterTrustBundle", "DeviceClass", "ResourceSlice":
		return true
	}
	return false
}

// builtIn says whether every cluster serves a kind: of Kubernetes' own those that are stable.
func builtIn(gvk schema.GroupVersionKind) bool {
	if strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") {
		return false
	}
	return clientgoscheme.Scheme.Recognizes(gvk) || gvk.Group == "apiextensions.k8s.io" || gvk.Group == "apiregistration.k8s.io"
}

// rank is the order in which the agent applies the manifests of a work:
// namespaces and definitions before what needs them, workloads late.
func rank(kind string) int {
	switch kind {
	case "PriorityClass", kindNamespace, kindCRD, "StorageClass", "PersistentVolume", "PodSecurityPolicy":
		return 0
	case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return 1
	case "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount":
		return 2
	case "Secret", "ConfigMap", "PersistentVolumeClaim":
		return 3
	case "Service":
		return 4
	case "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment",
		"HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob":
		return 5
	case "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
		return 6
	}
	return 1000
}

// identify fills in what the agent reports of a manifest. The error is that of
// an agent whose cluster does not serve the kind.
func (c *Cluster) identify(ordinal int, object *unstructured.Unstructured) (workv1.ManifestResourceMeta, error) {
	gvk := object.GroupVersionKind()
	found := workv1.ManifestResourceMeta{
		Ordinal:   shown(ordinal),
		Group:     gvk.Group,
		Version:   gvk.Version,
		Kind:      gvk.Kind,
		Name:      object.GetName(),
		Namespace: object.GetNamespace(),
	}
	resource, namespaced, served := c.mapping(gvk)
	if !served {
		return found, fmt.Errorf("the server doesn't have a resource type %q", gvk.Kind)
	}
	found.Resource = resource
	if !namespaced {
		found.Namespace = ""
	}
	return found, nil
}

// mapping is the cluster's discovery: resource name, whether it is namespaced,
// and whether it is served at all.
func (c *Cluster) mapping(gvk schema.GroupVersionKind) (string, bool, bool) {
	guess, _ := meta.UnsafeGuessKindToResource(gvk)
	if builtIn(gvk) {
		return guess.Resource, !clusterScoped(gvk.Kind), true
	}
	if c.world.serves(gvk) {
		return guess.Resource, true, true
	}
	for id, object := range c.objects {
		if id.Resource != "customresourcedefinitions" {
			continue
		}
		group, _, _ := unstructured.NestedString(object.live.Object, fieldSpec, "group")
		kind, _, _ := unstructured.NestedString(object.live.Object, fieldSpec, "names", "kind")
		if group != gvk.Group || kind != gvk.Kind || !hasVersion(object.live, gvk.Version) {
			continue
		}
		plural, _, _ := unstructured.NestedString(object.live.Object, fieldSpec, "names", "plural")
		scope, _, _ := unstructured.NestedString(object.live.Object, fieldSpec, "scope")
		return strings.ToLower(plural), scope != "Cluster", true
	}
	return "", false, false
}

// hasVersion reports whether a definition serves a version of its kind.
func hasVersion(definition *unstructured.Unstructured, version string) bool {
	versions, _, _ := unstructured.NestedSlice(definition.Object, fieldSpec, "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		fields, _ := v.(map[string]any)
		return fields["name"] == version && fields["served"] == true
	})
}
