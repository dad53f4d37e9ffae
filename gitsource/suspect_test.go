package gitsource

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/addonflow/addonflow/api/problem"
)

// TestPatchOfNothingIsASuspect: kustomize takes a patch whose target matches nothing, and
// whoever wrote it loses what it was to change.
func TestPatchOfNothingIsASuspect(t *testing.T) {
	const op = `patch: '[{op: add, path: /data/x, value: z}]'`
	const merge = `patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: any}, data: {x: z}}'`
	suspect := func(i string) []string {
		return []string{"kustomization.yaml:" + i + ": matches no object: the patch changes nothing; compare it with the kinds and names of the resources"}
	}
	for name, c := range map[string]struct {
		reason, kustomization string
		more                  []string
		want                  []string
	}{
		"Matches":       {"the object is there", "resources: [a.yaml]\npatches:\n- {target: {kind: ConfigMap}, " + op + "}", nil, nil},
		"Name":          {"no object is called b", "resources: [a.yaml]\npatches:\n- {target: {name: b}, " + op + "}", nil, suspect("3: patches[0].target")},
		"Second":        {"the first matches", "resources: [a.yaml]\npatches:\n- {target: {name: a}, " + op + "}\n- {target: {kind: Deployment}, " + op + "}", nil, suspect("4: patches[1].target")},
		"Merge":         {"a merge patch has a target, too", "resources: [a.yaml]\npatches:\n- {target: {name: b}, " + merge + "}", nil, suspect("3: patches[0].target")},
		"MergeMatches":  {"and may match", "resources: [a.yaml]\npatches:\n- {target: {name: a}, " + merge + "}", nil, nil},
		"Pattern":       {"names are patterns", "resources: [a.yaml]\npatches:\n- {target: {name: '[ab]'}, " + op + "}", nil, nil},
		"Labels":        {"labels select", "resources: [a.yaml]\npatches:\n- {target: {labelSelector: app=x}, " + op + "}", nil, suspect("3: patches[0].target")},
		"RenamedBefore": {"the prefix of a base is there when the overlay patches", "resources: [base]\npatches:\n- {target: {name: my-a}, " + op + "}", []string{"base/kustomization.yaml", "namePrefix: my-\nresources: [a.yaml]\n", "base/a.yaml", configMap("a", "v")}, nil},
		"OfABase": {
			"the patch is that of a base", "resources: [base]",
			[]string{"base/kustomization.yaml", "resources: [a.yaml]\npatches:\n- {target: {name: b}, " + op + "}\n", "base/a.yaml", configMap("a", "v")},
			[]string{"base/" + suspect("3: patches[0].target")[0]},
		},
		"OfAComponent": {
			"a component cannot be built alone", "resources: [a.yaml]\ncomponents: [part]",
			[]string{"part/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- {target: {name: b}, " + op + "}\n- {target: {name: a}, " + op + "}\n"},
			[]string{"part/" + suspect("4: patches[0].target")[0]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			files := tree{"kustomization.yaml": c.kustomization + "\n", "a.yaml": configMap("a", "v")}
			for pair := range slices.Chunk(c.more, 2) {
				files[pair[0]] = pair[1]
			}
			_, problems := files.local(t).Build(t.Context(), BuildOptions{Suspect: func(p problem.Problem) { got = append(got, p.String()) }})
			if diff := cmp.Diff(c.want, got); diff != "" || len(problems) > 0 {
				t.Errorf("%s (-want +got):\n%s%v", c.reason, diff, problems)
			}
		})
	}
}

// TestRenewedFieldsMeanTheSame: what kustomize would print about is written otherwise, and
// builds to the same.
func TestRenewedFieldsMeanTheSame(t *testing.T) {
	const workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {app: a}}\n" +
		"  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'x:1'}]}}\n"
	value := func() map[string]any {
		return map[string]any{
			"resources": []any{"a.yaml"}, "commonLabels": map[string]any{"team": "b"}, "imageTags": []any{map[string]any{"name": "x", "newTag": "2"}},
			"labels": []any{map[string]any{"pairs": map[string]any{"team": "c", "env": "d"}}}, "images": []any{map[string]any{"name": "x", "newName": "y"}},
		}
	}
	build := func(kustomization map[string]any) string {
		fs := filesys.MakeFsInMemory()
		for name, content := range map[string][]byte{"/kustomization.yaml": canonical(kustomization), "/a.yaml": []byte(workload)} {
			if err := fs.WriteFile(name, content); err != nil {
				t.Fatal(err)
			}
		}
		built, err := runKustomize(t.Context(), fs, "/")
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	now := value()
	renewed(now)
	if now["commonLabels"] != nil || now["imageTags"] != nil {
		t.Errorf("deprecated fields are left: %v", now)
	}
	if diff := cmp.Diff(build(value()), build(now)); diff != "" {
		t.Errorf("-deprecated +renewed:\n%s", diff)
	}
}
