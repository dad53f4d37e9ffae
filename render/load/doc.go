// Package load answers whether a commit is right, and what it asks for:
//
//	objects of a commit --strict decoding--> normalised as the hub stores them
//	  --references--> render.Content per add-on --Check, Digest--> Commit, or every problem
//
// The way of a commit through the files:
//
//	load.go          Load and what goes in and out
//	read.go          each object by itself: kinds.go says what it is to a commit
//	  normalise.go     as the hub stores it: metadata.go, convert.go, schema*.go,
//	                   definitions.go for kinds that only the hub knows
//	  validate_*.go    its values, one file for each kind; paces wherever they stand
//	addons.go        the add-ons of the commit, and the AddOnRollouts of those
//	  references.go    templates and configurations; versions.go: all that AddOnHubConfigs
//	                   may select; package.go: charts and folders of manifests
//	check.go         rendered for the clusters of each placement, so that what only
//	                 rendering finds is found on the commit, and where two add-ons collide
//	warnings.go      what is accepted and hardly meant
//	live.go          an object of the hub, judged by the same rules
//
// Normalised means: converted to the version the hub stores (v1alpha1), with defaults
// filled in and nulls dropped by the CRD's own structural schema, and metadata reduced to
// name, namespace, labels and annotations. So the hash of an object in Git equals OCM's
// hash of the same object on the hub, without asking the hub. The CRDs are embedded from
// the pinned open-cluster-management.io/api.
//
// A problem of a commit is a problem.Problem with file and line; an error is for what
// cannot be wrong in a commit. Every step judges what the one before it left, without the
// fields that are wrong, and its problems come behind those of that step: they may follow
// from them.
package load
