package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/addonflow/addonflow/api/brief"
)

// File is one entry of an archive that is not a directory.
type File struct {
	// Path is relative, with slashes, without . and .. in it.
	Path string
	// Size of the file. Content is nil if the file is larger than Limits.FileBytes.
	Size    int64
	Content []byte
	// Link is set if the entry is a symbolic link, and Special if it is a hard link, a device or
	// a pipe: they have no content.
	Link, Special bool
}

// unpack returns the files of a compressed archive. The error is ErrContent or ErrLimitExceeded.
func unpack(archive []byte, l Limits) ([]File, error) {
	content := func(err error) error { return fmt.Errorf("%w: it is not an archive: %w", ErrContent, shown{err}) }
	inflated, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, content(err)
	}
	stream := &io.LimitedReader{R: inflated, N: l.Unpacked + 1}
	entries := tar.NewReader(stream)
	var files []File
	known, count, kept := paths{}, 0, int64(0)
	for {
		header, err := entries.Next()
		switch {
		case stream.N <= 0:
			return nil, fmt.Errorf("%w: the archive unpacks to more than %d bytes", ErrLimitExceeded, l.Unpacked)
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, content(err)
		}
		if count++; count > l.Files {
			return nil, fmt.Errorf("%w: the archive has more than %d entries", ErrLimitExceeded, l.Files)
		}
		if header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		f := File{Size: header.Size, Link: header.Typeflag == tar.TypeSymlink, Special: header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeSymlink}
		if f.Path, err = entryName(header.Name, l.Depth); err != nil {
			return nil, err
		}
		if err := known.add(f.Path); err != nil {
			return nil, err
		}
		if len(known) > l.Files {
			return nil, fmt.Errorf("%w: the archive has more than %d files and directories", ErrLimitExceeded, l.Files)
		}
		read := !f.Link && !f.Special && f.Size <= l.FileBytes
		if kept += int64(len(f.Path)); read {
			kept += f.Size
		}
		if kept > l.TotalBytes {
			return nil, fmt.Errorf("%w: the files and their paths have more than %d bytes", ErrLimitExceeded, l.TotalBytes)
		}
		if read {
			if f.Content, err = io.ReadAll(entries); err != nil && stream.N > 0 {
				return nil, content(err)
			}
		}
		files = append(files, f)
	}
}

// paths are those of an archive and of the directories above them; true: a directory.
type paths map[string]bool

// add adds the path of a file. No path is there twice, or both a file and a directory.
func (p paths) add(name string) error {
	both := func(path string) error {
		return fmt.Errorf("%w: the archive has %s as a file and as a directory", ErrContent, path)
	}
	switch dir, known := p[name]; {
	case dir:
		return both(name)
	case known:
		return fmt.Errorf("%w: the archive has %s twice", ErrContent, name)
	}
	p[name] = false
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		switch dir, known := p[above]; {
		case dir:
			return nil
		case known:
			return both(above)
		}
		p[above] = true
	}
	return nil
}

// entryName returns the path of an entry. Names that leave the archive, or mean another path on
// another machine, are refused.
func entryName(name string, depth int) (string, error) {
	clean := path.Clean("/" + name)[1:]
	switch {
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\\\x00") || brief.Printable(name) != name:
		return "", fmt.Errorf("%w: the name %.80q in the archive cannot be used", ErrContent, name)
	case clean == "" || strings.TrimPrefix(name, "./") != clean:
		return "", fmt.Errorf("%w: the path %.80q in the archive is not relative and clean", ErrContent, name)
	case len(clean) > pathBytes:
		return "", fmt.Errorf("%w: %.80q... has %d bytes, a path has at most %d", ErrLimitExceeded, clean, len(clean), pathBytes)
	case strings.Count(clean, "/") >= depth:
		return "", fmt.Errorf("%w: %.80q... is more than %d directories deep", ErrLimitExceeded, clean, depth)
	}
	return clean, nil
}
