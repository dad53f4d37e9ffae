// Package strict checks declared objects against the Go types they will be decoded into. It finds
// unknown fields and values of another type, which a decoder would drop, convert or stop at. In
// manifests it also finds kinds that do not exist and values that often stop a rollout. Kinds
// with an embedded CustomResourceDefinition are checked against its schema, in render/load.
//
//	strict.go   one value against one type
//	manifest.go manifests of apps/v1, batch/v1 and v1, with variables in them
//	kinds.go    the kinds of Kubernetes' own groups; newer.go: names of later ones
//	values.go   the ten rules for values; objects.go: those that compare several fields
//	proposed.go fields of OCM's proposals that are not in OCM's API
package strict
