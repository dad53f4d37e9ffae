// Package metrics has the operator's own metrics for Prometheus: the course of rollouts, the answers of Git servers,
// and the answers of forges. controller-runtime and Flux's library have further metrics.
//
// Every metric of a rollout is computed from two of its statuses: the one before a write and the one after it. So a
// metric changes only if a status was stored, and a restart repeats nothing. Labels name rollouts, stages, gates and
// sources, never a cluster: ten thousand clusters would be too many labels for a metrics server.
package metrics
