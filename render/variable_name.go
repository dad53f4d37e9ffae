package render

import (
	"regexp"
	"strings"
)

// Names that OCM's renderer defines (OCM behaviour, row 65).
const (
	hubKubeconfigVariable    = "HUB_KUBECONFIG"
	clusterNameVariable      = "CLUSTER_NAME"
	installNamespaceVariable = "INSTALL_NAMESPACE"
)

// A template that names one of these has the value of a label or claim of the cluster's
// ManagedCluster: {{CLUSTER_LABEL_region}} of the label region. In the name of a label
// or claim every character that a variable cannot have is written _, so that
// {{CLUSTER_LABEL_topology_kubernetes_io_zone}} is topology.kubernetes.io/zone. A
// customised variable of the name is what a cluster without the label gets.
const (
	clusterLabelPrefix = "CLUSTER_LABEL_"
	clusterClaimPrefix = "CLUSTER_CLAIM_"
)

// Limits of a variable, those of the AddOnDeploymentConfig schema.
const (
	maxVariableName = 255
)

var identifierText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// isVariableName reports whether text can be the name of a variable, whatever its length.
func isVariableName(text string) bool { return identifierText.MatchString(text) }

// builtIn reports whether a variable has a meaning of its own.
func builtIn(name string) bool {
	return name == hubKubeconfigVariable || name == clusterNameVariable || name == installNamespaceVariable || clusterGives(name)
}

// clusterGives reports whether a variable is a label or claim of the cluster.
func clusterGives(name string) bool {
	return strings.HasPrefix(name, clusterLabelPrefix) || strings.HasPrefix(name, clusterClaimPrefix)
}
