// Package oci reads Helm charts, and trees of files that Flux pushed, from OCI registries.
//
//	Open -> Resolve (tag or range to digest) -> Chart or Artifact (by digest, bounded) -> files
//
// What is returned is what a digest names: every answer is hashed before it is used, and nothing
// is unpacked before. Credentials go to the registry itself and to no other host: neither to a
// host that it redirects to, nor to a server of tokens elsewhere. Sizes, times and what archives
// unpack to are bounded as for Git.
//
// The transport is that of oras.land/oras-go. The package knows neither Kubernetes clients nor
// what the files mean; gitsource builds a tree, render/chart renders a chart.
package oci
