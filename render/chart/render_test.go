package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRenderIsHelms renders what charts commonly do. Helm's own engine renders every case as
// well (verified), with the same result.
func TestRenderIsHelms(t *testing.T) {
	cases := map[string]struct {
		value string
		want  any
	}{
		"Value":           {`{{ .Values.greeting }}`, "hi"},
		"MissingIsEmpty":  {`"{{ .Values.missing }}."`, "."},
		"DefaultOfNone":   {`{{ .Values.missing | default "x" | quote }}`, "x"},
		"Number":          {`"{{ .Values.replicas }}"`, "1"},
		"Arithmetic":      {`"{{ add 1 .Values.replicas 2 }}"`, "4"},
		"Comparison":      {`{{ if eq (int .Values.replicas) 1 }}one{{ else }}more{{ end }}`, "one"},
		"PipedComparison": {`"{{ .Values.greeting | eq "hi" }}"`, "true"},
		"NilComparison":   {`"{{ eq .Values.missing nil }}{{ ne .Values.greeting "x" }}"`, "truetrue"},
		"Length":          {`"{{ len .Values.greeting }}{{ len (list 1 2) }}{{ index (list "a" "b") 1 }}"`, "22b"},
		"Range":           {`"{{ range $i, $v := list "a" "b" }}{{ if $i }},{{ end }}{{ $v }}{{ end }}"`, "a,b"},
		"RangeBreak":      {`"{{ range until 5 }}{{ if gt . 2 }}{{ break }}{{ end }}{{ . }}{{ end }}"`, "012"},
		"RangeElse":       {`"{{ range .Values.missing }}x{{ else }}none{{ end }}"`, "none"},
		"With":            {`{{ with .Values.greeting }}{{ . | upper }}{{ end }}`, "HI"},
		"Variable":        {`{{ $a := 1 }}{{ $a = 2 }}"{{ $a }}"`, "2"},
		"Include":         {`{{ include "hello.name" (dict "a" "b") }}`, "name-b"},
		"IncludeOfRoot":   {`{{ include "hello.root" . }}`, "hello-hi"},
		"Template":        {`{{ template "hello.name" (dict "a" "c") }}`, "name-c"},
		"Tpl":             {`{{ tpl "{{ .Values.greeting }}-{{ include \"hello.root\" . }}" . }}`, "hi-hello-hi"},
		"TplDefines":      {`{{ tpl "{{ define \"own\" }}x{{ end }}{{ include \"own\" . }}" . }}`, "x"},
		"ToYaml":          {`{{ toYaml (dict "b" 1 "a" (list "x")) | quote }}`, "a:\n- x\nb: 1"},
		"JSON":            {`{{ dict "b" 1 "a" "<" | toJson | squote }}`, `{"a":"\u003c","b":1}`},
		"FromYaml":        {`{{ (fromYaml "a: {b: c}").a.b }}`, "c"},
		"Files":           {`{{ .Files.Get "files/a.txt" | quote }}`, "A"},
		"FilesGlob":       {`"{{ range $n, $_ := .Files.Glob "files/*" }}{{ base $n }} {{ end }}"`, "a.txt b.txt "},
		"FilesAsConfig":   {`{{ (.Files.Glob "files/*").AsConfig | quote }}`, "a.txt: A\nb.txt: |\n  B\n  C"},
		"FilesOfMissing":  {`"{{ .Values.Get }}{{ .Values.table.Lines | default "none" }}{{ len (.Files.Get "none") }}"`, "none0"},
		"ValuesMethods":   {`"{{ (.Values.Table "table").a }}{{ .Values.AsMap.greeting }}{{ .Values.PathValue "table.a" }}"`, "1hi1"},
		"ValuesYAML":      {`{{ .Values.YAML | quote }}{{ len (.Values.Table "table").YAML | toString | trunc 0 }}`, "addonInstallNamespace: agents\nclusterName: cluster1\ngreeting: hi\nreplicas: 1\ntable:\n  a: 1\n"},
		"Unique":          {`{{ list "a" "b" "a" | uniq | join "" }}`, "ab"},
		"FilesLines":      {`"{{ range .Files.Lines "files/b.txt" }}{{ . }};{{ end }}"`, "B;C;"},
		"Release":         {`{{ .Release.Name }}/{{ .Release.Namespace }}/{{ .Release.Service }}/{{ .Release.IsInstall }}`, "hello/agents/Helm/true"},
		"Chart":           {`{{ .Chart.Name }}-{{ .Chart.Version }}-{{ .Template.Name }}-{{ .Template.BasePath }}`, "hello-1.0.0-hello/templates/it.yaml-hello/templates"},
		"KubeVersion":     {`{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Major }}.{{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.KubeVersion.GitVersion }}`, "v1.33.2 1.33 v1.33.2+k3s1"},
		"SemverCompare":   {`"{{ semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}"`, "true"},
		"APIVersions":     {`"{{ .Capabilities.APIVersions.Has "apps/v1" }}{{ .Capabilities.APIVersions.Has "example.com/v1" }}"`, "truefalse"},
		"HelmVersion":     {`"{{ hasPrefix "v4" .Capabilities.HelmVersion.Version }}"`, "true"},
		"Dictionary":      {`{{ $d := dict "a" 1 }}{{ $_ := set $d "b" 2 }}"{{ get $d "b" }}{{ hasKey $d "c" }}{{ keys $d | sortAlpha | join "," }}"`, "2falsea,b"},
		"Printf":          {`{{ printf "%s-%d-%q" .Values.greeting 7 "x" | squote }}`, `hi-7-"x"`},
		"Regex":           {`{{ regexReplaceAll "h(.)" .Values.greeting "${1}o" }}`, "io"},
		"Required":        {`{{ required "greeting is needed" .Values.greeting }}`, "hi"},
		"Ternary":         {`{{ ternary "a" "b" (empty .Values.missing) }}`, "a"},
		"Hash":            {`"{{ sha256sum "a" | trunc 8 }}"`, "ca978112"},
		"PrintOfValues":   {`{{ .Values.table | quote }}{{ "" }}`, "map[a:1]"},
		"Indentation":     {"|-{{ \"a\\nb\" | nindent 4 }}", "a\nb"},
		"Html":            {`'{{ html "<a>" }}{{ urlquery "a b" }}'`, "&lt;a&gt;a+b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			from := minimal(settings(c.value)).
				with("values.yaml", "greeting: hi\nreplicas: 1\ntable: {a: 1}\n").
				with("templates/_lib.tpl", `{{ define "hello.name" }}name-{{ .a }}{{ end }}{{ define "hello.root" }}{{ .Chart.Name }}-{{ .Values.greeting }}{{ end }}`).
				with("files/a.txt", "A").with("files/b.txt", "B\nC\n")
			if diff := cmp.Diff(c.want, it(t, from, inputOfCluster1())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			verified(t, from, inputOfCluster1())
		})
	}
}

// TestLastScalarKeepsItsNewline: Helm ends every document with a newline, even before a
// separator or if the text of a template ends without one.
func TestLastScalarKeepsItsNewline(t *testing.T) {
	document := func(name, end string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n  crontab: |\n    * * * * * root x" + end
	}
	for name, text := range map[string]string{
		"separated": document("a", "\n---\n") + document("b", "\n\n\n---\n") + document("c", "\n"),
		"unended":   document("a", ""),
	} {
		read, err := Document{File: "x.yaml", Text: text}.manifests()
		if err != nil || len(read) == 0 {
			t.Fatal(name, err)
		}
		for _, m := range read {
			if data, _ := m.Fields["data"].(map[string]any); data["crontab"] != "* * * * * root x\n" {
				t.Errorf("%s: %v has %q", name, m.Fields[metadataKey], data["crontab"])
			}
		}
	}
}
