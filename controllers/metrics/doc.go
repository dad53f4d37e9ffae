// Package metrics is what the operator measures for Prometheus, besides what controller-runtime
// and Flux's library do: the course of rollouts, what Git servers answer, and what forges accept.
//
// Everything about a rollout is computed from two of its statuses, the one before a write and the
// one after it. So a metric changes only if a status was stored, and a restart repeats nothing.
// Labels name rollouts, stages, gates and sources, never a cluster: ten thousand of those would
// break a metrics server.
package metrics
