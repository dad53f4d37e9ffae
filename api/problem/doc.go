// Package problem describes the errors of an input: one line per problem, with its position and a hint.
//
//	path:line: Kind/name: field: problem; hint
//
// Packages that read input return a List. The text of a List is posted to the commit with the problems, so it never
// holds a secret.
package problem
