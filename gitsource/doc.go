// Package gitsource answers what a commit declares: it resolves a Git reference,
// reads the commit into memory and turns its YAML into objects that know the file
// and line they came from.
//
//	Open -> Resolve (one ls-remote) -> Fetch (depth 1, bounded) -> Tree -> Build -> []Object
//
// What is refused, is refused here and by name: remote bases, plugins, paths that
// leave the repository, symbolic links, YAML that means something else than it
// says. Everything wrong with a commit is reported at once, as a problem.List.
//
// Nothing is checked out and no program is started: blobs go from the pack the
// server sent straight into memory, each only when it is needed. The package knows
// neither Kubernetes clients nor which kinds are allowed; go-git's process-wide
// registry of protocols stays as it is, because credentials and limits belong to
// one repository.
package gitsource
