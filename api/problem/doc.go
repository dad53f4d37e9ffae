// Package problem is how AddonFlow says that an input is wrong: one line per
// problem, with the place it stands at and what to do about it.
//
//	path:line: Kind/name: field: problem; hint
//
// Packages that read input return a List; the text of a List goes onto the
// commit it came with, so it never holds a secret.
package problem
