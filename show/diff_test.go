package show

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects reads YAML documents.
func objects(t *testing.T, documents ...string) []*unstructured.Unstructured {
	t.Helper()
	out := make([]*unstructured.Unstructured, 0, len(documents))
	for _, text := range documents {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func TestDiff(t *testing.T) {
	const (
		secret = "{apiVersion: v1, kind: Secret, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: APPLIED}, name: s, namespace: a}, data: "
		config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: a}, data: "
	)
	before := objects(t, config+"{x: '1', z: '2'}}", strings.Replace(secret, "APPLIED", "b25l", 1)+"{same: b25l, other: b25l}}", "{apiVersion: v1, kind: Namespace, metadata: {name: old}}", "{apiVersion: v1, kind: Namespace, metadata: {name: kept}}")
	after := objects(t, "{apiVersion: v1, kind: Namespace, metadata: {name: kept}}", secret+"{same: b25l, other: dHdv, more: dHdv}}", config+"{x: '1', z: '3'}}")
	want := `--- v1 Secret a/s
+++ v1 Secret a/s
@@ -1,6 +1,7 @@
 apiVersion: v1
 data:
-  other: '*** (before)'
+  more: '***'
+  other: '*** (after)'
   same: '***'
 kind: Secret
 metadata:
--- v1 ConfigMap a/c
+++ v1 ConfigMap a/c
@@ -1,7 +1,7 @@
 apiVersion: v1
 data:
   x: "1"
-  z: "2"
+  z: "3"
 kind: ConfigMap
 metadata:
   name: c
--- v1 Namespace old
+++ (absent)
@@ -1,4 +0,0 @@
-apiVersion: v1
-kind: Namespace
-metadata:
-  name: old
`
	got, err := Style{}.Diff(before, after)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestDiff_ShowsEveryCharacter: an approver decides by what is seen.
func TestDiff_ShowsEveryCharacter(t *testing.T) {
	config := func(value string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"x": value}}}}
	}
	got, err := Style{}.Diff(config("a"), config("\u202eb\u200bc\u2066\x1b[2J"))
	if err != nil || !strings.Contains(got, `\u202eb`) || strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("%v: %q", err, got)
	}
}
