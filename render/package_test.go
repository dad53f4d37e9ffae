package render

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// charted is an add-on of a chart with one template, and values that it may read.
func charted(text string) Content {
	files := []PackageFile{
		{Path: "Chart.yaml", Text: "apiVersion: v2\nname: hello-chart\nversion: 0.1.0\n"},
		{Path: "templates/settings.yaml", Text: text},
		{Path: "values.yaml", Text: "logLevel: 0\n"},
	}
	return Content{AddOn: "hello", Package: &Package{Name: "hello", Engine: EngineHelm, Files: files}}
}

// TestPackageSharesRenderings counts on the renderings being one and the same.
func TestPackageSharesRenderings(t *testing.T) {
	const named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: hello}\ndata: {cluster: a-{{ .Values.clusterName }}, level: \"{{ .Values.logLevel }}\"}\n"
	edited := func(from, to string) string { return strings.Replace(named, from, to, 1) }
	byVersion := edited("{{ .Values.logLevel }}", "{{ .Capabilities.KubeVersion.Minor }}")
	cases := map[string]struct {
		chart  string
		a, b   Cluster
		shared bool
		equal  bool
	}{
		"EqualInputs":        {named, Cluster{Name: "a1"}, Cluster{Name: "b1"}, true, false},
		"OtherVersionUnread": {named, Cluster{Name: "a1", KubeVersion: "v1.32.0"}, Cluster{Name: "b1", KubeVersion: "v1.33.0"}, true, false},
		"OtherVersionRead": {
			byVersion,
			Cluster{Name: "a1", KubeVersion: "v1.32.0"},
			Cluster{Name: "b1", KubeVersion: "v1.33.0"},
			false, false,
		},
		"SameVersionRead": {
			byVersion,
			Cluster{Name: "a1", KubeVersion: "v1.33.0"},
			Cluster{Name: "b1", KubeVersion: "v1.33.0"},
			true, false,
		},
		"OtherValues": {named, Cluster{Name: "a1", Values: `{"logLevel":9}`}, Cluster{Name: "b1"}, false, false},
		"DecidedByName": {
			edited("a-{{ .Values.clusterName }}", "{{ sha256sum .Values.clusterName }}"),
			Cluster{Name: "a1"},
			Cluster{Name: "b1"},
			false, false,
		},
		"NameOfDigits": {named, Cluster{Name: "a1"}, Cluster{Name: "123"}, false, false},
		"NoNameInIt": {
			edited("a-{{ .Values.clusterName }}", "all"),
			Cluster{Name: "a1"},
			Cluster{Name: "123"},
			true, true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRenderer(t, charted(c.chart))
			render := func(cluster Cluster) Rendered {
				rendered, err := r.Render(cluster)
				if err != nil {
					t.Fatal(err)
				}
				if digest, err := r.Digest(cluster); err != nil || digest != rendered.Digest {
					t.Errorf("Digest says %s, %v; want %s", digest, err, rendered.Digest)
				}
				return rendered
			}
			a, b := render(c.a), render(c.b)
			if got := a.shared == b.shared; got != c.shared {
				t.Errorf("shared is %v, want %v", got, c.shared)
			}
			if got := a.Digest == b.Digest; got != c.equal {
				t.Errorf("the digests are equal: %v, want %v", got, c.equal)
			}
		})
	}
}

// TestProperty_PackageSharedIsAlone: whatever a cluster is called, what it gets of a
// shared rendering is what it would get of one of its own.
func TestProperty_PackageSharedIsAlone(t *testing.T) {
	r := newRenderer(t, charted(`apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Values.clusterName }}-settings", labels: {cluster: {{ .Values.clusterName }}-k}}
data:
  plain: x{{ .Values.clusterName }}
  quoted: {{ quote .Values.clusterName }}
  after: "{{ .Values.clusterName }}n"
  url: {{ printf "https://%s.example.com" .Values.clusterName }}
  nested: |
    {{- toYaml (dict "cluster" .Values.clusterName "list" (list .Values.clusterName)) | nindent 4 }}
`))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`),
			rapid.SampledFrom([]string{"y", "n", "on", "off", "o", "no", "null", "true", "tru", "1e3", "0x1f", "2020-01-01", "123", "e", "es"}),
		).Draw(t, "name")
		c := Cluster{Name: name, KubeVersion: "v1.33.0"}
		shared, err := r.Render(c)
		if err != nil {
			t.Fatal(err)
		}
		a := r.assignmentFor(c)
		alone, err := r.renderAlone(a, c.facts(a), name)
		if err != nil {
			t.Fatal(err)
		}
		if want := alone.rendered(c, []byte(name)).Digest; shared.Digest != want {
			t.Fatalf("shared gives %s, alone gives %s", shared.Digest, want)
		}
	})
}

// TestBuiltInValuesAreThoseGiven: what loading refuses, since it would be replaced on every
// cluster, is what every cluster is given.
func TestBuiltInValuesAreThoseGiven(t *testing.T) {
	for _, registers := range []bool{true, false} {
		b := builder{template: &parsedTemplate{registers: registers}, agent: &agentConfig{}}
		given := slices.Sorted(maps.Keys(b.builtIns("")))
		if diff := cmp.Diff(slices.Sorted(slices.Values(BuiltInValues(registers))), given); diff != "" {
			t.Errorf("built-in values (-refused +given):\n%s", diff)
		}
	}
}
