// Package strict holds declared objects to the Go types they will be decoded into: unknown
// fields and values of another type, which a decoder would drop, coerce or stop at; and in
// manifests the values that no API server takes. Kinds with an embedded
// CustomResourceDefinition are held to its schema instead, in render/load.
//
//	strict.go   one value against one type
//	manifest.go manifests of apps/v1, batch/v1 and v1, with variables in them
//	kinds.go    the kinds of Kubernetes' own groups; newer.go: names of later ones
//	values.go   which values they refuse, of workloads; pods.go, services.go: of the others;
//	            objects.go: which go together
//	proposed.go fields of OCM's proposals that never made it into its API
package strict
