package gitsource

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

// use says how kustomize uses a file or directory that a kustomization names.
type use int

const (
	asResource    use = iota // a file of objects, or a directory with a kustomization
	asBase                   // a directory with a kustomization
	asYAML                   // a YAML file that is not an object: patches, configurations
	asReplacement            // a file of replacements
	asPlugin                 // a file that configures a transformer
	asBytes                  // a file whose content becomes a value
)

// reference is a field of a kustomization that names a path.
type reference struct {
	field, path string
	use         use
}

// references lists every path in a kustomization. If a field were missing here, kustomize would read its path without
// a check; TestEveryPathField compares the list with kustomize's types.
func references(k types.Kustomization) []reference {
	var out []reference
	add := func(u use, field string, paths ...string) {
		for i, p := range paths {
			out = append(out, reference{fmt.Sprintf("%s[%d]", field, i), p, u})
		}
	}
	one := func(u use, field, path string) {
		if path != "" {
			out = append(out, reference{field, path, u})
		}
	}
	add(asResource, "resources", k.Resources...)
	add(asBase, "components", k.Components...)
	add(asYAML, "configurations", k.Configurations...)
	add(asYAML, "crds", k.Crds...)
	one(asYAML, "openapi.path", k.OpenAPI["path"])
	//nolint:staticcheck // deprecated, and kustomize reads it all the same
	for i, p := range k.PatchesStrategicMerge {
		if !isInline(string(p)) {
			one(asYAML, fmt.Sprintf("patchesStrategicMerge[%d]", i), string(p))
		}
	}
	for i, p := range k.Patches {
		one(asYAML, fmt.Sprintf("patches[%d].path", i), p.Path)
	}
	//nolint:staticcheck // deprecated, and kustomize reads it all the same
	for i, p := range k.PatchesJson6902 {
		one(asYAML, fmt.Sprintf("patchesJson6902[%d].path", i), p.Path)
	}
	for i, r := range k.Replacements {
		one(asReplacement, fmt.Sprintf("replacements[%d].path", i), r.Path)
	}
	for i, g := range k.ConfigMapGenerator {
		out = append(out, generatorFiles(fmt.Sprintf("configMapGenerator[%d]", i), g.KvPairSources)...)
	}
	for i, g := range k.SecretGenerator {
		out = append(out, generatorFiles(fmt.Sprintf("secretGenerator[%d]", i), g.KvPairSources)...)
	}
	for _, list := range pluginFields(k) {
		for i, p := range list.texts {
			if !isInline(p) {
				one(asPlugin, fmt.Sprintf("%s[%d]", list.field, i), p)
			}
		}
	}
	return out
}

type pluginField struct {
	field string
	texts []string
}

func pluginFields(k types.Kustomization) []pluginField {
	return []pluginField{
		{"generators", k.Generators}, {"transformers", k.Transformers}, {"validators", k.Validators},
	}
}

// generatorFiles lists the files of a generator. Each is given as path or key=path.
func generatorFiles(field string, s types.KvPairSources) []reference {
	var out []reference
	for i, f := range s.FileSources {
		path := f
		if key, rest, ok := strings.Cut(f, "="); ok && !remote(key) {
			path = rest
		}
		out = append(out, reference{fmt.Sprintf("%s.files[%d]", field, i), path, asBytes})
	}
	for i, f := range s.EnvSources {
		out = append(out, reference{fmt.Sprintf("%s.envs[%d]", field, i), f, asBytes})
	}
	if s.EnvSource != "" {
		out = append(out, reference{field + ".env", s.EnvSource, asBytes})
	}
	return out
}

// isInline distinguishes YAML in a kustomization from the path of a file, in fields where kustomize allows both.
// Kustomize tries YAML first; if that fails, it loads the text as a file. So only text that is certainly an object,
// and not a URL, counts as YAML.
func isInline(text string) bool {
	if !strings.Contains(text, "\n") && !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return false
	}
	docs, mistakes := decodeYAML([]byte(text))
	if len(docs) == 0 || len(mistakes) > 0 {
		return false
	}
	return !slices.ContainsFunc(docs, func(d document) bool {
		m, ok := d.value.(map[string]any)
		return !ok || m["kind"] == nil
	})
}

// refuse reports the fields that are not allowed.
func (w *walker) refuse(k kustomization) {
	denied := func(reason problem.Reason, field, message, hint string) {
		p := k.problem(field)
		p.Reason, p.Message, p.Hint = reason, message, hint
		w.add(p)
	}
	const helm = "runs helm, which is not allowed"
	const helmHint = "commit the rendered chart"
	if len(k.HelmCharts) > 0 {
		denied(PluginDenied, "helmCharts", helm, helmHint)
	}
	if k.HelmGlobals != nil {
		denied(PluginDenied, "helmGlobals", helm, helmHint)
	}
	if len(k.HelmChartInflationGenerator) > 0 {
		denied(PluginDenied, "helmChartInflationGenerator", helm, helmHint)
	}
	bases, vars := k.Bases, k.Vars //nolint:staticcheck // deprecated, which is why they are refused
	if bases != nil {
		for i, b := range bases {
			if _, f := join(k.dir, b); f != nil {
				w.add(f.at(k.problem(fmt.Sprintf("bases[%d]", i))))
			}
		}
		denied(RenderFailed, "bases", "'bases' is deprecated", "use 'resources' instead")
	}
	if vars != nil {
		denied(RenderFailed, "vars", "'vars' is deprecated", "use 'replacements' instead")
	}
	w.inlinePlugins(k)
}

func (w *walker) inlinePlugins(k kustomization) {
	for _, list := range pluginFields(k.Kustomization) {
		for i, text := range list.texts {
			if isInline(text) {
				docs, _ := decodeYAML([]byte(text))
				w.pluginsAt(k.problem(fmt.Sprintf("%s[%d]", list.field, i)), docs)
			}
		}
	}
}

// safeTransformers are the transformers built into kustomize that read no file.
var safeTransformers = []string{
	"AnnotationsTransformer", "ImageTagTransformer", "LabelTransformer", "NamespaceTransformer",
	"PrefixTransformer", "ReplicaCountTransformer", "SuffixTransformer",
}

// functionAnnotations request that kustomize runs a program or a container.
var functionAnnotations = []string{"config.kubernetes.io/function", "config.k8s.io/function"}

func (w *walker) plugins(name string, docs []document) {
	for _, d := range docs {
		w.pluginsAt(problem.Problem{Path: name, Line: d.node.Line}, []document{d})
	}
}

// pluginsAt refuses every plugin except the transformers that are known to be harmless. Kustomize ignores the case of
// the fields of a plugin's configuration. So builtin plugins that read paths are refused as a whole, and not searched
// for paths.
func (w *walker) pluginsAt(at problem.Problem, docs []document) {
	for _, d := range docs {
		at.Reason, at.Hint = PluginDenied, "use the kustomization's own fields"
		m, _ := d.value.(map[string]any)
		kind, _ := m["kind"].(string)
		at.Kind = brief.Printable(kind)
		switch {
		case asksForFunction(m):
			at.Message = "would run a program or a container, which is not allowed"
		case m["apiVersion"] != "builtin":
			at.Message = "is a plugin, which is not allowed"
		case !slices.Contains(safeTransformers, kind):
			at.Message = "is not allowed; only these are: " + strings.Join(safeTransformers, ", ")
		default:
			continue
		}
		w.add(at)
	}
}

func asksForFunction(m map[string]any) bool {
	meta, _ := m["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return slices.ContainsFunc(functionAnnotations, func(a string) bool { return annotations[a] != nil })
}

// isPatch reports whether a value can be a patch or the configuration of a plugin: a mapping or
// a list, not a scalar.
func isPatch(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// inline strictly decodes the patches in the kustomization and writes them back as unambiguous JSON. k is a copy:
// this walk may change it.
func (w *walker) inline(k kustomization) {
	rewrite := func(field, text string, set func(string)) {
		if text == "" {
			return
		}
		docs, mistakes := decodeYAML([]byte(text))
		for _, m := range mistakes {
			p := k.problem(field)
			// A literal block starts a line below its key.
			p.Line += m.line
			p.Reason, p.Message, p.Hint = m.reason, m.message, m.hint
			w.add(p)
		}
		var values []any
		for _, d := range docs {
			values = append(values, d.value)
			if !isPatch(d.value) {
				// Kustomize would quote the text in its error, and a user may write a URL with a password instead of
				// a path.
				p := k.problem(field)
				p.Reason, p.Message, p.Hint = RenderFailed, "expected an object or a list of operations, found "+describe(d.value), "a file is named with path"
				w.add(p)
			}
		}
		set(string(canonical(values...)))
	}
	for _, name := range []string{"patches", "patchesJson6902"} {
		list, _ := k.source.value[name].([]any)
		for i, item := range list {
			if patch, ok := item.(map[string]any); ok {
				text, _ := patch["patch"].(string)
				rewrite(fmt.Sprintf("%s[%d].patch", name, i), text, func(s string) { patch["patch"] = s })
			}
		}
	}
	for _, name := range []string{"patchesStrategicMerge", "generators", "transformers", "validators"} {
		list, _ := k.source.value[name].([]any)
		for i, item := range list {
			if text, ok := item.(string); ok && isInline(text) {
				rewrite(fmt.Sprintf("%s[%d]", name, i), text, func(s string) { list[i] = s })
			}
		}
	}
}
