// Package shape checks rules of the tree that no linter checks:
//
//   - every library package has a doc.go, every command a package comment,
//   - no package or file has a name without meaning (util, manager ...),
//   - no init functions and no context.TODO,
//   - a package that decides imports no package that reads or writes,
//   - no file names a directory of the machine it was written on.
//
// It reads the files that Git tracks or would add.
package shape
