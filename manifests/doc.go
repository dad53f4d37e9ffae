// Package manifests holds the objects to install on a hub: CRDs, RBAC, the deployment, and their kustomization.
//
//	crds/           generated from api/ by controller-gen
//	prerequisites/  CRDs and the namespace, which stay when AddonFlow is uninstalled
//	rbac/           service account and rights of the operator
//	admission/      the policy that proves the author of an AddOnApproval
//	users/          roles for users: addonflow-view, addonflow-edit, addonflow-approve
//	operator/       the deployment, its services, disruption budget and network policy
//	monitoring/     optional: ServiceMonitor, alerts, and a dashboard for Grafana
//	install/        the operator: kubectl apply -k manifests/install
//	default-canary/ a component: the operator with --default-canary
//	replace/        the same on a hub without OCM's addon-manager
//	chart/          the same for Helm; make generate copies its files/
//
// CRDs and RBAC are embedded, so that tests, the demo and the offline commands use the same
// files as users. The tests build the directories as kubectl does and check their promises:
// least privilege, the restricted pod security standard, and schemas that agree with the Go
// types.
package manifests

import (
	"embed"
	"io/fs"
)

// CRDs holds the CustomResourceDefinitions that AddonFlow installs, one YAML file each, under
// crds/: those of addonflow.io, and AddOnHubConfig in OCM's group, which no hub has by itself.
//
//go:embed crds/addonflow.io_*.yaml crds/addon.open-cluster-management.io_*.yaml
var CRDs embed.FS

// CRDFiles are the files of CRDs, in order of name.
func CRDFiles() ([][]byte, error) {
	names, err := fs.Glob(CRDs, "crds/*.yaml")
	if err != nil {
		return nil, err
	}
	files := make([][]byte, 0, len(names))
	for _, name := range names {
		text, err := CRDs.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, text)
	}
	return files, nil
}

// RBAC holds the operator's ServiceAccount and rights, under rbac/, its namespace, in
// prerequisites/namespace.yaml, and its additional rights on a hub without OCM's addon-manager,
// in replace/clusterrole.yaml.
//
//go:embed rbac/*.yaml prerequisites/namespace.yaml replace/clusterrole.yaml
var RBAC embed.FS
