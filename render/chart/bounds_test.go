package chart

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// TestAliasesAreBounded: YAML of a megabyte that expands to gigabytes is refused in every file
// of a chart. A text of the same size without aliases is accepted.
func TestAliasesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	bomb := "a: &a " + long + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n"
	for name, from := range map[string]tree{
		"values":   minimal(settings("x")).with("values.yaml", bomb),
		"chart":    minimal(settings("x")).with("Chart.yaml", minimal("")["Chart.yaml"]+"annotations: {"+bomb+"}"),
		"rendered": minimal(settings("x") + "---\n" + bomb),
		"CRD":      minimal(settings("x")).with("crds/a.yaml", bomb),
	} {
		c, err := Load(from.files())
		if err == nil {
			_, err = c.Render(inputOfCluster1())
		}
		if err == nil || !strings.Contains(err.Error(), "aliases") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadValues([]byte(bomb)); err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("value file: %v", err)
	}
	if got := it(t, minimal("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &a hello}\ndata: {it: *a, b: "+long+"}\n"+
		"# "+strings.Repeat("*", 1000)+"\n"), inputOfCluster1()); got != "hello" {
		t.Errorf("an alias renders %v", got)
	}
}

// TestDocumentsAreBounded: documents larger than the hub's limits are refused before they are
// read.
func TestDocumentsAreBounded(t *testing.T) {
	for template, says := range map[string]string{
		`{{ repeat 1000000 "- 1\n" }}`: "renders a document of more than 2 MiB",
		"{{ $s := repeat 1000000 \"x\" }}{{ range until 34 }}\n---\n#{{ $s }}{{ end }}": "renders more than 32 MiB of manifests",
	} {
		from := minimal(settings("x") + "---\n" + template)
		if _, err := loaded(t, from).Render(inputOfCluster1()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// TestBoundsAreWide renders what charts commonly do with expensive functions.
func TestBoundsAreWide(t *testing.T) {
	for value, want := range map[string]any{
		`"{{ $t := repeat 3000 "some words of a line\n" }}{{ regexSplit "\n" $t -1 | len }}"`:                 "3001",
		`"{{ $t := repeat 300 "a line  \n" }}{{ regexReplaceAll "\\s+" $t "-" | len }}"`:                      "2100",
		`"{{ range until 200 }}{{ $_ := tpl "{{ .Release.Name }}" $ }}{{ end }}x"`:                            "x",
		`"{{ range until 1000 }}{{ $_ := regexReplaceAll "[^a-z0-9-]+" "Some_Name.of-what" "-" }}{{ end }}x"`: "x",
		`"{{ regexMatch "(b*)*c" (repeat 1000000 "b") }}"`:                                                    "false",
	} {
		if got := it(t, minimal(settings(value)), inputOfCluster1()); got != want {
			t.Errorf("%s: got %v, want %v", value, got, want)
		}
	}
}

// TestErrorsAreTheChartsOwn: an error of a chart is shown in the chart's words.
func TestErrorsAreTheChartsOwn(t *testing.T) {
	for _, value := range []string{
		`{{ lt .Values "a" }}`, `{{ .Values.greeting.x.y | eq 1 }}`, `{{ index .Values.clusterName "a" }}`,
		`{{ len 3 }}`, `{{ template "none" . }}`, `{{ template "none" }}`, `{{ include "none" $ }}`, `{{ .Values.greeting | tpl "{{ .x }}" }}`, `{{ .Values.none.YAML }}`, `{{ .Capabilities.APIVersions.Has }}`, `{{ "a" | lt 1 }}`,
	} {
		if _, err := loaded(t, minimal(settings(value))).Render(inputOfCluster1()); err == nil || strings.Contains(err.Error(), ownPrefix) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestSchemaErrorsAreInOrder: the order of the errors is always the same, because the text is
// posted to the commit.
func TestSchemaErrorsAreInOrder(t *testing.T) {
	from := minimal(settings("x")).
		with("values.yaml", "e: 1\na: 1\nd: 1\nb: 1\nc: 1\nz: x\nw: x\nx: x\n").
		with("values.schema.json", `{"additionalProperties": false, "properties": {"z": {"type": "number"}, "w": {"type": "number"},`+
			`"x": {"type": "number"}, "clusterName": {}, "addonInstallNamespace": {}}}`)
	const want = `the values do not meet the chart's schema: - at '': additional properties 'a', 'b', 'c', 'd', 'e' not allowed ` +
		`- at '/w': got string, want number - at '/x': got string, want number - at '/z': got string, want number`
	for range 20 {
		_, err := loaded(t, from).Render(inputOfCluster1())
		if failed, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(failed.Message, want) {
			t.Fatalf("got  %v\nwant %s", err, want)
		}
	}
}

// TestHelmVersionIsFixed: .Capabilities.HelmVersion does not depend on the build.
func TestHelmVersionIsFixed(t *testing.T) {
	const value = `"{{ with .Capabilities.HelmVersion }}{{ .Version }}[{{ .GoVersion }}{{ .KubeClientVersion }}{{ .GitCommit }}{{ .GitTreeState }}]{{ end }}"`
	from := minimal(settings(value))
	if got := it(t, from, inputOfCluster1()); got != "v4.2[]" {
		t.Errorf("got %v", got)
	}
	verified(t, from, inputOfCluster1())
}

// TestFunctionsThatReachOutsideTheChartAreRefused: these functions, and functions whose result varies,
// are refused with a hint when they are called.
func TestFunctionsThatReachOutsideTheChartAreRefused(t *testing.T) {
	cases := map[string]struct{ value, hint string }{
		"lookup":         {`{{ lookup "v1" "Secret" "a" "b" }}`, lookupHint},
		"getHostByName":  {`{{ getHostByName "example.com" }}`, dnsHint},
		"randAlphaNum":   {`{{ randAlphaNum 8 }}`, randomHint},
		"uuidv4":         {`{{ uuidv4 }}`, randomHint},
		"shuffle":        {`{{ shuffle "abc" }}`, randomHint},
		"now":            {`{{ now }}`, clockHint},
		"date":           {`{{ date "2006" 0 }}`, clockHint},
		"genCA":          {`{{ (genCA "a" 1).Cert }}`, cryptoHint},
		"genPrivateKey":  {`{{ genPrivateKey "rsa" }}`, cryptoHint},
		"htpasswd":       {`{{ htpasswd "a" "b" }}`, cryptoHint},
		"derivePassword": {`{{ derivePassword 1 "long" "a" "b" "c" }}`, cryptoHint},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := loaded(t, minimal(settings(c.value))).Render(inputOfCluster1())
			failed, ok := errors.AsType[*Error](err)
			if !ok || failed.Message != name+" is not available in a package" || failed.Hint != c.hint || failed.Line != 5 {
				t.Errorf("got %v", err)
			}
			if got := it(t, minimal(settings(`hi{{ if .Values.missing }}`+c.value+`{{ end }}`)), inputOfCluster1()); got != "hi" {
				t.Errorf("what is not called renders %v", got)
			}
		})
	}
	for _, name := range []string{"env", "expandenv"} {
		if _, err := loaded(t, minimal(settings(`{{ `+name+` "HOME" }}`))).Render(inputOfCluster1()); err == nil {
			t.Errorf("%s is a function", name)
		}
	}
}

// TestUnordered_FilesOfOneName: Helm keeps one of two files of the same name at random.
func TestUnordered_FilesOfOneName(t *testing.T) {
	for value, fine := range map[string]bool{
		`{{ .Files.AsConfig | quote }}`:                      false,
		`{{ (.Files.Glob "**/big.txt").AsSecrets | quote }}`: false,
		`{{ (.Files.Glob "more/*").AsConfig | quote }}`:      true,
	} {
		from := minimal(settings(value)).with("big.txt", "a").with("more/big.txt", "b").with("few/big.txt", "c")
		if err := loaded(t, from).Verify(inputOfCluster1()); (err == nil) != fine {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestUnordered: a rendering that depends on the order of a map is always refused.
func TestUnordered(t *testing.T) {
	const dict = `(dict "a" 1 "b" 2 "c" 3)`
	for value, fine := range map[string]bool{
		`{{ keys ` + dict + ` | join "-" }}`:                    false,
		`"{{ values ` + dict + ` | join "-" }}"`:                false,
		`{{ keys ` + dict + ` | sortAlpha | join "-" }}`:        true,
		`"{{ len (keys ` + dict + `) }}"`:                       true,
		`"{{ range $k, $v := ` + dict + ` }}{{ $k }}{{ end }}"`: true,
	} {
		err := loaded(t, minimal(settings(value))).Verify(inputOfCluster1())
		if (err == nil) != fine {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// FuzzReadValues: a file of values is refused with an error of the chart, or read as an object without other types
// than JSON has.
func FuzzReadValues(f *testing.F) {
	f.Add([]byte("a: &x {b: 1}\nc: *x\n"))
	f.Add([]byte("- 1\n"))
	f.Add([]byte("a: !!binary aGk=\n? [1]\n: 2\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		values, err := ReadValues(text)
		if failed := (*Error)(nil); err != nil && !errors.As(err, &failed) {
			t.Errorf("%q: %v", text, err)
		}
		if _, encoded := json.Marshal(values); err == nil && encoded != nil {
			t.Errorf("%q is read as %v: %v", text, values, encoded)
		}
	})
}

// FuzzManifests: what templates render is read as objects of plain JSON, without hooks and lists in them, and twice if it
// is there twice. An error names the file, and its text is bounded.
func FuzzManifests(f *testing.F) {
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/resource-policy: keep}}\ndata: {n: \"1\"}\n---\nkind: Secret\n")
	f.Add("kind: List\nitems: [{kind: List, items: [{kind: A, n: 9007199254740993, m: 1e3}]}, {}, null]\n")
	f.Add("kind: Job\nmetadata: {annotations: {helm.sh/hook: test}}\n---kind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n")
	f.Add("a: *" + strings.Repeat("x", 1000) + "\n")
	f.Add("a: &x [1]\nb: *x\nc: !!binary aGk=\nd: 0x1F\ne: .inf\n")
	f.Add("- 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text string) ([]Manifest, error) {
			manifests, err := (&Chart{}).manifests(nil, []Document{{File: "templates/a.yaml", Text: text}}, Input{Namespace: "n"})
			if err == nil {
				return manifests, nil
			}
			failed := asError(err)
			if len(failed.Message) > shownMessage+len("...") || failed.File != "templates/a.yaml" && failed.Message != "renders no object" {
				t.Errorf("%q: %v", text, failed)
			}
			return nil, failed
		}
		manifests, err := read(text)
		if err != nil {
			return
		}
		for _, m := range manifests {
			encoded, err := json.Marshal(m.Fields)
			if err != nil {
				t.Fatalf("%q is read as %v: %v", text, m.Fields, err)
			}
			plain := map[string]any{}
			if err := utiljson.Unmarshal(encoded, &plain); err != nil {
				t.Fatalf("%s: %v", encoded, err)
			}
			if diff := cmp.Diff(m.Fields, plain); diff != "" {
				t.Errorf("%q is not plain JSON:\n%s", text, diff)
			}
			alone, err := Document{File: m.File}.objects(plain)
			if diff := cmp.Diff([]Manifest{m}, alone); err != nil || diff != "" {
				t.Errorf("%s is no single object: %v\n%s", encoded, err, diff)
			}
		}
		twice, err := read(text + "\n---\n" + text)
		if diff := cmp.Diff(slices.Concat(manifests, manifests), twice); err != nil || diff != "" {
			t.Errorf("%q, there twice: %v\n%s", text, err, diff)
		}
	})
}
