package gitsource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// TestBaseGraphs: the cost of bases that refer to each other is bounded.
func TestBaseGraphs(t *testing.T) {
	deep, wide := tree{"kustomization.yaml": "resources: [d0]\n"}, tree{"kustomization.yaml": "resources: [w0]\n"}
	for i := range 40 {
		deep[fmt.Sprintf("d%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../d%d]\n", i+1)
	}
	for i := range 20 {
		wide[fmt.Sprintf("w%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../l%d, ../r%d]\n", i, i)
		wide[fmt.Sprintf("l%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../w%d]\nnamePrefix: l\n", i+1)
		wide[fmt.Sprintf("r%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../w%d]\nnamePrefix: r\n", i+1)
	}
	for name, c := range map[string]struct {
		files tree
		want  string
	}{
		"deep": {deep, "more than 32 bases refer to each other"},
		"wide": {wide, "its bases would be built more than 1000 times"},
	} {
		_, problems := c.files.local(t).Build(t.Context(), BuildOptions{})
		found := false
		for _, p := range problems {
			found = found || p.Reason == LimitExceeded && strings.Contains(p.Message, c.want)
		}
		if !found {
			t.Errorf("%s: got %v, want %q", name, lines(problems), c.want)
		}
	}
}

// TestCopyBomb: thirty JSON patch operations would turn one kilobyte into a gigabyte.
func TestCopyBomb(t *testing.T) {
	patch := ""
	for i := range 30 {
		patch += fmt.Sprintf("- {op: copy, from: /data, path: /data/c%d}\n", i)
	}
	problems := buildWith(t, "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]", "p.yaml", patch,
		"a.yaml", configMap("a", strings.Repeat("x", 1000)))
	if len(problems) != 1 || problems[0].Reason != RenderFailed {
		t.Errorf("got %v, want a failed build", lines(problems))
	}
}

// TestReplacementBomb: replacements that copy a field into itself are refused before they grow
// too large; those that copy other values are not.
func TestReplacementBomb(t *testing.T) {
	const create, prefix = "{create: true}", "{delimiter: x, index: -1}"
	replace := func(from, to, options string) string {
		return "- source: {kind: ConfigMap, name: a, fieldPath: " + from + "}\n  targets:\n  - select: {kind: ConfigMap, name: a}\n    fieldPaths: ['" + to + "']\n    options: " + options + "\n"
	}
	for name, c := range map[string]struct {
		list string
		want []string
	}{
		"a name":        {replace("metadata.name", "data.k", create), nil},
		"twice a value": {replace("data.k", "data.l", create) + replace("data.l", "data.m", create), nil},
		"an object":     {replace("data", "data.x", create), []string{"RenderFailed kustomization.yaml: a replacement copies an object or a list; only strings, numbers and booleans can be copied"}},
		"a string into itself": {
			strings.Repeat(replace("data.k", "data.k", prefix), 30),
			[]string{"LimitExceeded kustomization.yaml:43: replacements[8]: replacements write more than 8 times to fields that replacements read"},
		},
		"two strings into each other": {
			strings.Repeat(replace("data.k", "data.l", prefix)+replace("data.l", "data.k", prefix), 15),
			[]string{"LimitExceeded kustomization.yaml:43: replacements[8]: replacements write more than 8 times to fields that replacements read"},
		},
		"JSON in a string": {
			strings.Repeat(replace("data.k", "data.k.x", create), 30),
			[]string{"LimitExceeded kustomization.yaml:23: replacements[4]: replacements write more than 8 times to fields that replacements read"},
		},
		"with wildcards": {
			strings.Repeat(replace("data.k", "data.*", prefix), 30),
			[]string{"LimitExceeded kustomization.yaml:23: replacements[4]: replacements write more than 8 times to fields that replacements read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inline := buildWith(t, "resources: [a.yaml]\nreplacements:\n"+c.list)
			if diff := cmp.Diff(c.want, lines(inline)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			file := buildWith(t, "resources: [a.yaml]\nreplacements: [{path: r.yaml}]", "r.yaml", c.list)
			if (len(file) == 0) != (len(c.want) == 0) || len(file) > 0 && file[0].Reason != inline[0].Reason {
				t.Errorf("in a file: %v", lines(file))
			}
		})
	}
	problems := buildWith(t, "resources: [a.yaml]\nreplacements: [{path: r.yaml}]\nconfigMapGenerator: [{name: g, files: [r.yaml]}]", "r.yaml", replace("data", "data.x", create))
	if !hasReason(problems, RenderFailed) {
		t.Errorf("a file that is content, too, passes: %v", lines(problems))
	}
}

func TestKustomizeTakesTurns(t *testing.T) {
	kustomizeTurn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := runKustomize(ctx, filesys.MakeFsInMemory(), "/")
	<-kustomizeTurn
	if err == nil || !strings.Contains(err.Error(), "waiting for another build") {
		t.Errorf("got %v, want that it waited", err)
	}
	if _, err := recoverKustomize(nil, "/"); err == nil || !strings.Contains(err.Error(), "kustomize panicked") {
		t.Errorf("got %v, want a recovered panic", err)
	}
}

// TestKustomizeIsBoundedInTime: a build that would delay every other source for minutes, or use
// up memory, is refused before kustomize runs; common trees are far below the limit.
func TestKustomizeIsBoundedInTime(t *testing.T) {
	objects := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\n", i)
		}
		return b.String()
	}
	patches := func(n int) string {
		return "patches:\n" + strings.Repeat("- {target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/data\", \"value\": {}}]'}\n", n)
	}
	const component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
	for name, c := range map[string]struct {
		commit tree
		says   string
	}{
		"patches":   {tree{"o.yaml": objects(1000), "kustomization.yaml": "resources: [o.yaml]\n" + patches(100)}, "100 patches of 1000 objects"},
		"component": {tree{"o.yaml": objects(1000), "kustomization.yaml": "resources: [o.yaml]\ncomponents: [c]\n", "c/kustomization.yaml": component + patches(100)}, "100 patches of 1000 objects"},
		"again": {
			tree{"b/o.yaml": objects(400), "b/kustomization.yaml": "resources: [o.yaml]\n" + patches(60), "c/kustomization.yaml": "resources: [../b]\nnamePrefix: c-\n", "kustomization.yaml": "resources: [b, c]\n"},
			"would take too long",
		},
		"annotation": {tree{"o.yaml": objects(1000), "kustomization.yaml": "resources: [o.yaml]\ncommonAnnotations: {a: " + strings.Repeat("x", 300_000) + "}\n"}, "would be added to each of 1000 objects"},
		"patch file": {tree{"o.yaml": objects(1000), "p.yaml": "- {op: add, path: /data, value: {a: " + strings.Repeat("x", 300_000) + "}}\n", "kustomization.yaml": "resources: [o.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n"}, "would be added to each of 1000 objects"},
		"common":     {tree{"o.yaml": objects(20), "kustomization.yaml": "resources: [o.yaml]\nnamePrefix: p-\n" + patches(3)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := c.commit.local(t).Build(t.Context(), BuildOptions{})
			switch {
			case c.says == "" && len(problems) > 0:
				t.Error(problems)
			case c.says != "" && (len(problems) != 1 || problems[0].Reason != LimitExceeded || !strings.Contains(problems[0].Message, c.says)):
				t.Errorf("got %v", problems)
			}
		})
	}
}
