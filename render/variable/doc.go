// Package variable is how {{NAME}} is written, in AddOnTemplates and AddOnPackages, and
// where its value is declared to come from. What it is replaced with is rendering's.
//
//	reference.go  {{NAME}} in a text
//	name.go       names that are built in, or are a label or claim of the cluster
//	typed.go      the annotation that makes a variable a number or boolean
//	config.go     the annotation that takes a variable from a configuration of any kind
//	jsonpath.go   the place in that configuration
package variable
