package gitsource

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
)

// TestPatchThatMatchesNothingIsWarnedOf: kustomize accepts such a patch and changes nothing.
func TestPatchThatMatchesNothingIsWarnedOf(t *testing.T) {
	const op = `patch: '[{op: add, path: /data/x, value: z}]'`
	const merge = `patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: any}, data: {x: z}}'`
	warning := func(i string) []string {
		return []string{"kustomization.yaml:" + i + ": matches no object: the patch changes nothing; compare it with the kinds and names of the resources"}
	}
	for name, c := range map[string]struct {
		reason, kustomization string
		more                  []string
		want                  []string
	}{
		"Matches":       {"the object is there", "resources: [a.yaml]\npatches:\n- {target: {kind: ConfigMap}, " + op + "}", nil, nil},
		"Name":          {"no object is called b", "resources: [a.yaml]\npatches:\n- {target: {name: b}, " + op + "}", nil, warning("3: patches[0].target")},
		"Second":        {"the first matches", "resources: [a.yaml]\npatches:\n- {target: {name: a}, " + op + "}\n- {target: {kind: Deployment}, " + op + "}", nil, warning("4: patches[1].target")},
		"Merge":         {"a merge patch has a target, too", "resources: [a.yaml]\npatches:\n- {target: {name: b}, " + merge + "}", nil, warning("3: patches[0].target")},
		"MergeMatches":  {"and may match", "resources: [a.yaml]\npatches:\n- {target: {name: a}, " + merge + "}", nil, nil},
		"Pattern":       {"names are patterns", "resources: [a.yaml]\npatches:\n- {target: {name: '[ab]'}, " + op + "}", nil, nil},
		"Labels":        {"labels select", "resources: [a.yaml]\npatches:\n- {target: {labelSelector: app=x}, " + op + "}", nil, warning("3: patches[0].target")},
		"RenamedBefore": {"the prefix of a base is there when the overlay patches", "resources: [base]\npatches:\n- {target: {name: my-a}, " + op + "}", []string{"base/kustomization.yaml", "namePrefix: my-\nresources: [a.yaml]\n", "base/a.yaml", configMap("a", "v")}, nil},
		"Deleted":       {"what the patch deletes was there", "resources: [a.yaml]\npatches:\n- {target: {kind: ConfigMap}, patch: '{$patch: delete, apiVersion: v1, kind: ConfigMap, metadata: {name: any}}'}", nil, nil},
		"RenamedAfter":  {"the overlay's own prefix comes after its patches", "namePrefix: x-\nresources: [a.yaml]\npatches:\n- {target: {name: a}, " + op + "}", nil, nil},
		"OfABase": {
			"the patch is that of a base", "resources: [base]",
			[]string{"base/kustomization.yaml", "resources: [a.yaml]\npatches:\n- {target: {name: b}, " + op + "}\n", "base/a.yaml", configMap("a", "v")},
			[]string{"base/" + warning("3: patches[0].target")[0]},
		},
		"OfAComponent": {
			"a component cannot be built alone", "resources: [a.yaml]\ncomponents: [part]",
			[]string{"part/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- {target: {name: b}, " + op + "}\n- {target: {name: a}, " + op + "}\n"},
			[]string{"part/" + warning("4: patches[0].target")[0]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			files := tree{"kustomization.yaml": c.kustomization + "\n", "a.yaml": configMap("a", "v")}
			for pair := range slices.Chunk(c.more, 2) {
				files[pair[0]] = pair[1]
			}
			_, problems := files.local(t).Build(t.Context(), BuildOptions{Warn: func(p problem.Problem) { got = append(got, p.String()) }})
			if diff := cmp.Diff(c.want, got); diff != "" || len(problems) > 0 {
				t.Errorf("%s (-want +got):\n%s%v", c.reason, diff, problems)
			}
		})
	}
}
