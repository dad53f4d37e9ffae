// Package render turns the objects of a commit into what runs on a cluster.
//
// Loading answers "is this commit right, and what does it ask for":
//
//	objects of a commit --strict decoding--> normalised as the hub stores them
//	  --references--> Content per add-on --Check--> Digest, or every problem
//
// Rendering answers "what does this cluster get":
//
//	Content + Cluster --NewRenderer, Render--> objects --Works--> ManifestWorks
//	ManifestWorks --Observe--> what the cluster runs and whether it is verified
//
// Normalised means: converted to the version the hub stores (v1alpha1), with
// defaults filled in and nulls dropped by the CRD's own structural schema, and
// metadata reduced to name, namespace, labels and annotations. So the hash of an
// object in Git equals OCM's hash of the same object on the hub, without asking
// the hub. The CRDs are embedded from the pinned open-cluster-management.io/api.
//
// Everything here is a function of its arguments: no client, no clock, no
// logger, no files, no environment. Inputs are never changed; results are sorted.
// A problem of a commit is a problem.Problem with file and line; an error is for
// what cannot be wrong in a commit.
package render
