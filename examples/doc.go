// Package examples holds Git trees a user can copy, and embeds them so that tests
// render every one of them and the demo commits the same files a user would.
//
//	source.yaml          the AddOnSource: which repository, where commit statuses go
//	hello/               an add-on with a canary stage and a stage for everyone else
//	overlay/             a kustomize base and an overlay for production
//	progressive/         no AddOnRollout: the pace is OCM's own rolloutStrategy, one
//	                     decision group after another, the canary group mandatory
//	chart/               a Helm chart instead of an AddOnTemplate
//	registry/            the same, with the chart in a registry, by its digest
//	node-exporter/       a real add-on: a DaemonSet on every node, rolled back if it fails
//	config-policy-controller/
//	                     OCM's governance policies, with their CRD and a registration
//	cert-manager/        a real chart with its CRDs, and webhooks that a controller completes
//	fleet-inventory/     an agent with a registration: credentials of its own for the hub
//	manifests/           a folder of Go-template manifests instead of an AddOnTemplate
package examples

import "embed"

// Files are the examples, as they stand in this directory.
//
//go:embed source.yaml hello overlay progressive all:chart all:cert-manager registry manifests node-exporter fleet-inventory config-policy-controller
var Files embed.FS
