// Package e2e runs the operator's own binary against an embedded hub, simulated clusters, Git
// repositories over HTTP and a forge, and checks that it keeps its promises. Every spec has its
// own add-on, repository, source and placements; hub, clusters and operator are shared.
package e2e
