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

	"github.com/addonflow/addonflow/api/problem"
)

// BuildOptions say which part of a commit is built.
type BuildOptions struct {
	// Path of the directory, the whole repository if empty. A leading ./ is fine,
	// a leading / and .. are not.
	Path string
	// Ignore lists paths that are treated as if they were not in the commit, in
	// .gitignore syntax from the root of the repository.
	Ignore string
	// Warn is told what builds and may not be meant: a patch that matches nothing. It
	// takes a second build to find out; nil: not asked.
	Warn func(problem.Problem)
}

// kustomizationNames are the file names kustomize knows.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Build returns the objects the directory declares and everything that is wrong with
// it. With any problem the objects are those that could be read in spite of it, in
// which to look for more problems: they must not be applied, and what is not among
// them may be in a broken file or kustomization. Nothing of a file with a syntax
// error is returned. A kustomization is built without the resources that cannot be read;
// nothing of it is returned where something that changes its resources is wrong.
//
// A directory with a kustomization file is built by kustomize, in memory. Of any other
// directory every *.yaml and *.yml file in it is taken, and its sub-directories in the
// same way, so that a nested kustomization is built as one (Flux). Names that start with a dot are skipped, and so are the folders of Helm
// charts and whatever an AddOnPackage names: that is read into Object.Folder.
//
// Objects come in the order of their files, or as kustomize orders them. Which
// kinds are allowed is not checked here.
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
	b.packages(dir)
	objects := b.directory(ctx, dir)
	b.duplicates(objects)
	b.capture(ctx, objects)
	for i := range b.problems {
		b.problems[i].Message = t.redaction.Text(b.problems[i].Message)
	}
	// Two kustomizations that share a base find the same mistakes in it.
	return objects, slices.Compact(b.problems.Sorted())
}

// builder is one run of Build: what was read so far, and what is wrong with it.
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
	// warn is BuildOptions.Warn.
	warn  func(problem.Problem)
	seen  int
	bytes int64
	// stopped: a limit of the whole build was passed; reading on reports it again.
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
		// A directory may be called a@b; only kustomize would look for it elsewhere.
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
			b.add(f.at(problem.Problem{Path: printable(name)}))
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
			// Ignored, it would be a policy that silently does not apply.
			b.add(problem.Problem{
				Path: name, Reason: PathDenied, Message: "would not be read: its ending is not in lower case",
				Hint: "rename it to end in .yaml or .yml",
			})
		}
	}
	return out
}

// checkName refuses names that are another place, or one file with another, on
// another machine.
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

// file takes the objects of one file as they are.
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

// documents reads and decodes a file once. What is wrong with it is reported once,
// and each time there is nothing and false: half a file only leads to problems
// that are none.
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

// overlayOf returns which of two directories whose kustomizations build a file takes it from
// the other one. The other one cannot be left out: both need it.
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

// ignored tells whether spec.ignore leaves out a path. Its parents were asked before.
func (b *builder) ignored(name string, k kind) bool {
	return b.ignore.Match(strings.Split(name, "/"), k == directory)
}
