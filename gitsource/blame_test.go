package gitsource

import (
	"strings"
	"testing"
)

// TestBlame: what kustomize fails at is named with file and line, which its own words are
// not.
func TestBlame(t *testing.T) {
	const misses = "- patch: '[{op: replace, path: /data/nothing/x, value: y}]'\n  target: {kind: ConfigMap}\n"
	const good = "- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: w}}'\n"
	for name, c := range map[string]struct {
		kustomization string
		more          []string
		want          string
	}{
		"the only patch":         {"resources: [a.yaml]\npatches:\n" + misses, nil, "kustomization.yaml:3: patches[0]: "},
		"one of many":            {"resources: [a.yaml]\npatches:\n" + good + good + misses + good + misses, nil, "kustomization.yaml:5: patches[2]: "},
		"of a base":              {"resources: [a.yaml, base]\npatches:\n" + good, []string{"base/kustomization.yaml", "resources: [b.yaml]\npatches:\n" + misses, "base/b.yaml", configMap("b", "v")}, "base/kustomization.yaml:3: patches[0]: "},
		"a component":            {"resources: [a.yaml]\ncomponents:\n- c\n", []string{"c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n" + misses}, "kustomization.yaml:3: components[0]: "},
		"nothing that is listed": {"resources: [a.yaml]\nconfigMapGenerator:\n- {name: a, behavior: create, literals: [k=v]}\n- {name: a, literals: [k=v]}", nil, "kustomization.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			problems := buildWith(t, c.kustomization, c.more...)
			if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) {
				t.Errorf("got %v, want one that starts with %q", lines(problems), c.want)
			}
		})
	}
}
