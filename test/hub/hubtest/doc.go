// Package hubtest gives a plain test a hub of its own, and patience. Suites start theirs
// with hub.Start, and wait with Gomega.
package hubtest
