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

// A template that names one of these has the value of a label or claim of the cluster's
// ManagedCluster: {{CLUSTER_LABEL_region}} of the label region. In the name of a label
// or claim every character that a variable cannot have is written _, so that
// {{CLUSTER_LABEL_topology_kubernetes_io_zone}} is topology.kubernetes.io/zone. A
// customised variable of the name is what a cluster without the label gets.
const (
	ClusterLabelPrefix = "CLUSTER_LABEL_"
	ClusterClaimPrefix = "CLUSTER_CLAIM_"
)

// MaxName is how many characters a name may have, as in the schema of AddOnDeploymentConfig.
const MaxName = 255

var identifierText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsName reports whether text can be the name of a variable, whatever its length.
func IsName(text string) bool { return identifierText.MatchString(text) }

// BuiltIn reports whether a variable has a meaning of its own.
func BuiltIn(name string) bool {
	return name == HubKubeconfig || name == ClusterName || name == InstallNamespace || ClusterGives(name)
}

// ClusterGives reports whether a variable is a label or claim of the cluster.
func ClusterGives(name string) bool {
	return strings.HasPrefix(name, ClusterLabelPrefix) || strings.HasPrefix(name, ClusterClaimPrefix)
}
