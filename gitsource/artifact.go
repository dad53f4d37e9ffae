package gitsource

import (
	"fmt"
	"io/fs"
	"path"
)

// File is one file of a tree that does not come from Git.
type File struct {
	// Path is relative to the root, with slashes.
	Path string
	// Size of the file; Content may be nil if it is above Limits.FileBytes.
	Size    int64
	Content []byte
	// Link: it is a symbolic link. Special: it is neither a symbolic link nor a file.
	Link, Special bool
}

// TreeFromFiles returns the files of an artifact as a Tree. Build refuses the same content as in a commit. No path
// may be both a file and a directory. done is called when the tree is closed.
func TreeFromFiles(revision Revision, list []File, done func()) *Tree {
	held := heldFiles{dirs: map[string][]entry{"": nil}, files: map[string]File{}}
	for _, f := range list {
		held.files[f.Path] = f
		held.add(f.Path, f.kind())
	}
	for dir := range held.dirs {
		sortEntries(held.dirs[dir])
	}
	return &Tree{revision: revision, files: held, limits: DefaultLimits(), done: done}
}

func (f File) kind() kind {
	switch {
	case f.Link:
		return symlink
	case f.Special:
		return special
	}
	return regular
}

type heldFiles struct {
	dirs  map[string][]entry
	files map[string]File
}

// add adds a path and its parent directories.
func (h heldFiles) add(name string, k kind) {
	dir := path.Dir(name)
	if dir == "." {
		dir = ""
	}
	if _, known := h.dirs[dir]; !known {
		h.add(dir, directory)
	}
	h.dirs[dir] = append(h.dirs[dir], entry{name: path.Base(name), kind: k})
	if k == directory {
		h.dirs[name] = nil
	}
}

func (h heldFiles) entries(dir string) ([]entry, error) {
	list, known := h.dirs[dir]
	if !known {
		return nil, fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	return list, nil
}

func (h heldFiles) size(name string, _ entry) (int64, error) { return h.files[name].Size, nil }

func (h heldFiles) content(name string, _ entry) ([]byte, error) {
	f := h.files[name]
	if int64(len(f.Content)) != f.Size {
		return nil, fmt.Errorf("%s is too large", name)
	}
	return f.Content, nil
}
