package load

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/render"
)

// dumbJSON writes JSON in the simplest way, to check the hash independently: keys sorted, no
// spaces, the characters that are special to HTML escaped.
func dumbJSON(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case string:
		return dumbString(value)
	case []any:
		var items []string
		for _, item := range value {
			items = append(items, dumbJSON(item))
		}
		return "[" + strings.Join(items, ",") + "]"
	case map[string]any:
		var fields []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			fields = append(fields, dumbString(key)+":"+dumbJSON(value[key]))
		}
		return "{" + strings.Join(fields, ",") + "}"
	default:
		return fmt.Sprintf("unexpected %T", value)
	}
}

func dumbString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func dumbHash(object map[string]any) string {
	rest := maps.Clone(object)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(rest, key)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(dumbJSON(rest))))
}

// TestSpecHashGolden pins hashes that were computed outside of Go, with sha256sum
// over the JSON in the comment.
func TestSpecHashGolden(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"EmptyConfig": { // {"spec":{"agentInstallNamespace":"open-cluster-management-agent-addon"}}
			"apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: a, namespace: b}\nspec: {}\n",
			goldenEmptyConfig,
		},
		"Escapes": { // {"spec":{"agentInstallNamespace":"","customizedVariables":[{"name":"A","value":"\u003ca \u0026 b\u003e"}]}}
			"apiVersion: addon.open-cluster-management.io/v1beta1\nkind: AddOnDeploymentConfig\nmetadata: {name: a, namespace: b}\nspec: {customizedVariables: [{value: <a & b>, name: A}], agentInstallNamespace: ''}\n",
			goldenEscapes,
		},
		"ConfigMap": { // {"data":{"a":"1"}}
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {a: '1'}\n",
			goldenConfigMap,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := render.SpecHash(normalised(t, c.in))
			if err != nil || got != c.want {
				t.Errorf("SpecHash = %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// TestSpecHashOfStoredObjects pins hashes of objects as a kube-apiserver 1.36 with OCM's CRDs
// returned them after a create: nulls, empty structs, numbers of every kind, and metadata of
// embedded manifests that the server rewrites.
func TestSpecHashOfStoredObjects(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"AddOnTemplate": {in: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello}
spec:
  addonName: hello
  registration: null
  agentSpec:
    deleteOption: {}
    executor: null
    manifestConfigs:
    - resourceIdentifier: {group: apps, resource: deployments, name: d, namespace: ns}
      feedbackRules: [{type: WellKnownStatus}, {type: JSONPaths, jsonPaths: [{name: a, path: .b}]}]
      updateStrategy: {serverSideApply: {ignoreFields: [{jsonPaths: [.data]}]}}
    - resourceIdentifier: {resource: configmaps, name: c}
    workload:
      manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: d, namespace: ns, creationTimestamp: null, labels: {}, annotations: null}
        spec: {replicas: 1, strategy: {}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, creationTimestamp: null}, spec: {containers: [{name: a, image: 'x:{{A}}', resources: {}, env: [{name: E, value: "<&>é"}]}], tolerations: null}}}
        status: {}
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: null}
      - {apiVersion: example.com/v1, kind: Thing, metadata: {name: c}, spec: {f: 1.5, ii: 9007199254740993, z: 1.0, big: 1e21, b: true, nn: null}}
`, want: "2a216eb29bf96034b775b8abc56c8c00543cd5f804abc5f48022e66f6a0895ed"},
		"AddOnDeploymentConfig": {in: `apiVersion: addon.open-cluster-management.io/v1beta1
kind: AddOnDeploymentConfig
metadata: {name: a, namespace: default}
spec:
  customizedVariables: [{name: A, value: b}]
  nodePlacement: {}
  proxyConfig: {}
  registries: []
  resourceRequirements: [{containerID: '*:*:*', resources: {limits: {cpu: 1, memory: 64Mi}}}]
`, want: "427ce8a909e1f8af79272dc1942b62364fab9638793985bcb5e63640c5969abf"},
		"ConfigMap": {in: `apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: default}
data: {a: b, c: null}
immutable: null
`, want: "20af56e397911310177101ad881395355e2ec49d66a7378c8b88dd870cbbb956"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := render.SpecHash(normalised(t, c.in)); err != nil || got != c.want {
				t.Errorf("SpecHash = %s, %v; the stored object has %s", got, err, c.want)
			}
		})
	}
}

func TestSpecHashOfNothing(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "status": map[string]any{}}}
	if _, err := render.SpecHash(object); !errors.Is(err, render.ErrNothingToHash) {
		t.Errorf("got %v, want ErrNothingToHash, as OCM fails", err)
	}
}

// configs draws AddOnDeploymentConfigs in either version, with fields omitted,
// null or set.
func configs() *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		spec := map[string]any{}
		if rapid.Bool().Draw(t, "namespace") {
			spec["agentInstallNamespace"] = rapid.SampledFrom([]any{"", "a", nil}).Draw(t, "agentInstallNamespace")
		}
		var variables []any
		for i := range rapid.IntRange(0, 3).Draw(t, "variables") {
			variables = append(variables, map[string]any{"name": fmt.Sprintf("V%d", i), "value": rapid.String().Draw(t, "value")})
		}
		if len(variables) > 0 || rapid.Bool().Draw(t, "empty list") {
			spec["customizedVariables"] = variables
		}
		if rapid.Bool().Draw(t, "proxy") {
			spec["proxyConfig"] = rapid.SampledFrom([]any{map[string]any{}, map[string]any{"httpProxy": "http://x", "noProxy": nil}, nil}).Draw(t, "proxyConfig")
		}
		return map[string]any{
			"apiVersion": addonGroup + "/" + rapid.SampledFrom([]string{storageVersion, betaVersion}).Draw(t, "version"),
			"kind":       configKind, "metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": spec,
		}
	})
}

func TestSpecHashProperties(t *testing.T) {
	schemas := schemasForTest(t)
	hash := func(t *rapid.T, u *unstructured.Unstructured) string {
		h, err := render.SpecHash(u)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	rapid.Check(t, func(t *rapid.T) {
		declared := &unstructured.Unstructured{Object: configs().Draw(t, "config")}
		once, _ := schemas.normalise(declared, roleConfig)
		twice, _ := schemas.normalise(once, roleConfig)
		want := dumbHash(once.Object)
		if got := hash(t, once); got != want {
			t.Fatalf("SpecHash = %s, the dumb hash is %s", got, want)
		}
		if got := hash(t, twice); got != want {
			t.Fatalf("normalised twice the hash is %s, once %s", got, want)
		}
		other := declared.DeepCopy()
		other.SetAPIVersion(addonGroup + "/" + map[string]string{storageVersion: betaVersion, betaVersion: storageVersion}[declared.GroupVersionKind().Version])
		translated, _ := schemas.normalise(other, roleConfig)
		if got := hash(t, translated); got != want {
			t.Fatalf("in the other version the hash is %s, not %s", got, want)
		}
	})
}

const (
	goldenEmptyConfig = "d18a79b7b556192a80b3023546cd8346114f2dec27fb39707e6193a0130e4b39"
	goldenEscapes     = "16dd3f95b1e33a3c917424e8e6b6f1558e58a6c9ca3a258f56f574ff473009f6"
	goldenConfigMap   = "3218bc4f76f8d297f537dd0309b887b2612aeb5376284f223632cec4ad60e6af"
)
