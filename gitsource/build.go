package gitsource

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"golang.org/x/text/unicode/norm"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

// BuildOptions say which part of a commit is built.
type BuildOptions struct {
	// Path of the directory; the whole repository if empty. A leading ./ is allowed, a leading
	// / and .. are not.
	Path string
	// Ignore lists paths that are treated as absent, in .gitignore syntax from the root of the repository.
	Ignore string
	// Warn receives problems that do not stop the build but are probably mistakes, such as a
	// patch that matches nothing. To find them, the build runs twice; with a nil Warn it runs
	// once.
	Warn func(problem.Problem)
}

// kustomizationNames are the file names kustomize knows.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Build returns the objects that the directory declares, and all problems. If there is a problem, the objects must
// not be applied. They are the objects that could be read, so that callers can look for more problems in them; a
// broken file or kustomization may have more objects. A file with a syntax error contributes no object. Nor does a
// kustomization that names a file with a problem.
//
// A directory with a kustomization file is built by kustomize, in memory. In any other directory, Build reads every
// *.yaml and *.yml file, and the sub-directories in the same way; so a nested kustomization is built as a
// kustomization, as in Flux. Build skips names that start with a dot, the folders of Helm charts, and the paths that
// an AddOnPackage names; the latter are read into Object.Folder. If a file with an AddOnPackage has a syntax error,
// no other file is read.
//
// Objects are in the order of their files, or in kustomize's order. Build does not check which kinds are allowed.
func (t *Tree) Build(ctx context.Context, o BuildOptions) ([]Object, problem.List) {
	b := &builder{
		tree:     t,
		ignore:   parseIgnore(o.Ignore),
		dirs:     map[string][]entry{},
		contents: map[string][]byte{},
		parsed:   map[string][]document{},
		broken:   map[string]bool{},
		packed:   map[string]bool{},
		warn:     o.Warn,
	}
	dir, f := b.start(o.Path)
	if f != nil {
		return nil, problem.List{f.at(problem.Problem{Field: "spec.path"})}
	}
	var objects []Object
	if b.packages(dir); !b.hidden {
		objects = b.directory(ctx, dir)
		b.duplicates(objects)
		b.capture(ctx, objects)
	}
	for i := range b.problems {
		b.problems[i].Message = t.redaction.Text(b.problems[i].Message)
	}
	// Two kustomizations that share a base report the same mistakes in it.
	return objects, slices.Compact(b.problems.Sorted())
}

// builder is one run of Build, with the files read so far and their problems.
type builder struct {
	tree     *Tree
	ignore   gitignore.Matcher
	problems problem.List

	dirs     map[string][]entry
	contents map[string][]byte
	parsed   map[string][]document
	broken   map[string]bool
	// packed are the folders and files that belong to an AddOnPackage.
	packed map[string]bool
	// hidden: an AddOnPackage cannot be read. So its files are not known, and they would be reported instead.
	hidden bool
	// warn is BuildOptions.Warn.
	warn  func(problem.Problem)
	seen  int
	bytes int64
	// stopped: a limit of the whole build was exceeded. To read on would report it again.
	stopped bool
}

func (b *builder) add(p problem.Problem) { b.problems = append(b.problems, p) }

// start returns the directory to build.
func (b *builder) start(name string) (string, *failure) {
	if path.IsAbs(name) {
		return "", &failure{
			reason: PathDenied, message: fmt.Sprintf("the path %s is absolute", name),
			hint: "paths start at the root of the repository: " + strings.TrimLeft(name, "/"),
		}
	}
	dir, f := join("", cmp.Or(name, "."))
	if f != nil && f.reason == RemoteResourceDenied {
		// A directory may be called a@b; only kustomize would look for it on the network.
		if inside, denied := join("", "./"+name); denied == nil {
			if e, missing := b.find(path.Join(b.tree.base, inside)); missing == nil && e.kind == directory {
				dir, f = inside, nil
			}
		}
	}
	if f != nil {
		return "", f
	}
	dir = path.Join(b.tree.base, dir)
	e, f := b.find(dir)
	switch {
	case f != nil:
		return "", f
	case e.kind != directory:
		return "", &failure{reason: PathNotFound, message: dir + " is a file", hint: "name the directory it is in"}
	}
	return dir, nil
}

// directory builds one directory.
func (b *builder) directory(ctx context.Context, dir string) []Object {
	if err := ctx.Err(); err != nil {
		b.add(problem.Problem{Reason: FetchFailed, Path: dir, Message: "stopped: " + err.Error()})
		return nil
	}
	list, f := b.list(dir)
	if f != nil {
		b.add(f.at(problem.Problem{Path: dir}))
		return nil
	}
	if b.hasKustomization(dir, list) {
		return b.kustomize(ctx, dir)
	}
	return b.plain(ctx, dir, list)
}

func (b *builder) hasKustomization(dir string, list []entry) bool {
	return slices.ContainsFunc(list, func(e entry) bool {
		return slices.Contains(kustomizationNames, e.name) && !b.ignored(path.Join(dir, e.name), e.kind)
	})
}

// plain takes every YAML file below a directory.
func (b *builder) plain(ctx context.Context, dir string, list []entry) []Object {
	if depth := strings.Count(dir, "/") + 1; depth > b.tree.limits.Depth {
		b.add(fail(LimitExceeded, "%d directories deep, at most %d are read", depth, b.tree.limits.Depth).
			at(problem.Problem{Path: dir}))
		return nil
	}
	if b.packed[dir] || isChart(list) {
		return nil
	}
	var out []Object
	folded := map[string]string{}
	for _, e := range list {
		name := path.Join(dir, e.name)
		if b.stopped {
			return nil
		}
		if strings.HasPrefix(e.name, ".") || b.ignored(name, e.kind) || b.packed[name] {
			continue
		}
		if f := checkName(dir, e, folded); f != nil {
			b.add(f.at(problem.Problem{Path: brief.Printable(name)}))
			continue
		}
		switch {
		case e.kind == directory:
			out = append(out, b.directory(ctx, name)...)
		case e.kind != regular:
			b.add(fail(PathDenied, "is %s; only regular files are read", e.kind).at(problem.Problem{Path: name}))
		case isYAML(e.name):
			out = append(out, b.file(name, e)...)
		case isYAML(strings.ToLower(e.name)):
			// If the directory were ignored, the policy would silently not apply.
			b.add(problem.Problem{
				Path: name, Reason: PathDenied, Message: "would not be read: its ending is not in lower case",
				Hint: "rename it to end in .yaml or .yml",
			})
		}
	}
	return out
}

// checkName refuses two kinds of names: a name that means another path on another machine, and a name that equals
// that of another file if the machine ignores case.
func checkName(dir string, e entry, folded map[string]string) *failure {
	if _, f := join(dir, "./"+e.name); f != nil || strings.Contains(e.name, "/") {
		why := ""
		switch {
		case !utf8.ValidString(e.name):
			why = ": it is not UTF-8"
		case strings.Contains(e.name, `\`):
			why = ": it has a backslash, which is a directory on other machines"
		}
		f = fail(PathDenied, "the name %q cannot be used%s", e.name, why)
		f.hint = "rename the file"
		if e.kind == directory {
			f.hint = "rename the directory"
		}
		return f
	}
	key := strings.ToLower(norm.NFC.String(e.name))
	if other, ok := folded[key]; ok {
		return fail(PathDenied, "the name differs from %s only in case or accents, which some file systems ignore",
			path.Join(dir, other))
	}
	folded[key] = e.name
	return nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// file returns the objects of one file, unchanged.
func (b *builder) file(name string, e entry) []Object {
	docs, _ := b.documents(name, e)
	sources, problems := manifests(name, docs)
	b.problems = append(b.problems, problems...)
	var out []Object
	for _, s := range sources {
		if local(s.value) {
			continue
		}
		u := &unstructured.Unstructured{Object: s.value}
		out = append(out, Object{Unstructured: u.DeepCopy(), source: s})
	}
	return out
}

// documents reads and decodes a file once. It reports the problems of the file once, and then always returns no
// documents and false, because half a file would only cause follow-on errors.
func (b *builder) documents(name string, e entry) (docs []document, whole bool) {
	if docs, ok := b.parsed[name]; ok {
		return docs, !b.broken[name]
	}
	content, f := b.read(name, e)
	if f != nil {
		b.add(f.at(problem.Problem{Path: name}))
		b.broken[name] = true
	} else {
		var mistakes []mistake
		docs, mistakes = decodeYAML(content)
		for _, m := range mistakes {
			b.add(m.at(name))
		}
		if len(mistakes) > 0 {
			docs, b.broken[name] = nil, true
		}
	}
	b.parsed[name] = docs
	return docs, !b.broken[name]
}

// duplicates reports objects that are declared twice.
func (b *builder) duplicates(objects []Object) {
	first := map[identity]Object{}
	for _, o := range objects {
		id := source{value: o.Object}.identity()
		other, twice := first[id]
		if !twice {
			first[id] = o
			continue
		}
		p := duplicate(o.source, other.source)
		if o.source.node != nil && o.source.node == other.source.node {
			p.Message = fmt.Sprintf("taken twice: by the kustomizations in %s and in %s", other.built, o.built)
			p.Hint = fmt.Sprintf("let spec.path, or the argument of lint, be %s, or list it in a kustomization.yaml at spec.path", overlayOf(o.source.path, other.built, o.built))
		}
		b.add(p)
	}
}

// overlayOf returns, of two directories that both build a file, the directory that does not contain the
// file. Its kustomization must include the other directory, because both need the file. If both or none
// contain the file, it returns "one of the two".
func overlayOf(file, first, second string) string {
	inside := func(dir string) bool { return dir == display("") || strings.HasPrefix(file, dir+"/") }
	switch {
	case inside(first) && !inside(second):
		return second
	case inside(second) && !inside(first):
		return first
	}
	return "one of the two"
}

func duplicate(s, first source) problem.Problem {
	place := first.path
	if first.node != nil {
		place = fmt.Sprintf("%s:%d", first.path, first.node.Line)
	}
	p := s.problem(DuplicateObject, "already declared in %s", place)
	p.Hint = "keep one of them"
	return p
}

func parseIgnore(text string) gitignore.Matcher {
	var patterns []gitignore.Pattern
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, gitignore.ParsePattern(line, nil))
		}
	}
	return gitignore.NewMatcher(patterns)
}

// ignored reports whether spec.ignore excludes a path. Its parents were checked before.
func (b *builder) ignored(name string, k kind) bool {
	return b.ignore.Match(strings.Split(name, "/"), k == directory)
}
