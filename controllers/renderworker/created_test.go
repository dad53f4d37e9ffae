package renderworker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/addonflow/addonflow/render/chart"
)

// created returns the chart that `helm create` writes.
func created(tb testing.TB) []chart.File {
	tb.Helper()
	dir, err := chartutil.Create("hello", tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	var files []chart.File
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // below a directory of this test
		name, _ := filepath.Rel(dir, path)
		files = append(files, chart.File{Path: filepath.ToSlash(name), Content: content})
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	slices.SortFunc(files, func(a, b chart.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}
