package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type member struct {
	name    string
	mode    os.FileMode
	content []byte
}

// writeArchives writes one archive per binary: with the program and the license, a .zip for Windows.
func (t tree) writeArchives(built []binary, out string) error {
	license, err := os.ReadFile(filepath.Join(t.dir, "LICENSE"))
	if err != nil {
		return err
	}
	for _, b := range built {
		program, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		write := writeTarGzip
		if b.os == "windows" {
			write = writeZip
		}
		members := []member{{"LICENSE", 0o644, license}, {b.executable(), 0o755, program}}
		if err := create(filepath.Join(out, t.archive(b)), func(w io.Writer) error { return write(w, members, t.committed) }); err != nil {
			return err
		}
	}
	return nil
}

func (t tree) archive(b binary) string {
	kind := ".tar.gz"
	if b.os == "windows" {
		kind = ".zip"
	}
	return fmt.Sprintf("addonflow_%s_%s_%s%s", strings.TrimPrefix(t.version, "v"), b.os, b.arch, kind)
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// readMembers reads the files of a directory, sorted; prefix comes before their names.
func readMembers(dir, prefix string) ([]member, error) {
	var members []member
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		members = append(members, member{prefix + name, 0o644, content})
		return err
	})
	return members, err
}

// writeTar writes an archive whose bytes depend on nothing but its members and the time.
func writeTar(w io.Writer, members []member, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, m := range members {
		if err := archive.WriteHeader(&tar.Header{Name: m.name, Mode: int64(m.mode), Size: int64(len(m.content)), ModTime: at, Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := archive.Write(m.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func writeTarGzip(w io.Writer, members []member, at time.Time) error {
	z := gzip.NewWriter(w)
	if err := writeTar(z, members, at); err != nil {
		return err
	}
	return z.Close()
}

// writeZip is writeTarGzip for Windows.
func writeZip(w io.Writer, members []member, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: at}
		h.SetMode(m.mode)
		f, err := archive.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(m.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
