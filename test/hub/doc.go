// Package hub starts an embedded OCM hub: a real kube-apiserver and a real
// etcd on loopback, with OCM's custom resource definitions installed. Tests,
// bench and demo run on it.
//
//	hubbin.Find -> etcd, kube-apiserver -> CRDs -> namespaces -> collector
//
// What a hub has that this one has not: controllers. Nothing schedules
// placements and nothing answers works; package fleet does both. Nothing
// collects garbage either, so Start runs a Collector, which deletes objects
// whose owners are gone and finishes deleted namespaces. There is no
// ServiceAccount controller and no certificate signing, and OCM's conversion
// and validation webhooks do not run: of the add-on kinds only v1alpha1 is
// served, the variant OCM publishes for hubs without webhooks.
//
// etcd runs without fsync and the API server with high in-flight limits.
// Priority and fairness stays on: clients that look for it and do not find it
// throttle themselves.
//
// Both servers end within seconds of the process that called Start, also when
// that is killed before it could call Stop.
//
// Nothing in production code may import this package.
package hub
