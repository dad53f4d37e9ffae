// Package shape checks what no linter of the set checks about the tree itself:
//
//   - every library package has a doc.go, every command a package comment,
//   - no package or file is named after nothing in particular (util, manager ...),
//   - no init functions and no context.TODO,
//   - a package that decides imports no package that reads or writes,
//   - no file names a directory of the machine it was written on.
//
// It looks at the files that Git tracks or would add.
package shape
