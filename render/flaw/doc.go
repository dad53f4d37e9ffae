// Package flaw describes an error in one object before its position is known: the field, the reason, the message and
// the hint. Loading adds file and line, which makes it a problem.Problem.
//
//	flaw.go    what is wrong, one for each field
//	path.go    the field: spec.list[2].name
//	hint.go    what was probably meant, and how a value is quoted
//	reasons.go the reasons of the documented bad inputs
package flaw
