// Package load checks whether a commit is valid, and returns what it declares:
//
//	objects of a commit --strict decoding--> normalised as the hub stores them
//	  --references--> render.Content per add-on --Check, Digest--> Commit, or every problem
//
// The way of a commit through the files:
//
//	load.go          Load, its arguments and results
//	read.go          each object by itself: kinds.go gives its role in a commit
//	  normalise.go     as the hub stores it: metadata.go, convert.go, schema*.go,
//	                   definitions.go for kinds that only the hub knows
//	  validate_*.go    its values, one file for each kind; paces of all kinds
//	addons.go        the add-ons of the commit, and their AddOnRollouts
//	  references.go    templates and configurations; versions.go: all that AddOnHubConfigs
//	                   may select; package.go: charts and folders of manifests
//	check.go         renders for the clusters of each placement, so that problems of
//	                 rendering, and conflicts of two add-ons, are reported on the commit
//	warnings.go      what is accepted but probably a mistake
//	live.go          an object of the hub, checked by the same rules
//
// Normalised means: converted to the version the hub stores (v1alpha1), with defaults filled in
// and nulls dropped by the CRD's own structural schema, and metadata reduced to name,
// namespace, labels and annotations. So the hash of an object in Git equals OCM's hash of the
// same object on the hub, without asking the hub. The CRDs are embedded from the pinned
// open-cluster-management.io/api.
//
// A problem of a commit is a problem.Problem with file and line. A Go error never has its cause in the commit. Every
// step checks the output of the previous one, without the fields that have an error. Its problems are listed after
// those of the earlier steps, because they may follow from them.
package load
