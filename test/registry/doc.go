// Package registry starts a real OCI registry for tests, and pushes to it: charts with Helm's own
// client, trees of files with Flux's.
//
// Start runs distribution v3 in a process of its own (test/hubbin/registry), in memory and on
// loopback. Over what a correct registry never sends, tests put their own answers in front of it.
package registry
