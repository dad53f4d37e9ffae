package chart

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	helmchart "helm.sh/helm/v3/pkg/chart"
)

// files is .Files of a chart, as Helm documents it.
type files map[string][]byte

func newFiles(from []*helmchart.File) files {
	out := make(files, len(from))
	for _, f := range from {
		out[f.Name] = f.Data
	}
	return out
}

// GetBytes returns a file, empty when there is none.
func (f files) GetBytes(name string) []byte {
	if content, ok := f[name]; ok {
		return content
	}
	return []byte{}
}

// Get returns a file as text, empty when there is none.
func (f files) Get(name string) string { return string(f.GetBytes(name)) }

// Glob returns the files whose path matches; a bad pattern matches all, as in Helm.
func (f files) Glob(pattern string) files {
	g, err := glob.Compile(pattern, '/')
	if err != nil {
		g = glob.MustCompile("**")
	}
	out := files{}
	for name, content := range f {
		if g.Match(name) {
			out[name] = content
		}
	}
	return out
}

// AsConfig returns the files as the data of a ConfigMap: base names and contents.
func (f files) AsConfig() string {
	return f.table(func(content []byte) string { return string(content) })
}

// AsSecrets returns the files as the data of a Secret: base names and contents in base64.
func (f files) AsSecrets() string {
	return f.table(base64.StdEncoding.EncodeToString)
}

// table is sorted by path, so that of two files of one name the same one stays.
func (f files) table(text func([]byte) string) string {
	if f == nil {
		return ""
	}
	out := make(map[string]string, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		out[path.Base(name)] = text(f[name])
	}
	return toYAML(out)
}

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(string(f[name]), "\n"), "\n")
}
