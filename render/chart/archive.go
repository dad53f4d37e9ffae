package chart

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
)

// maxUnpacked bounds the unpacked size of a chart's sub-chart archives.
const maxUnpacked = 16 << 20

// subArchive matches the archive of a sub-chart, at any level.
var subArchive = regexp.MustCompile(`^(charts/[^/]+/)*charts/[^/]+\.tgz$`)

func isArchive(name string) bool { return subArchive.MatchString(name) }

// unpacked returns the files with the archives in charts/ as folders, so that each archive is
// unpacked once and within bounds: a megabyte can unpack to a gigabyte.
func unpacked(files []File) ([]File, error) {
	var out []File
	remaining := int64(maxUnpacked)
	for _, f := range files {
		if !isArchive(f.Path) {
			out = append(out, f)
			continue
		}
		size, err := unpackedSize(f.Content, remaining)
		if err != nil {
			return nil, &Error{File: f.Path, Message: fmt.Sprintf("is not an archive of a chart: %v", err)}
		}
		if remaining -= size; remaining < 0 {
			return nil, &Error{File: f.Path, Message: fmt.Sprintf("the archives in charts unpack to more than %d MiB", maxUnpacked>>20)}
		}
		within, err := archive.LoadArchiveFiles(bytes.NewReader(f.Content))
		if err != nil {
			return nil, &Error{File: f.Path, Message: fmt.Sprintf("is not an archive of a chart: %v", err)}
		}
		for _, w := range within {
			if isArchive(w.Name) {
				return nil, &Error{File: f.Path, Message: fmt.Sprintf("holds an archive itself, %s", w.Name), Hint: "unpack the sub-chart into a folder of charts/"}
			}
			out = append(out, File{Path: strings.TrimSuffix(f.Path, ".tgz") + "/" + w.Name, Content: w.Data})
		}
	}
	return out, nil
}

// unpackedSize reads at most one byte more than limit.
func unpackedSize(content []byte, limit int64) (int64, error) {
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, io.LimitReader(r, limit+1))
}
