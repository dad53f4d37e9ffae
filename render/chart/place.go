package chart

import (
	"slices"
	"strings"
)

const crdKind = "CustomResourceDefinition"

// clusterScoped are the kinds of Kubernetes' own groups that have no namespace.
const clusterScoped = " Namespace Node PersistentVolume ComponentStatus ClusterRole ClusterRoleBinding " + crdKind +
	" APIService StorageClass CSIDriver CSINode VolumeAttachment VolumeAttributesClass PriorityClass RuntimeClass IngressClass" +
	" MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding" +
	" MutatingAdmissionPolicy MutatingAdmissionPolicyBinding FlowSchema PriorityLevelConfiguration CertificateSigningRequest" +
	" ClusterTrustBundle StorageVersion StorageVersionMigration IPAddress ServiceCIDR ResourceSlice DeviceClass DeviceTaintRule" +
	" TokenReview SelfSubjectReview SubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview PodSecurityPolicy "

// ClusterScoped reports whether a kind of one of Kubernetes' own groups has no namespace.
func ClusterScoped(group, kind string) bool {
	return kubernetesGroup(group) && among(clusterScoped, kind)
}

// kubernetesGroup reports whether a group is one of Kubernetes' own: those without a dot are
// listed; the others end in .k8s.io.
func kubernetesGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && slices.Contains([]string{
		"admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
		"coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "networking", "node", "policy",
		"rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
	}, strings.TrimSuffix(group, ".k8s.io"))
}

// placer sets the namespace of objects that need one and have none, as Helm does on
// installation.
type placer struct {
	release string
	// scopes of the kinds whose CustomResourceDefinition is among the objects.
	scopes map[string]string
}

func newPlacer(manifests []Manifest, release string) placer {
	p := placer{release: release, scopes: map[string]string{}}
	for _, m := range manifests {
		spec, _ := m.Fields["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _ := names[kindKey].(string)
		if scope, ok := spec["scope"].(string); ok && m.Fields[kindKey] == crdKind {
			p.scopes[group+"/"+kind] = scope
		}
	}
	return p
}

// namespace gives an object the release's namespace. Objects of kinds that neither Kubernetes
// has nor the chart defines stay unchanged: their scope is unknown.
func (p placer) namespace(fields map[string]any) {
	metadata, ok := fields[metadataKey].(map[string]any)
	if own, _ := metadata["namespace"].(string); !ok || own != "" || !p.namespaced(fields) {
		return
	}
	metadata["namespace"] = p.release
}

func (p placer) namespaced(fields map[string]any) bool {
	kind, _ := fields[kindKey].(string)
	version, _ := fields["apiVersion"].(string)
	group, _, found := strings.Cut(version, "/")
	if !found {
		group = ""
	}
	if kubernetesGroup(group) {
		return !ClusterScoped(group, kind)
	}
	return p.scopes[group+"/"+kind] == "Namespaced"
}

// trim removes the descriptions of a CustomResourceDefinition: they are most of its size and
// have no effect.
func trim(fields map[string]any) {
	if fields[kindKey] != crdKind {
		return
	}
	spec, _ := fields["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		schema, _ := version["schema"].(map[string]any)
		trimSchema(schema["openAPIV3Schema"])
	}
	validation, _ := spec["validation"].(map[string]any)
	trimSchema(validation["openAPIV3Schema"])
}

// trimSchema removes the description of a schema and of those in it, but not a property named
// description.
func trimSchema(value any) {
	schema, isObject := value.(map[string]any)
	if !isObject {
		return
	}
	delete(schema, "description")
	for key, part := range schema {
		switch key {
		case "properties", "patternProperties", "definitions", "dependencies":
			parts, _ := part.(map[string]any)
			for _, p := range parts {
				trimSchema(p)
			}
		case "allOf", "anyOf", "oneOf":
			parts, _ := part.([]any)
			for _, p := range parts {
				trimSchema(p)
			}
		case "items", "additionalProperties", "additionalItems", "not":
			trimSchema(part)
			parts, _ := part.([]any)
			for _, p := range parts {
				trimSchema(p)
			}
		}
	}
}
