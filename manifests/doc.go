// Package manifests is what is installed on a hub: CRDs, RBAC, the deployment,
// and their kustomization.
//
//	crds/      generated from api/ by controller-gen
//	rbac/      namespace, service account, what the operator may do
//	operator/  the deployment and a service for its metrics
//	install/   all of it: kubectl apply -k manifests/install
//	replace/   the same on a hub without OCM's addon-manager
//
// CRDs and RBAC are embedded, so that tests, the demo and the offline commands use
// the very files users apply. The tests build manifests/install as kubectl does and hold
// the promises in it: least privilege, the restricted pod security standard, and
// schemas that agree with the Go types.
package manifests

import "embed"

// CRDs holds the CustomResourceDefinitions that AddonFlow brings, one YAML file each,
// under crds/: those of addonflow.io, and OCM's AddOnHubConfig, which no hub has.
//
//go:embed crds/addonflow.io_*.yaml crds/addon.open-cluster-management.io_*.yaml
var CRDs embed.FS

// RBAC holds the operator's namespace, ServiceAccount and rights, under rbac/.
//
//go:embed rbac/*.yaml
var RBAC embed.FS
