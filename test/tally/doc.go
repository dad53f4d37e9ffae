// Command tally reads the JSON lines of `go test -json`, prints one line per
// package and the whole output of what failed, and ends with the names of what
// failed and the line
//
//	N passed, N failed
//
// Counted are the tests that a reader would count: a test with subtests counts
// as its subtests, a ginkgo suite as its specs, a package that does not build
// or dies outside of a test as one failure. Tally exits non-zero when anything
// failed, and also when no test ran at all: an empty run proves nothing.
package main
