// Package manifests is what is installed on a hub: CRDs, RBAC, the deployment,
// and their kustomization. The CRDs are generated from api/ and embedded, so that
// tests, the demo and the offline commands use the very files users apply.
package manifests

import "embed"

// CRDs holds the CustomResourceDefinitions of addonflow.io, one YAML file each,
// under crds/.
//
//go:embed crds/addonflow.io_*.yaml
var CRDs embed.FS
