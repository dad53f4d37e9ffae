// Package oci reads Helm charts, and trees of files that Flux pushed, from OCI registries.
//
//	Open -> Resolve (tag or range to digest) -> Chart or Artifact (by digest, bounded) -> files
//
// Every manifest and blob is hashed before it is used or unpacked, and its hash must be the digest by which it was
// named. Lists of tags have no digest. Credentials are sent to the registry only. They are not sent to a host to which the
// registry redirects, nor to a server of tokens on another host. Sizes, times and the unpacked bytes of archives are
// limited as for Git.
//
// The transport is that of oras.land/oras-go. The package has no Kubernetes client, and does not know the meaning of
// the files: gitsource builds a tree, render/chart renders a chart.
package oci
