// Package gitsource reads what a commit declares: it resolves a Git reference, reads the commit
// into memory and turns its YAML into objects that know the file and line they came from.
//
//	Open -> Resolve (one ls-remote) -> Fetch (depth 1, bounded) -> Tree -> Build -> []Object
//
// The package refuses, each with its own error: remote bases, plugins, paths that leave the repository, symbolic
// links, and YAML that can be read in two ways. It reports all errors of a commit at once, as a problem.List.
//
// Nothing is checked out and no program is started: each object is read from the pack in memory when it is needed.
// The package has no Kubernetes client, and does not know which kinds are allowed. It does not change go-git's
// process-wide registry of protocols, because credentials and limits belong to one repository.
package gitsource
