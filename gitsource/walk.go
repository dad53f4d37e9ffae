package gitsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/addonflow/addonflow/api/problem"
)

// Limits of the graph of kustomizations that one build may read.
const (
	maxBases  = 32   // nesting of bases
	maxBuilds = 1000 // builds of bases; a base counts once per path to it
)

// walker reads every kustomization of a build, and every file that they name, before kustomize runs, because
// kustomize fetches URLs, starts git and runs plugins while it reads. Afterwards kustomize gets a file system that
// contains only the files found here, with their YAML rewritten as unambiguous JSON.
type walker struct {
	*builder
	files   map[string][]byte
	raw     map[string]bool     // read as bytes by a generator: kept unchanged
	built   map[string]int      // directory: how many builds it counts as
	weights map[string]weight   // directory: the cost of its build
	trail   []string            // directories on the path from the first to the current
	origin  map[string][]source // the objects of a file, for Object.Position
	// rewritten files contain replacements; kustomize must not read their original text.
	rewritten map[string]bool

	kustomizations []kustomization           // bases come first
	values         map[string]map[string]any // the fields of a kustomization file that kustomize gets

	reads  []fieldOf // sources of replacements
	writes []fieldOf // targets of replacements
	loops  bool      // the loop of replacements was reported
	failed bool      // a file is broken; it may have been reported before
}

type kustomization struct {
	types.Kustomization
	dir, file string
	source    source
}

// problem starts a problem about one of its fields.
func (k kustomization) problem(field string) problem.Problem {
	return problem.Problem{Path: k.file, Line: k.source.line(field), Field: field}
}

// visit walks one directory and returns how many builds it needs.
func (w *walker) visit(dir string) (builds int, f *failure) {
	if i := slices.Index(w.trail, dir); i >= 0 {
		cycle := append(slices.Clone(w.trail[i:]), dir)
		for j, d := range cycle {
			cycle[j] = display(d)
		}
		return 0, fail(PathDenied, "the bases form a cycle: %s", strings.Join(cycle, " -> "))
	}
	if n, ok := w.built[dir]; ok {
		return n, nil
	}
	if len(w.trail) == maxBases {
		return 0, fail(LimitExceeded, "more than %d bases refer to each other", maxBases)
	}
	k, f := w.load(dir)
	if f != nil {
		return 0, f
	}
	builds = 1
	if k != nil {
		w.trail = append(w.trail, dir)
		builds += w.follow(*k)
		w.trail = w.trail[:len(w.trail)-1]
		w.kustomizations = append(w.kustomizations, *k)
	}
	w.built[dir] = builds
	if builds > maxBuilds {
		return builds, fail(LimitExceeded, "its bases would be built more than %d times", maxBuilds)
	}
	return builds, nil
}

func display(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// load reads the kustomization of a directory. A failure is about the reference to the directory. If both results are
// nil, the errors inside the directory were reported.
func (w *walker) load(dir string) (*kustomization, *failure) {
	list, f := w.list(dir)
	if f != nil {
		return nil, f
	}
	var found []entry
	for _, e := range list {
		if slices.Contains(kustomizationNames, e.name) && !w.ignored(path.Join(dir, e.name), e.kind) {
			found = append(found, e)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fail(RenderFailed, "the directory %s has no %s", display(dir), kustomizationNames[0])
	case len(found) > 1:
		w.add(problem.Problem{
			Reason: RenderFailed, Path: path.Join(dir, found[1].name),
			Message: "there is also " + path.Join(dir, found[0].name), Hint: "keep one of them",
		})
		return nil, nil
	case found[0].kind != regular:
		return nil, fail(PathDenied, "%s is %s", path.Join(dir, found[0].name), found[0].kind)
	}
	return w.parse(dir, found[0]), nil
}

// parse decodes a kustomization file strictly.
func (w *walker) parse(dir string, e entry) *kustomization {
	name := path.Join(dir, e.name)
	docs := w.decoded(name, e)
	if w.broken[name] {
		return nil
	}
	if len(docs) != 1 {
		message := "the kustomization is empty"
		if len(docs) > 1 {
			message = "a kustomization has one document, this has " + fmt.Sprint(len(docs))
		}
		w.add(problem.Problem{Reason: RenderFailed, Path: name, Message: message})
		return nil
	}
	value, ok := docs[0].value.(map[string]any)
	if !ok {
		w.add(problem.Problem{
			Reason: RenderFailed, Path: name, Line: docs[0].node.Line,
			Message: "expected an object, found " + describe(docs[0].value),
		})
		return nil
	}
	k := &kustomization{dir: dir, file: name, source: source{path: name, node: docs[0].node, value: value}}
	if !w.decodeStrictly(k) {
		return nil
	}
	return k
}

// decodeStrictly fills k.Kustomization. Kustomize itself ignores the case of field names; here
// the case must match, so that no field is overlooked.
func (w *walker) decodeStrictly(k *kustomization) bool {
	unknown, err := kjson.UnmarshalStrict(canonical(k.source.value), &k.Kustomization)
	for _, e := range unknown {
		p := problem.Problem{Reason: RenderFailed, Path: k.file, Message: "invalid Kustomization: " + e.Error()}
		if _, field, ok := strings.Cut(e.Error(), "unknown field "); ok {
			p.Line = k.source.line(strings.Trim(field, `"`))
		}
		w.add(p)
	}
	switch {
	case err == nil && len(unknown) == 0 && k.CheckEmpty() != nil:
		w.add(problem.Problem{Reason: RenderFailed, Path: k.file, Message: "the kustomization is empty"})
		return false
	case err == nil:
		return true
	}
	p := problem.Problem{Reason: RenderFailed, Path: k.file, Message: "invalid Kustomization: " + err.Error()}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		p.Field, p.Line = mismatch.Field, k.source.line(mismatch.Field)
		p.Message = fmt.Sprintf("invalid Kustomization: must be a %s, found a %s", mismatch.Type, mismatch.Value)
		if mismatch.Type.String() == "string" {
			p.Hint = "quote it"
		}
	}
	w.add(p)
	return false
}

// follow checks every field of a kustomization, keeps the named files for the build, and returns how many further
// builds they need.
func (w *walker) follow(k kustomization) (builds int) {
	w.refuse(k)
	declared := map[identity]source{}
	for _, r := range references(k.Kustomization) {
		if w.stopped {
			return builds
		}
		builds += w.refer(k, r, declared)
	}
	value := maps.Clone(k.source.value)
	renewed(value)
	w.inline(k)
	w.replacementsIn(value["replacements"], func(field string) problem.Problem {
		return k.problem("replacements" + field)
	})
	w.values[k.file], w.files[k.file] = value, canonical(value)
	if f := w.weigh(k); f != nil {
		w.add(f.at(k.problem("")))
	}
	return min(builds, maxBuilds+1)
}

// renewed rewrites deprecated fields as kustomize itself reads them. Otherwise kustomize would
// print a warning, without a file name, to standard error.
func renewed(value map[string]any) {
	for _, f := range []struct {
		old, now string
		entries  func(any) []any
	}{
		{"imageTags", "images", func(old any) []any { list, _ := old.([]any); return list }},
		{"commonLabels", "labels", func(old any) []any { return []any{map[string]any{"pairs": old, "includeSelectors": true}} }},
	} {
		if old := value[f.old]; old != nil {
			list, _ := value[f.now].([]any)
			value[f.now] = append(slices.Clone(list), f.entries(old)...)
			delete(value, f.old)
		}
	}
}

// refer follows one reference and returns how many builds it needs.
func (w *walker) refer(k kustomization, r reference, declared map[identity]source) (builds int) {
	p := k.problem(r.field)
	name, e, f := w.target(k.dir, r)
	switch {
	case f != nil:
		w.add(f.at(p))
	case e.kind == directory:
		if builds, f = w.visit(name); f != nil {
			w.add(f.at(p))
		}
	case r.use == asResource:
		w.once(declared, w.resources(name, e))
	default:
		w.keep(name, e, r.use, p)
	}
	return builds
}

// once reports objects that two files of one kustomization declare, because kustomize would name only one of the
// files.
func (w *walker) once(declared map[identity]source, sources []source) {
	for _, s := range sources {
		id := s.identity()
		if other, twice := declared[id]; twice {
			w.add(duplicate(s, other))
			continue
		}
		declared[id] = s
	}
}

// target finds the object of a reference.
func (w *walker) target(dir string, r reference) (string, entry, *failure) {
	name, f := join(dir, r.path)
	if f != nil {
		return "", entry{}, w.mistaken(dir, r.path, f)
	}
	e, f := w.find(name)
	switch {
	case f != nil && f.reason == PathNotFound:
		return "", entry{}, &failure{reason: RenderFailed, message: f.message, hint: f.hint}
	case f != nil:
		return "", entry{}, f
	case e.kind == directory && r.use != asResource && r.use != asBase:
		return "", entry{}, fail(RenderFailed, "%s is a directory; a file is wanted here", name)
	case e.kind != directory && r.use == asBase:
		return "", entry{}, fail(RenderFailed, "%s is a file; a directory with a kustomization is wanted here", name)
	}
	return name, e, nil
}

// mistaken explains two failures: a name in the directory that kustomize would fetch, such as ns@2.yaml, and a path
// that leaves a directory that is not a repository.
func (w *walker) mistaken(dir, name string, f *failure) *failure {
	if w.tree.alone && f.reason == PathDenied && strings.HasPrefix(path.Join(dir, name), "../") {
		return &failure{
			reason: f.reason, message: f.message, hint: "the directory is in no Git work tree and so taken for the repository; name the one that holds both",
		}
	}
	if f.reason != RemoteResourceDenied {
		return f
	}
	inside, denied := join(dir, "./"+name)
	if denied != nil {
		return f
	}
	if _, missing := w.find(inside); missing != nil {
		return f
	}
	return &failure{
		reason: RemoteResourceDenied, message: name + " could be read as a place outside of the repository", hint: "write ./" + name,
	}
}

// resources reads a file of objects, splits Lists, and keeps the file for the build.
func (w *walker) resources(name string, e entry) []source {
	if known, ok := w.origin[name]; ok {
		return known
	}
	sources, problems := manifests(name, w.decoded(name, e))
	w.problems = append(w.problems, problems...)
	w.origin[name] = sources
	if !w.raw[name] {
		var values []any
		for _, s := range sources {
			values = append(values, s.value)
		}
		w.files[name] = canonical(values...)
	}
	return sources
}

// keep reads a file that is not a resource.
func (w *walker) keep(name string, e entry, u use, at problem.Problem) {
	content, f := w.read(name, e)
	switch {
	case f != nil:
		at.Path, at.Line, at.Field = name, 0, ""
		w.add(f.at(at))
	case u == asBytes && strings.HasPrefix(string(content), lfsPointer):
		w.add(problem.Problem{
			Reason: LFSPointer, Path: name, Line: 1,
			Message: "the file is in Git LFS, the commit holds only a pointer to it", Hint: "commit the file itself",
		})
	case w.rewritten[name] && u == asBytes, w.raw[name] && u == asReplacement:
		w.add(fail(RenderFailed, "%s cannot be a list of replacements and a value at once", name).at(at))
	case u == asBytes:
		w.raw[name], w.files[name] = true, content
	case u == asReplacement:
		w.replacementFile(name, w.decoded(name, e))
	default:
		docs := w.decoded(name, e)
		if u == asPlugin {
			w.plugins(name, docs)
		}
		if _, kept := w.files[name]; kept {
			return
		}
		var values []any
		for _, d := range docs {
			values = append(values, d.value)
		}
		w.files[name] = canonical(values...)
	}
}

// decoded returns the documents of a file and notes whether the file is broken.
func (w *walker) decoded(name string, e entry) []document {
	docs, whole := w.documents(name, e)
	w.failed = w.failed || !whole
	return docs
}

// canonical writes values as YAML documents in JSON. All parts of kustomize read JSON in the same way, but some read
// YAML 1.1 and some YAML 1.2.
func canonical(values ...any) []byte {
	var out []byte
	for i, v := range values {
		if i > 0 {
			out = append(out, "---\n"...)
		}
		text, err := json.Marshal(v)
		if err != nil {
			continue // impossible: the values come from decodeYAML
		}
		out = append(append(out, escape(text)...), '\n')
	}
	return out
}

// escape replaces characters that are allowed in JSON strings and forbidden in YAML.
func escape(text []byte) []byte {
	var b strings.Builder
	for _, r := range string(text) {
		if r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return []byte(b.String())
}

func newWalker(b *builder) *walker {
	return &walker{
		builder: b, files: map[string][]byte{}, raw: map[string]bool{}, rewritten: map[string]bool{},
		built: map[string]int{}, weights: map[string]weight{}, origin: map[string][]source{},
		values: map[string]map[string]any{},
	}
}
