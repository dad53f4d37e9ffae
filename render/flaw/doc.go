// Package flaw says what is wrong with one object before anybody knows where it stands:
// the field, the reason, the words and the hint. Loading makes a problem.Problem of it,
// with file and line.
//
//	flaw.go    what is wrong, one for each field
//	path.go    where it is: spec.list[2].name
//	hint.go    what was probably meant, and how a value is quoted
//	reasons.go the words of the documented bad inputs
package flaw
