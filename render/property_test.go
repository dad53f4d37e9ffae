package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/render/chart"
)

// drawText is a string with variables in it.
func drawText(t *rapid.T, label string) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"{{CLUSTER_NAME}}", "{{A}}", "{{B}}", "{{ A }}", "x", "cluster1", "-", "\"", "<", "{", "}}", "é", "\\u0022",
	}), 0, 5).Draw(t, label)
	return strings.Join(parts, "")
}

func drawName(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "{{CLUSTER_NAME}}", "a-{{CLUSTER_NAME}}", "cluster1"}).Draw(t, label)
}

// drawContent is an add-on with a few manifests of all kinds.
func drawContent(t *rapid.T) Content {
	var manifests []any
	for range rapid.IntRange(1, 5).Draw(t, "manifests") {
		metadata := map[string]any{"name": drawName(t, "name"), "namespace": drawName(t, "namespace")}
		if !rapid.Bool().Draw(t, "workload") {
			manifests = append(manifests, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
				"data": map[string]any{"x": drawText(t, "data"), "y": drawText(t, "data")},
			})
			continue
		}
		k := rapid.SampledFrom(workloadKinds).Draw(t, "kind")
		pod := map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": drawName(t, "container"), "image": "quay.io/" + drawText(t, "image")},
		}}}}
		if k.name == "CronJob" {
			pod = map[string]any{"jobTemplate": map[string]any{"spec": pod}}
		}
		manifests = append(manifests, map[string]any{
			"apiVersion": strings.TrimPrefix(k.group+"/v1", "/"), "kind": k.name, "metadata": metadata, "spec": pod,
		})
	}
	agent := map[string]any{
		"agentInstallNamespace": rapid.SampledFrom([]string{"", "moved"}).Draw(t, "install namespace"),
		"customizedVariables": []any{
			map[string]any{"name": "A", "value": drawText(t, "A")}, map[string]any{"name": "B", "value": drawText(t, "B")},
		},
	}
	if rapid.Bool().Draw(t, "extras") {
		agent["registries"] = []any{map[string]any{"source": "quay.io/cluster1", "mirror": "m"}}
		agent["resourceRequirements"] = []any{map[string]any{"containerID": "*:*cluster1*:a", "resources": map[string]any{}}}
		agent["resourceRequirements"] = []any{map[string]any{"containerID": "*:.*cluster1:.*", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}}
		agent["proxyConfig"] = map[string]any{"caBundle": "Y2E="}
	}
	configs := []any{}
	for range rapid.IntRange(0, 2).Draw(t, "configs") {
		configs = append(configs, map[string]any{
			"resourceIdentifier": map[string]any{
				"group": "apps", "resource": "deployments",
				"namespace": rapid.SampledFrom([]string{"*", "a", "{{CLUSTER_NAME}}"}).Draw(t, "rule namespace"),
				"name":      rapid.SampledFrom([]string{"*", "a*", "*cluster1", "a-{{CLUSTER_NAME}}"}).Draw(t, "rule name"),
			},
			"updateStrategy": map[string]any{"type": "CreateOnly"},
		})
	}
	return Content{
		AddOn: "hello",
		Templates: []Template{{Name: "v1", SpecHash: "h1", Spec: map[string]any{
			"agentSpec":    map[string]any{"workload": map[string]any{"manifests": manifests}, "manifestConfigs": configs},
			"registration": []any{map[string]any{"type": "KubeClient"}},
		}}},
		Configs:  []Config{{ConfigReference: agentReference("a"), SpecHash: "h2", Body: map[string]any{"spec": agent}}},
		Defaults: []ConfigReference{agentReference("a"), templateReference("v1")},
	}
}

// everything returns all that a cluster gets, as text.
func everything(t *rapid.T, r Rendered) string {
	works, remove, err := r.Works(Owner{Name: "hello", Namespace: "ns", Revision: "r"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent([]any{works, remove, r.Namespace, r.Digest, r.ConfigReferences}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A renderer gives a cluster the same in whatever order clusters come, and the digest covers
// everything that the cluster gets.
func TestRendering_IsTheSameInAnyOrderAndCoveredByItsDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := drawContent(t)
		renderer := func() *Renderer {
			r, err := NewRenderer(content, chart.InProcess{})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		reused, byDigest := renderer(), map[string]string{}
		for _, name := range rapid.Permutation([]string{"cluster1", "a", "x\"y", "cluster2"}).Draw(t, "clusters") {
			c := Cluster{Name: name}
			got, gotErr := reused.Render(c)
			want, wantErr := renderer().Render(c)
			if diff := cmp.Diff(fmt.Sprint(wantErr), fmt.Sprint(gotErr)); diff != "" {
				t.Fatalf("%s: (-fresh +reused):\n%s", name, diff)
			}
			if gotErr != nil {
				continue
			}
			if diff := cmp.Diff(everything(t, want), everything(t, got)); diff != "" {
				t.Fatalf("%s (-fresh +reused):\n%s", name, diff)
			}
			if got.Digest != dumbDigest(t, got) {
				t.Fatalf("%s: digest %s, the dumb one %s", name, got.Digest, dumbDigest(t, got))
			}
			settings := strings.Join(objectTexts(t, got), "\n") + encodedOptions(t, got)
			if before, ok := byDigest[got.Digest]; ok && before != settings {
				t.Fatalf("one digest, two contents:\n%s\n%s", before, settings)
			}
			byDigest[got.Digest] = settings
		}
	})
}

// objectTexts are the cluster's objects as JSON.
func objectTexts(t *rapid.T, r Rendered) []string {
	objects, err := r.Objects()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, 0, len(objects))
	for _, o := range objects {
		text, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

func encodedOptions(t *rapid.T, r Rendered) string {
	hashed := []any{r.rendering.options, r.rendering.deleteOption, r.rendering.executor}
	if len(r.Registration) > 0 {
		hashed = append(hashed, r.Registration)
		objects, err := r.Objects()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetNamespace() != "" }) {
			hashed = append(hashed, r.Namespace)
		}
	}
	text, err := json.Marshal(hashed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dumbDigest computes the digest by its definition from the finished objects.
func dumbDigest(t *rapid.T, r Rendered) string {
	all := "v1\x00"
	for _, text := range objectTexts(t, r) {
		all += sha256Text(text)
	}
	return fmt.Sprintf("v1:sha256:%x", sha256Text(all+sha256Text(encodedOptions(t, r))))
}

// Works of a cluster that were written and read back are not written again, and no part is left
// over, whatever the content was before.
func TestWorksAreWrittenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var existing []*workv1.ManifestWork
		for _, content := range []Content{drawContent(t), drawContent(t)} {
			r, err := NewRenderer(content, chart.InProcess{})
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := r.Render(Cluster{Name: "cluster1"})
			if err != nil {
				t.Skip("cannot be rendered")
			}
			desired, remove, err := rendered.Works(Owner{Name: "hello", Namespace: "cluster1", UID: "u", Revision: "r"}, existing)
			if err != nil {
				t.Fatal(err)
			}
			stored := make([]*workv1.ManifestWork, 0, len(desired))
			for _, w := range desired {
				stored = append(stored, w.DeepCopy())
				if rapid.Bool().Draw(t, "abridged") {
					NewAbridger().Abridge(stored[len(stored)-1])
				}
			}
			again, removeAgain, err := rendered.Works(Owner{Name: "hello", Namespace: "cluster1", UID: "u", Revision: "r"}, stored)
			if err != nil || len(removeAgain) > 0 || len(again) != len(stored) {
				t.Fatalf("second pass: %d works, %v, error %v", len(again), removeAgain, err)
			}
			for i := range again {
				if at := slices.IndexFunc(stored, func(w *workv1.ManifestWork) bool { return w.Name == again[i].Name }); Compare(again[i], stored[at]) != Same {
					t.Fatalf("%s is written twice", again[i].Name)
				}
			}
			if len(remove)+len(desired) < len(existing) {
				t.Fatalf("%d works before, %d after, %d removed", len(existing), len(desired), len(remove))
			}
			existing = stored
		}
	})
}

func TestRendererIsSafeForConcurrentUse(t *testing.T) {
	r := newRenderer(t, assignments(t))
	own := agentOf(t, "own", "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: own}]}")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 20 {
				cluster := Cluster{Name: fmt.Sprintf("c%d-%d", i, n), ImageRegistries: fmt.Sprintf(`{"registries":[{"source":"%d","mirror":"m"}]}`, n)}
				if n%2 == 0 {
					cluster.Configs = []Config{own}
				}
				if _, err := r.Render(cluster); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
