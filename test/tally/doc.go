// Command tally reads the JSON lines of `go test -json`, prints one line per package and the
// whole output of what failed, and ends with the names of what failed and the line
//
//	N passed, N failed
//
// It counts a test with subtests as its subtests, a ginkgo suite as its specs, and a package
// that does not build or ends outside of a test as one failure. Tally exits non-zero if
// anything failed, and also if no test ran at all: an empty run proves nothing.
package main
