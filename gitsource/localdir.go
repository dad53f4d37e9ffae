package gitsource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// TreeFromDir returns a local directory as a Tree, to check add-ons before they are committed. Build applies the
// same checks as to a commit. Inside a Git work tree, the whole work tree is the repository, so that ../base works, and
// BuildOptions.Path starts at dir. Outside of a work tree, dir is the repository. Files are read when Build needs
// them.
func TreeFromDir(dir string) (*Tree, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, err)
	}
	stat, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, errors.Unwrap(err))
	}
	if !stat.IsDir() {
		return nil, fmt.Errorf("cannot read %s: not a directory", dir)
	}
	top, found := workTree(dir)
	base, err := filepath.Rel(top, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, err)
	}
	if base = filepath.ToSlash(base); base == "." {
		base = ""
	}
	return &Tree{files: localFiles(top), base: base, alone: !found, limits: DefaultLimits()}, nil
}

// workTree returns the nearest directory at or above dir that contains .git. If there is none, it returns dir itself
// and false.
func workTree(dir string) (top string, found bool) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d, true
		}
		if d == filepath.Dir(d) {
			return dir, false
		}
	}
}

// localFiles is the top directory of a repository on disk. os.Root confines every access to it, even if the directory
// changes during a read.
type localFiles string

func (l localFiles) entries(dir string) (_ []entry, err error) {
	root, err := os.OpenRoot(string(l))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	found, err := fs.ReadDir(root.FS(), path.Clean("./"+dir))
	if err != nil {
		return nil, err
	}
	list := make([]entry, 0, len(found))
	for _, f := range found {
		if f.Name() == ".git" {
			continue // never part of a commit
		}
		list = append(list, entry{name: f.Name(), kind: localKind(f.Type())})
	}
	sortEntries(list)
	return list, nil
}

func localKind(m fs.FileMode) kind {
	switch {
	case m.IsDir():
		return directory
	case m&fs.ModeSymlink != 0:
		return symlink
	case m.IsRegular():
		return regular
	}
	return special
}

func (l localFiles) size(name string, _ entry) (size int64, err error) {
	root, err := os.OpenRoot(string(l))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	stat, err := root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return 0, err
	}
	return stat.Size(), nil
}

func (l localFiles) content(name string, _ entry) (content []byte, err error) {
	root, err := os.OpenRoot(string(l))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}
