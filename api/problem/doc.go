// Package problem describes what is wrong with an input: one line per problem, with its
// position and a hint.
//
//	path:line: Kind/name: field: problem; hint
//
// Packages that read input return a List. The text of a List is posted to the commit that it is
// about, so it never holds a secret.
package problem
