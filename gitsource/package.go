package gitsource

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// packageBytes is the most bytes of the files of one AddOnPackage. The limit of an AddOnRevision is lower; this limit
// prevents that a wrong path reads a whole repository.
const packageBytes = 8 << 20

// helmIgnore is the file of a chart that lists what is not part of it.
const helmIgnore = ".helmignore"

// maxIgnored is the most lines of .helmignore, because each line is matched against each file.
const maxIgnored = 1000

// folder is a directory or file that a field of an AddOnPackage names.
type folder struct {
	path  string
	files map[string][]byte
}

// Folder returns the content of a path in an AddOnPackage, by its field, such as spec.helm.path or
// spec.valueFiles[0]: its path in the repository, and its files by their relative path ("" for a single file).
// Without files the path does not exist; Build has reported this.
func (o Object) Folder(field string) (dir string, files map[string][]byte) {
	f := o.folders[field]
	return f.path, f.files
}

// Folders are the directories and files of the repository that an AddOnPackage names, sorted.
func (o Object) Folders() []string {
	var out []string
	for field, f := range o.folders {
		if field != OCIField && f.path != "" {
			out = append(out, f.path)
		}
	}
	slices.Sort(out)
	return out
}

// OCIField is the field of an AddOnPackage that names a chart in a registry.
const OCIField = "spec.helm.oci"

// OCIChart returns the chart in a registry that an AddOnPackage names, "" if it names none.
func (o Object) OCIChart() string {
	if !packaged(o.Object) {
		return ""
	}
	reference, _ := walk(o.Object, splitField(OCIField)).(string)
	return reference
}

// WithChart returns the object with the files of the chart that OCIField names. Folder then returns these files.
func (o Object) WithChart(files map[string][]byte) Object {
	o.folders = maps.Clone(o.folders)
	if o.folders == nil {
		o.folders = map[string]folder{}
	}
	o.folders[OCIField] = folder{path: o.OCIChart(), files: files}
	return o
}

// packaged reports whether an object is an AddOnPackage.
func packaged(value map[string]any) bool {
	version, _ := value["apiVersion"].(string)
	return value["kind"] == v1alpha1.AddOnPackageKind && strings.HasPrefix(version, v1alpha1.GroupVersion.Group+"/")
}

// named is a path that an AddOnPackage names.
type named struct {
	field, path string
	directory   bool
}

// pathsOf returns the paths that an AddOnPackage names. It skips values that cannot be paths;
// the validation of the kind reports them.
func pathsOf(value map[string]any) []named {
	var out []named
	spec, _ := value["spec"].(map[string]any)
	for _, key := range []string{"helm", "manifests"} {
		fields, _ := spec[key].(map[string]any)
		if name, ok := fields["path"].(string); ok {
			out = append(out, named{field: "spec." + key + ".path", path: name, directory: true})
		}
	}
	list, _ := spec["valueFiles"].([]any)
	for i, item := range list {
		if name, ok := item.(string); ok {
			out = append(out, named{field: fmt.Sprintf("spec.valueFiles[%d]", i), path: name})
		}
	}
	return out
}

// capture reads the paths that the AddOnPackages among the objects name.
func (b *builder) capture(ctx context.Context, objects []Object) {
	for i := range objects {
		o := &objects[i]
		if !packaged(o.Object) {
			continue
		}
		o.folders = map[string]folder{}
		for _, n := range pathsOf(o.Object) {
			if f := b.captureOne(ctx, o, n); f != nil {
				file, line := o.Position(n.field)
				b.add(f.at(problem.Problem{
					Path: file, Line: line, Kind: o.GetKind(), Name: brief.Printable(o.GetName()), Field: n.field,
				}))
			}
		}
	}
}

func (b *builder) captureOne(ctx context.Context, o *Object, n named) *failure {
	if err := ctx.Err(); err != nil {
		return fail(FetchFailed, "stopped: %s", err)
	}
	name, f := join(path.Dir(o.source.path), n.path)
	if f != nil {
		return f
	}
	e, f := b.find(name)
	switch {
	case f != nil:
		return f
	case n.directory && holds(name, o.source.path):
		return &failure{PathDenied, "the folder holds the AddOnPackage itself", "put what is rendered into a folder of its own"}
	case n.directory && e.kind != directory:
		return &failure{PathNotFound, name + " is a file", "name the folder it is in"}
	case !n.directory && e.kind != regular:
		return fail(PathNotFound, "%s is %s, not a file", name, e.kind)
	}
	c := capturing{builder: b, root: name, files: map[string][]byte{}}
	if n.directory {
		f = c.directory(name)
	} else {
		f = c.file(name, e)
	}
	if f == nil {
		o.folders[n.field] = folder{path: name, files: c.files}
	}
	return f
}

type capturing struct {
	*builder
	root   string
	files  map[string][]byte
	size   int
	ignore gitignore.Matcher
}

// directory reads every file below a directory, except dot files and files that spec.ignore or .helmignore at its
// root excludes.
func (c *capturing) directory(dir string) *failure {
	list, f := c.list(dir)
	if f != nil {
		return f
	}
	if c.ignore == nil {
		if f := c.readIgnore(dir, list); f != nil {
			return f
		}
	}
	folded := map[string]string{}
	for _, e := range list {
		name := path.Join(dir, e.name)
		if strings.HasPrefix(e.name, ".") || c.ignored(name, e.kind) || c.ignore.Match(strings.Split(c.relative(name), "/"), e.kind == directory) {
			continue
		}
		if f := checkName(dir, e, folded); f != nil {
			return f
		}
		switch e.kind {
		case directory:
			f = c.directory(name)
		case regular:
			f = c.file(name, e)
		default:
			f = fail(PathDenied, "%s is %s; only regular files are read", name, e.kind)
		}
		if f != nil {
			return f
		}
	}
	return nil
}

func (c *capturing) readIgnore(dir string, list []entry) *failure {
	c.ignore = parseIgnore("")
	i := slices.IndexFunc(list, func(e entry) bool { return e.name == helmIgnore && e.kind == regular })
	if i < 0 {
		return nil
	}
	content, f := c.read(path.Join(dir, helmIgnore), list[i])
	switch {
	case f != nil:
		return f
	case bytes.Count(content, []byte("\n")) > maxIgnored:
		return fail(LimitExceeded, "%s has more than %d lines", path.Join(dir, helmIgnore), maxIgnored)
	}
	c.ignore = parseIgnore(string(content))
	return nil
}

func (c *capturing) file(name string, e entry) *failure {
	content, f := c.read(name, e)
	if f != nil {
		f.message = name + ": " + f.message
		return f
	}
	if c.size += len(content); c.size > packageBytes {
		return &failure{LimitExceeded, fmt.Sprintf("%s has more than %d bytes", c.root, packageBytes), "leave out what is not rendered with " + helmIgnore}
	}
	c.files[c.relative(name)] = content
	return nil
}

// relative returns a path below the folder; "" if the field named the file itself.
func (c *capturing) relative(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, c.root), "/")
}

// packages finds the folders that AddOnPackages below a directory name, so that their templates are not read as
// objects of the commit. Kustomizations are skipped, because they list their files. Files that cannot be read are
// reported when they are built; if nothing is built because of them, they are reported here.
func (b *builder) packages(dir string) {
	list, f := b.list(dir)
	if f != nil && b.stopped {
		b.add(f.at(problem.Problem{Path: dir}))
	}
	if f != nil || strings.Count(dir, "/") >= b.tree.limits.Depth || isChart(list) || b.hasKustomization(dir, list) {
		return
	}
	for _, e := range list {
		name := path.Join(dir, e.name)
		switch {
		case strings.HasPrefix(e.name, ".") || b.ignored(name, e.kind) || b.stopped:
		case e.kind == directory:
			b.packages(name)
		case e.kind == regular && isYAML(e.name):
			b.packagesOf(name, e)
		}
	}
}

func (b *builder) packagesOf(name string, e entry) {
	content, f := b.read(name, e)
	if f != nil && b.stopped {
		b.add(f.at(problem.Problem{Path: name}))
	}
	if f != nil || !strings.Contains(string(content), v1alpha1.AddOnPackageKind) {
		return
	}
	docs, mistakes := decodeYAML(content)
	if len(mistakes) > 0 && strings.Contains(string(content), "kind: "+v1alpha1.AddOnPackageKind) {
		for _, m := range mistakes {
			b.add(m.at(name))
		}
		b.hidden = true
	}
	for _, doc := range docs {
		value, _ := doc.value.(map[string]any)
		if !packaged(value) {
			continue
		}
		for _, n := range pathsOf(value) {
			if where, f := join(path.Dir(name), n.path); f == nil && !holds(where, name) {
				b.packed[where] = true
			}
		}
	}
}

func holds(dir, name string) bool { return dir == "" || strings.HasPrefix(name, dir+"/") }

// isChart recognizes the folder of a Helm chart by its Chart.yaml.
func isChart(list []entry) bool {
	return slices.ContainsFunc(list, func(e entry) bool { return e.name == "Chart.yaml" && e.kind == regular })
}
