package render

import (
	"cmp"
)

// defaultInstallNamespace is the namespace into which OCM installs agents by default.
const defaultInstallNamespace = "open-cluster-management-agent-addon"

// relocate moves an object to the install namespace. It replaces the namespace of the object if it
// has one, the namespaces of the subjects of a binding, and the name of a Namespace. A binding may
// have no subjects, although OCM treats that as an error.
func relocate(obj map[string]any, namespace string) {
	if namespace == "" {
		return
	}
	metadata, _ := obj["metadata"].(map[string]any)
	if own, _ := metadata["namespace"].(string); own != "" {
		metadata["namespace"] = namespace
	}
	switch obj["kind"] {
	case "RoleBinding", "ClusterRoleBinding":
		for _, subject := range objectsIn(obj, "subjects") {
			subject["namespace"] = namespace
		}
	case "Namespace":
		if metadata != nil {
			metadata["name"] = namespace
		}
	}
}

// registrationNamespace is the namespace in which the registration agent stores credentials. It is the first of
// these: the configuration's namespace, that of the first Deployment, that of the first DaemonSet, as in OCM; then
// that of the first other workload.
func registrationNamespace(configured string, objects []object) string {
	var deployment, daemonSet, other string
	for _, o := range objects {
		if o.workload == nil || o.workload.kind.name == "" {
			continue
		}
		switch o.workload.kind.name {
		case deploymentKind:
			deployment = o.id.Namespace
		case daemonSetKind:
			daemonSet = cmp.Or(daemonSet, o.id.Namespace)
		default:
			other = cmp.Or(other, o.id.Namespace)
		}
		if o.workload.kind.name == deploymentKind {
			break
		}
	}
	return cmp.Or(configured, deployment, daemonSet, other, defaultInstallNamespace)
}
