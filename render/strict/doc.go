// Package strict holds declared objects to the Go types they will be decoded into: unknown
// fields and values of another type, which a decoder would drop, coerce or stop at; and in
// manifests kinds that do not exist and values that most often stop a rollout. Kinds with an
// embedded CustomResourceDefinition are held to its schema instead, in render/load.
//
//	strict.go   one value against one type
//	manifest.go manifests of apps/v1, batch/v1 and v1, with variables in them
//	kinds.go    the kinds of Kubernetes' own groups; newer.go: names of later ones
//	values.go   the ten rules for values; objects.go: those that compare several fields
//	proposed.go fields of OCM's proposals that never made it into its API
package strict
