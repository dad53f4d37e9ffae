package variable

import (
	"regexp"
	"strings"
)

// Names that OCM's renderer defines.
const (
	HubKubeconfig    = "HUB_KUBECONFIG"
	ClusterName      = "CLUSTER_NAME"
	InstallNamespace = "INSTALL_NAMESPACE"
)

// Prefixes of variables that have the value of a label or claim of the cluster's
// ManagedCluster: {{CLUSTER_LABEL_region}} is the label region. In the name of a label or claim
// every character that a variable cannot contain is written _, so that
// {{CLUSTER_LABEL_topology_kubernetes_io_zone}} is topology.kubernetes.io/zone. A cluster
// without the label gets a customised variable of that name, if there is one.
const (
	ClusterLabelPrefix = "CLUSTER_LABEL_"
	ClusterClaimPrefix = "CLUSTER_CLAIM_"
)

// MaxName is the longest name in characters, as in the schema of AddOnDeploymentConfig.
const MaxName = 255

var identifierText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsName reports whether text can be the name of a variable, whatever its length.
func IsName(text string) bool { return identifierText.MatchString(text) }

// BuiltIn reports whether OCM or AddonFlow defines the variable.
func BuiltIn(name string) bool {
	return name == HubKubeconfig || name == ClusterName || name == InstallNamespace || ClusterGives(name)
}

// ClusterGives reports whether a variable is a label or claim of the cluster.
func ClusterGives(name string) bool {
	return strings.HasPrefix(name, ClusterLabelPrefix) || strings.HasPrefix(name, ClusterClaimPrefix)
}
