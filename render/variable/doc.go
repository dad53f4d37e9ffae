// Package variable defines the syntax of {{NAME}} in AddOnTemplates and AddOnPackages, and of
// the annotations that declare where values come from. Package render replaces variables.
//
//	reference.go  {{NAME}} in a text
//	name.go       names that are built in, or are a label or claim of the cluster
//	typed.go      the annotation that makes a variable a number or boolean
//	config.go     the annotation that takes a variable from a configuration of any kind
//	jsonpath.go   the path in that configuration
package variable
