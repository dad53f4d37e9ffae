// Package e2e runs the operator's own binary against an embedded hub, simulated clusters, Git
// repositories over HTTP and a forge, and checks that it keeps its promises. Every spec has its
// own add-on, repository, source and placements. Hub, operator and the eight clusters are shared:
// what a spec changes on a cluster or on the hub, it undoes with DeferCleanup.
//
// One spec runs alone, after make hub, with
//
//	go test ./test/e2e -ginkgo.focus='moves the canary first'
package e2e
