package gitsource

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

const (
	originAnnotation = "config.kubernetes.io/origin"
	// copiedBytes is the most bytes that the copy operations of JSON patches may add to an object. Twenty of them can
	// turn a kilobyte into a gigabyte.
	copiedBytes = 4 << 20
	// builtBytes bounds the size of an object after the build.
	builtBytes = 16 << 20
)

// kustomizeTurn is held while kustomize runs. Kustomize keeps its OpenAPI schema in package variables, which one
// build sets and another would read (kustomize#3659).
var kustomizeTurn = make(chan struct{}, 1)

// kustomize builds one directory that has a kustomization.
func (b *builder) kustomize(ctx context.Context, dir string) []Object {
	w := newWalker(b)
	before := len(b.problems)
	if _, f := w.visit(dir); f != nil {
		b.add(f.at(problem.Problem{Path: display(dir)}))
		return nil
	}
	if w.failed || len(b.problems) > before {
		return nil // kustomize only reads valid files
	}
	file := w.kustomizationOf(dir)
	asked := w.trackOrigins(file)
	built, err := w.run(ctx, dir)
	if err != nil {
		in, message := failedIn(dir, err)
		p := w.patchNamedIn(in, message)
		p.Reason, p.Message = RenderFailed, message
		b.add(p)
		return nil
	}
	var out []Object
	for _, r := range built.Resources() {
		if o, ok := w.object(dir, file, r, asked); ok {
			out = append(out, o)
		}
	}
	if w.warn != nil && len(w.problems) == before {
		w.unmatched(ctx, dir)
	}
	return out
}

func (w *walker) kustomizationOf(dir string) string {
	for _, name := range kustomizationNames {
		if _, ok := w.files[path.Join(dir, name)]; ok {
			return path.Join(dir, name)
		}
	}
	return dir
}

// trackOrigins makes kustomize store the origin of each object. It returns whether the user had requested that
// annotation, too.
func (w *walker) trackOrigins(file string) (asked bool) {
	value := maps.Clone(w.values[file])
	list, _ := value["buildMetadata"].([]any)
	asked = slices.Contains(list, any(types.OriginAnnotations))
	if !asked {
		value["buildMetadata"] = append(slices.Clone(list), types.OriginAnnotations)
		w.files[file] = canonical(value)
	}
	return asked
}

// run builds a directory from the files that were found.
func (w *walker) run(ctx context.Context, dir string) (resmap.ResMap, error) {
	fs := newAliasedFiles()
	for name, content := range w.files {
		if err := fs.WriteFile("/"+name, content); err != nil {
			return nil, err
		}
	}
	return runKustomize(ctx, fs, "/"+dir)
}

type buildResult struct {
	resources resmap.ResMap
	err       error
}

// runKustomize runs one build at a time. If the context ends, the caller continues without the result. The turn ends
// when kustomize returns.
func runKustomize(ctx context.Context, fs filesys.FileSystem, dir string) (resmap.ResMap, error) {
	select {
	case kustomizeTurn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("stopped while waiting for another build: %w", ctx.Err())
	}
	done := make(chan buildResult, 1)
	go func() {
		defer func() { <-kustomizeTurn }()
		r, err := recoverKustomize(fs, dir)
		done <- buildResult{r, err}
	}()
	select {
	case r := <-done:
		return r.resources, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("stopped while building: %w", ctx.Err())
	}
}

func recoverKustomize(fs filesys.FileSystem, dir string) (built resmap.ResMap, err error) {
	schema := openapi.GetSchemaVersion()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize panicked: %v", r)
		}
		if openapi.GetSchemaVersion() != schema {
			// A kustomization's own schema stays after its build: without the reset, lists in
			// the next source's patches would be merged by the wrong keys.
			openapi.ResetOpenAPI()
		}
	}()
	// Kustomize is the only user of this module, and only one build runs at a time.
	jsonpatch.AccumulatedCopySizeLimit = copiedBytes
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	// The file system contains only files that the walker allowed, so ../ is safe. Kustomize's own restriction would
	// forbid patches next to a base.
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.Reorder = krusty.ReorderOptionNone
	return krusty.MakeKustomizer(options).Run(fs, dir)
}

// object turns one of kustomize's resources into an Object.
func (w *walker) object(dir, file string, r *resource.Resource, asked bool) (Object, bool) {
	// The object counts like the inside of an alias: its whole size counts, even if it repeats a few values.
	d := &nodeDecoder{typed: true, allowance: builtBytes, inside: 1}
	value, ok := d.decode(r.YNode()).(map[string]any)
	if d.stopped {
		w.add(problem.Problem{
			Reason: LimitExceeded, Path: file, Kind: brief.Printable(r.GetKind()), Name: brief.Printable(r.GetName()),
			Message: fmt.Sprintf("kustomize made an object of more than %d bytes, or %d levels deep", builtBytes, maxDepth),
		})
		return Object{}, false
	}
	if !ok || len(d.mistakes) > 0 {
		message := "kustomize made no object"
		if len(d.mistakes) > 0 {
			message = "kustomize made an invalid object: " + d.mistakes[0].message
		}
		w.add(problem.Problem{
			Reason: RenderFailed, Path: file, Kind: brief.Printable(r.GetKind()),
			Name: brief.Printable(r.GetName()), Message: message,
		})
		return Object{}, false
	}
	origin, err := r.GetOrigin()
	if err != nil {
		origin = nil // a user's own annotation of that name
	}
	if !asked {
		dropAnnotation(value, originAnnotation)
	}
	s := w.sourceOf(dir, file, origin, value)
	w.problems = append(w.problems, checkManifest(source{path: s.path, node: s.node, value: value})...)
	w.rounded(s, "", value, s.value)
	return Object{Unstructured: &unstructured.Unstructured{Object: value}, source: s, built: display(dir)}, true
}

// rounded reports integers that kustomize changed, because its JSON patches convert all numbers of an object to
// floating point.
func (w *walker) rounded(s source, field string, built, written any) {
	switch b := built.(type) {
	case map[string]any:
		for k, v := range b {
			w.rounded(s, strings.TrimPrefix(field+"."+k, "."), v, step(written, k))
		}
	case []any:
		for i, v := range b {
			w.rounded(s, fmt.Sprintf("%s[%d]", field, i), v, step(written, strconv.Itoa(i)))
		}
	case float64:
		if i, ok := written.(int64); ok {
			w.roundedTo(s, field, i, b)
		}
	case int64:
		if i, ok := written.(int64); ok && i != b && float64(i) == float64(b) {
			w.roundedTo(s, field, i, float64(b))
		}
	}
}

func (w *walker) roundedTo(s source, field string, from int64, to float64) {
	p := s.problem(RenderFailed, "kustomize's JSON patches round %d to %.0f", from, to)
	p.Field, p.Line, p.Hint = field, s.line(field), "quote it, or use a strategic merge patch"
	w.add(p)
}

// dropAnnotation removes an annotation. If the map is then empty, it removes the map, too, because the map was
// created for the annotation.
func dropAnnotation(value map[string]any, key string) {
	meta, _ := value["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	if _, ok := annotations[key]; !ok {
		return
	}
	delete(annotations, key)
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}

// sourceOf finds the document from which an object was built. Kustomize records the file. In the file, the document
// is the object of that kind and name; otherwise the only object whose name is part of the built name, because a
// prefix or suffix was added.
func (w *walker) sourceOf(dir, file string, origin *resource.Origin, built map[string]any) source {
	if origin == nil {
		return source{path: file}
	}
	if origin.Path == "" {
		return source{path: path.Join(dir, origin.ConfiguredIn)}
	}
	name := path.Join(dir, origin.Path)
	id := source{value: built}.identity()
	var near []source
	for _, s := range w.origin[name] {
		other := s.identity()
		if other.kind != id.kind || other.group != id.group {
			continue
		}
		if other.name == id.name && (other.namespace == id.namespace || other.namespace == "") {
			return s
		}
		if strings.Contains(id.name, other.name) {
			near = append(near, s)
		}
	}
	if len(near) == 1 {
		return near[0]
	}
	return source{path: name}
}

// accumulated matches the directory in kustomize's error. The last such directory is the innermost.
var accumulated = regexp.MustCompile(`(?s)^.*recursed accumulation of path '/([^']*)': (.*)$`)

// failedIn returns the directory in which kustomize failed while it built dir, and its message. Text that comes from
// the delimiter of splitNothing is replaced.
func failedIn(dir string, err error) (in, message string) {
	text := unaliased(err.Error())
	if inner := accumulated.FindStringSubmatch(text); inner != nil {
		dir, text = inner[1], strings.TrimSuffix(inner[2], `"`)
	}
	if strings.Contains(text, scalarError) {
		return dir, "a replacement copies an object or a list; only strings, numbers and booleans can be copied"
	}
	text, _, _ = strings.Cut(text, ": no matches for Id ") // the rest repeats the message twice
	return dir, oneLine(strings.NewReplacer(":"+scalarOnly+"(0)", "", ", create=false", "").Replace(text))
}

// oneLine shortens kustomize's error, which may have several lines, to one line.
func oneLine(text string) string {
	const most = 1000
	text = brief.Printable(strings.Join(strings.Fields(text), " "))
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
