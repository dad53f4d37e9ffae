// Package e2e runs the operator's own binary against an embedded hub, simulated
// clusters, Git repositories over HTTP and a forge, and holds what it does against
// what is promised. Every spec has an add-on, a repository, a source and placements
// of its own; hub, clusters and operator are shared.
package e2e
