package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ofManifests renders one text as a folder of manifests: the field data.it.
func ofManifests(t *testing.T, value string, in Input) (any, error) {
	t.Helper()
	c, err := LoadManifests([]File{{Path: "map.yaml", Content: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  it: " + value + "\n")}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Render(in)
	if err != nil {
		return nil, err
	}
	fields, _ := out[0].Fields["data"].(map[string]any)
	return fields["it"], nil
}

// TestManifestsMayAskForWhatIsMissing: OCM's framework prints <no value> for a missing value,
// which is always a mistake; its own examples test for it with a condition.
func TestManifestsMayAskForWhatIsMissing(t *testing.T) {
	cases := map[string]struct{ text, want, refusal string }{
		"If":            {`{{ if .Missing }}a{{ else }}b{{ end }}`, "b", ""},
		"Or":            {`{{ if or .Missing (and .There .Missing) }}a{{ else }}b{{ end }}`, "b", ""},
		"With":          {`{{ with .Missing }}a{{ else }}b{{ end }}`, "b", ""},
		"Range":         {`{{ range $i, $v := .Missing }}a{{ else }}b{{ end }}`, "b", ""},
		"Nested":        {`{{ if .table.missing }}a{{ else }}b{{ end }}`, "b", ""},
		"Default":       {`{{ .Missing | default "b" }}{{ default "c" .Missing }}`, "bc", ""},
		"Ternary":       {`{{ ternary "a" "b" (empty .Missing) }}`, "a", ""},
		"Variable":      {`{{ $v := .Missing }}{{ if $v }}a{{ else }}b{{ end }}`, "b", ""},
		"Given":         {`{{ .There }}{{ .table.a }}{{ $.There }}`, "tht", ""},
		"Printed":       {`a{{ .Missing }}`, "", "no value for .Missing"},
		"PrintedInside": {`{{ if .There }}{{ .table.missing }}{{ end }}`, "", "no value for .table.missing"},
		"OfRoot":        {`{{ $.Missing }}`, "", "no value for $.Missing"},
		"OfVariable":    {`{{ $v := .Missing }}a{{ $v }}`, "", "no value for $v"},
		"KeptChanged":   {`{{ $v := quote .Missing }}a{{ $v }}`, "", "no value for .Missing"},
		"Piped":         {`{{ .Missing | quote }}`, "", "no value for .Missing"},
		"Argument":      {`{{ quote .Missing }}`, "", "no value for .Missing"},
		"Parenthesised": {`{{ printf "%v" (upper .Missing) }}`, "", "no value for .Missing"},
		"Required":      {`{{ required "say it" .Missing }}`, "", "say it"},
	}
	in := Input{Release: "hello", Namespace: "agents", Values: map[string]any{"There": "t", "table": map[string]any{"a": "h"}}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ofManifests(t, c.text, in)
			switch {
			case c.refusal != "":
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("got %v, %v; want an error of %q", got, err, c.refusal)
				}
			case err != nil || got != c.want:
				t.Errorf("got %v, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestManifestsNameFieldsAsTheFramework: in the framework, tolerations and resource
// requirements are Go structs, whose fields templates name; here they are also objects.
func TestManifestsNameFieldsAsTheFramework(t *testing.T) {
	in := Input{Release: "hello", Namespace: "agents", Values: map[string]any{
		"Tolerations": []any{
			map[string]any{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(30)},
			map[string]any{"Key": "annotated", "Value": "v"},
		},
		"ResourceRequirements": []any{map[string]any{
			"containerIDRegex": "^deployments:.+$",
			"resources":        map[string]any{"limits": map[string]any{"memory": "1Gi"}},
			"resourcesRaw":     map[string]any{"requests": map[string]any{"cpu": "1"}},
		}},
	}}
	cases := map[string]struct{ text, want string }{
		"Fields": {
			`"{{ range .Tolerations }}{{ .Key }},{{ .Operator }},{{ .Value }},{{ .Effect }},{{ if .TolerationSeconds }}{{ .TolerationSeconds }}{{ end }};{{ end }}"`,
			"k,Exists,,NoExecute,30;annotated,,v,,;",
		},
		"Keys": {
			`'{{ (index .Tolerations 0).key }} {{ toJson (index .Tolerations 0) }}'`,
			`k {"effect":"NoExecute","key":"k","operator":"Exists","tolerationSeconds":30}`,
		},
		"Requirements": {
			`'{{ range .ResourceRequirements }}{{ .ContainerIDRegex }} {{ toJson .Resources.Limits }} {{ if .Resources.Requests }}a{{ end }}{{ toJson .ResourcesRaw.Requests }}{{ end }}'`,
			`^deployments:.+$ {"memory":"1Gi"} {"cpu":"1"}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ofManifests(t, c.text, in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestManifestBesideAPartialOfItsName: a partial with the name of a manifest does not hide it.
func TestManifestBesideAPartialOfItsName(t *testing.T) {
	c, err := LoadManifests([]File{
		{"_it.yaml", []byte(`{{ define "data" }}data: {it: here}{{ end }}`)},
		{"it.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it}\n{{ template \"data\" }}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Render(Input{Release: "hello", Namespace: "agents"})
	if err != nil || len(out) != 1 || out[0].Fields["data"] == nil {
		t.Errorf("the partial takes the place of the manifest: %v, %v", out, err)
	}
}

// TestManifestsAreCalledByTheirPaths: a file of a folder is a template named by its path; it
// gets the data of its caller, or the folder's values if it is rendered itself.
func TestManifestsAreCalledByTheirPaths(t *testing.T) {
	files := []File{
		{"_names.tpl", []byte(`{{ define "b" }}b-{{ . }}{{ end }}`)},
		{"head.tpl", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .name }}}\n{{ define \"a\" }}a{{ end }}")},
		{"sub/_x.yaml", []byte(`x: {{ .missing.value }}`)},
		{"sub/one.yaml", []byte(`{{ template "head.tpl" (dict "name" "one") }}data: {it: {{ template "a" }}-{{ template "b" .There }}-{{ .Template.Name }}-{{ .Template.BasePath }}}` + "\n")},
		{"two.yaml", []byte("{{ include \"sub/one.yaml\" . | replace \"name: one\" \"name: two\" }}")},
	}
	c, err := LoadManifests(files)
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Release: "hello", Namespace: "agents", Values: map[string]any{"There": "t"}}
	out, err := c.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, m := range out {
		fields, _ := m.Fields["data"].(map[string]any)
		got = append(got, m.File, fields["it"])
	}
	if diff := cmp.Diff([]any{"sub/one.yaml", "a-b-t-sub/one.yaml-sub", "two.yaml", "a-b-t-two.yaml-."}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	files[3].Content = []byte("\n\n{{ .There.is.none }}")
	if c, err = LoadManifests(files); err != nil {
		t.Fatal(err)
	}
	const want = `sub/one.yaml:3: executing "sub/one.yaml" at <.There.is.none>: can't evaluate field is in type interface {}`
	if _, err = c.Render(in); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
