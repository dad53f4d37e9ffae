package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestUnpack_IsBounded: whatever an archive declares, or unpacks to.
func TestUnpack_IsBounded(t *testing.T) {
	limits := Limits{Bytes: 1 << 20, Unpacked: 1 << 20, Files: 3, FileBytes: 1 << 10, TotalBytes: 1500, Depth: 3}
	entry := func(name string, size int) tar.Header {
		return tar.Header{Name: name, Size: int64(size), Typeflag: tar.TypeReg}
	}
	link := tar.Header{Name: "link", Linkname: "../secret", Typeflag: tar.TypeSymlink}
	for name, c := range map[string]struct {
		entries []tar.Header
		want    error
	}{
		"small":           {[]tar.Header{entry("a", 1024), entry("./b/c", 100)}, nil},
		"a link":          {[]tar.Header{link}, nil},
		"a bomb":          {[]tar.Header{entry("a", 4<<20)}, ErrLimitExceeded},
		"a bomb not kept": {[]tar.Header{entry("a", 900<<10), entry("b", 900<<10)}, ErrLimitExceeded},
		"many":            {[]tar.Header{entry("a", 0), entry("b", 0), entry("c", 0), entry("d", 0)}, ErrLimitExceeded},
		"much":            {[]tar.Header{entry("a", 1000), entry("b", 1000)}, ErrLimitExceeded},
		"deep":            {[]tar.Header{entry("a/b/c/d", 1)}, ErrLimitExceeded},
		"twice":           {[]tar.Header{entry("a", 1), entry("./a", 1)}, ErrContent},
		"in a file":       {[]tar.Header{entry("a", 1), entry("a/b", 1)}, ErrContent},
		"outside":         {[]tar.Header{entry("../a", 1)}, ErrContent},
		"inside out":      {[]tar.Header{entry("a/../../b", 1)}, ErrContent},
		"absolute":        {[]tar.Header{entry("/etc/passwd", 1)}, ErrContent},
		"of Windows":      {[]tar.Header{entry(`a\b`, 1)}, ErrContent},
		"long paths":      {[]tar.Header{entry(strings.Repeat("a", 800), 0), entry(strings.Repeat("b", 800), 0)}, ErrLimitExceeded},
		"a long path":     {[]tar.Header{entry(strings.Repeat("a", 1<<18), 0)}, ErrLimitExceeded},
		"many folders":    {[]tar.Header{entry("a/b/c", 1), entry("d", 1)}, ErrLimitExceeded},
		"a long bad path": {[]tar.Header{entry("../"+strings.Repeat("a", 1<<18), 0)}, ErrContent},
		"in a file later": {[]tar.Header{entry("a/b", 1), entry("a", 1)}, ErrContent},
		"of a terminal":   {[]tar.Header{entry("a\x1b[2J", 1)}, ErrContent},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := unpack(packed(t, c.entries), limits)
			if !errors.Is(err, c.want) || err == nil && files == nil || err != nil && len(err.Error()) > 300 {
				t.Errorf("got %d files, %.500v; want %v", len(files), err, c.want)
			}
		})
	}
	files, err := unpack(packed(t, []tar.Header{link, entry("large", 2048)}), limits)
	if err != nil || len(files) != 2 || !files[0].Link || files[0].Content != nil || files[1].Size != 2048 || files[1].Content != nil {
		t.Errorf("got %+v, %v", files, err)
	}
}

// packed returns a compressed archive with entries of x.
func packed(tb testing.TB, entries []tar.Header) []byte {
	tb.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		if err := archive.WriteHeader(&e); err != nil {
			tb.Fatal(err)
		}
		if _, err := archive.Write([]byte(strings.Repeat("x", int(e.Size)))); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// FuzzUnpack: whatever the archive, what is kept is within the limits, at clean paths.
func FuzzUnpack(f *testing.F) {
	for _, entries := range [][]tar.Header{
		{{Name: "hello/Chart.yaml", Size: 10, Typeflag: tar.TypeReg}, {Name: "hello/templates/", Typeflag: tar.TypeDir}},
		{{Name: "../link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}},
	} {
		f.Add(packed(f, entries))
	}
	limits := Limits{Bytes: 1 << 20, Unpacked: 1 << 20, Files: 10, FileBytes: 1 << 10, TotalBytes: 1 << 11, Depth: 5}
	f.Fuzz(func(t *testing.T, archive []byte) {
		files, err := unpack(archive, limits)
		kept := 0
		for _, file := range files {
			kept += len(file.Path) + len(file.Content)
			if !fs.ValidPath(file.Path) || int64(len(file.Content)) > limits.FileBytes {
				t.Errorf("%q with %d bytes", file.Path, len(file.Content))
			}
		}
		if err == nil && (kept > int(limits.TotalBytes) || len(files) > limits.Files) {
			t.Errorf("%d files, %d bytes", len(files), kept)
		}
	})
}
