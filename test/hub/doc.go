// Package hub starts an embedded OCM hub: a real kube-apiserver and a real etcd on loopback,
// with OCM's custom resource definitions installed. Tests, bench and demo run on it.
//
//	hubbin.Find -> etcd, kube-apiserver -> CRDs -> namespaces -> collector
//
// Unlike a real hub it has no controllers. Nothing schedules placements and nothing answers
// works; package fleet does both. Nothing collects garbage either, so Start runs a Collector,
// which deletes objects whose owners are gone and finishes deleted namespaces. There is no
// ServiceAccount controller and no certificate signing, and OCM's validation webhooks do not
// run.
//
// A hub has the definitions of one release of OCM. With OCM12 it serves only v1alpha1 of the
// add-on kinds, the variant that OCM publishes for hubs without webhooks. With OCM13 it serves
// v1beta1 as well: Start runs a conversion webhook made of the conversion functions of OCM's
// API module.
//
// etcd runs without fsync and the API server with high in-flight limits. Priority and fairness
// stays on: clients that look for it and do not find it throttle themselves.
//
// Both servers end within seconds of the process that called Start, even if that is killed
// before it calls Stop.
//
// Production code must not import this package.
package hub
