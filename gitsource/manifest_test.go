package gitsource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestManifestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"a List without items":      {"apiVersion: v1\nkind: List\n", []string{"InvalidManifest f:1: List: items: the field is missing"}},
		"a List whose items are {}": {"apiVersion: v1\nkind: List\nitems: {}\n", []string{"InvalidManifest f:3: List: items: must be a list, found an object"}},
		"a List whose items are no": {"apiVersion: v1\nkind: List\nitems:\n", []string{"InvalidManifest f:3: List: items: must be a list, found null"}},
		"a List of Items":           {"apiVersion: v1\nkind: List\nItems: []\n", []string{"InvalidManifest f:3: List: Items: unknown field; did you mean items?"}},
		"an empty List":             {"apiVersion: v1\nkind: List\nitems: []\n", nil},
		"a kind that ends in List":  {"apiVersion: v1\nkind: AccessList\nmetadata: {name: a}\n", nil},
		"Metadata":                  {"apiVersion: v1\nkind: K\nMetadata:\n  name: a\n", []string{"InvalidManifest f:3: K: Metadata: unknown field; did you mean metadata?"}},
		"Kind":                      {"apiVersion: v1\nKind: K\nmetadata: {name: a}\n", []string{"InvalidManifest f:2: Kind: unknown field; did you mean kind?"}},
		"APIVersion":                {"kind: K\nAPIVersion: v1\nmetadata: {name: a}\n", []string{"InvalidManifest f:2: K/a: APIVersion: unknown field; did you mean apiVersion?"}},
		"no name":                   {"apiVersion: v1\nkind: K\nmetadata: {}\nMETADATA: {}\n", []string{"InvalidManifest f:1: K: metadata.name: the field is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, mistakes := decodeYAML([]byte(c.in))
			if len(mistakes) > 0 {
				t.Fatal(mistakes)
			}
			_, problems := manifests("f", docs)
			if diff := cmp.Diff(c.want, lines(problems)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
