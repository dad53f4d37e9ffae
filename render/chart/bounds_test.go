package chart

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestBounded renders charts that would take the operator's memory, time or stack.
// Each is an error of its template, with the line.
func TestBounded(t *testing.T) {
	doubling := `{{ $s := "0123456789abcdef" }}{{ range until 40 }}{{ $s = print $s $s }}{{ end }}{{ $s }}`
	cases := map[string]struct{ template, says string }{
		"NestedLoops":        {`{{ $l := until 10000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`, "steps to render"},
		"LongList":           {`{{ range until 1000000000 }}{{ end }}`, "list of 1000000000 numbers is too long"},
		"LongSequence":       {`{{ seq 1 1000000000 }}`, "too long"},
		"Repeat":             {`{{ repeat 1000000000 "x" }}`, "MiB of text"},
		"RepeatNested":       {`{{ repeat 1000000 (repeat 1000000 "x") }}`, "MiB of text"},
		"Indent":             {`{{ indent 1000000000 "x" }}`, "MiB of text"},
		"Doubling":           {doubling, "MiB of text"},
		"DoublingByReplace":  {`{{ $s := repeat 9000 "a" }}{{ $s = replace "a" $s $s }}{{ $s }}`, "MiB of text"},
		"DoublingByRegex":    {`{{ $s := repeat 9000 "a" }}{{ $s = regexReplaceAll "a" $s $s }}{{ $s }}`, "MiB of text"},
		"Padding":            {`{{ printf "%1000000d" 1 }}`, "pads to more than"},
		"PaddingByArgument":  {`{{ printf "%*d" 1000000 1 }}`, "pads to more than"},
		"SharedParts":        {`{{ $d := dict "a" "b" }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toYaml $d }}`, "MiB of text"},
		"SharedPartsPrinted": {`{{ $d := dict "a" "b" }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ $d }}`, "MiB of text"},
		"Cycle":              {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYamlPretty $d }}`, "levels deep"},
		"CyclePrinted":       {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, "levels deep"},
		"CycleCopied":        {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d | len }}`, "levels deep"},
		"Recursion":          {`{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, "levels deep"},
		"RecursionTemplate":  {`{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`, "levels deep"},
		"RecursionTpl":       {`{{ define "r" }}{{ tpl "{{ include \"r\" . }}" . }}{{ end }}{{ include "r" . }}`, "levels deep"},
		"Fork":               {`{{ define "r" }}{{ if lt . 40 }}{{ template "r" (add1 .) }}{{ template "r" (add1 .) }}{{ end }}{{ end }}{{ template "r" 0 }}`, "steps to render"},
		"Expressions":        {`{{ $b := repeat 1000000 "b" }}{{ range until 300 }}{{ if regexMatch "(b*)*c" $b }}1{{ end }}{{ end }}`, "steps to render"},
		"ExpressionRepeated": {`{{ $b := repeat 1000000 "b" }}{{ mustRegexFind "((b{0,30}){0,30})c" $b }}`, "steps to render"},
		"ExpressionSearched": {`{{ $b := repeat 100000 "b" }}{{ regexFindAll "b*c|b" $b -1 | len }}`, "steps to render"},
		"ExpressionReplaced": {`{{ $b := repeat 100000 "b" }}{{ regexReplaceAllLiteral "b*c|b" $b "" }}`, "steps to render"},
		"ExpressionSplit":    {`{{ $b := repeat 100000 "b" }}{{ mustRegexSplit "b*c|b" $b -1 | len }}`, "steps to render"},
		"Tpl":                {`{{ range until 8000 }}{{ tpl "{{ 1 }}" $ }}{{ end }}`, "steps to render"},
		"Parsed":             {`{{ $l := until 10000 | toYaml }}{{ range until 1000 }}{{ $_ := fromYamlArray $l }}{{ end }}`, "steps to render"},
		"Escapes":            {`{{ $x := "\\" }}{{ range until 40 }}{{ $x = js $x }}{{ end }}{{ len $x }}`, "MiB of text"},
		"CycleEscaped":       {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ html $d }}`, "levels deep"},
		"CycleCompared":      {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ eq $d $d }}`, "levels deep"},
		"CycleComparedPiped": {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d | ne $d }}`, "levels deep"},
		"CycleAsKey":         {`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $x := dict $d 1 }}`, "levels deep"},
		"ValuesYAML":         {`{{ range until 40 }}{{ $_ := set $.Values "a" (dict "x" $.Values.a "y" $.Values.a) }}{{ end }}{{ .Values.YAML }}`, "MiB of text"},
		"ValuesYAMLInAPath":  {`{{ $d := dict "YAML" $.Values }}{{ $_ := set $.Values "a" $.Values }}{{ $d.YAML.YAML }}`, "levels deep"},
		"ValuesEncode":       {`{{ $_ := set $.Values "a" $.Values }}{{ $.Values.Encode nil }}`, "levels deep"},
		"RecursionBlock":     {`{{ define "r" }}{{ block "b" . }}{{ template "r" . }}{{ end }}{{ end }}{{ include "r" . }}`, "levels deep"},
		"RecursionFile":      {`{{ include .Template.Name . }}`, "levels deep"},
		"RecursionInData":    {`{{ define "r" }}{{ include "n" (include "r" .) }}{{ end }}{{ define "n" }}{{ end }}{{ include "r" . }}`, "levels deep"},
		"Text":               {`{{ range until 2000 }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}`, "MiB of text"},
		"TextOfBranches":     {`{{ range until 2000 }}{{ if . }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}{{ end }}`, "MiB of text"},
		"TextOfElse":         {`{{ range until 2000 }}{{ with 0 }}{{ else }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}{{ end }}`, "MiB of text"},
		"TextOfTemplate":     {`{{ define "t" }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}{{ range until 2000 }}{{ template "t" }}{{ end }}`, "MiB of text"},
		"TextOfTpl":          {`{{ range until 2000 }}{{ tpl "{{ $.Values.text }}" $ }}{{ end }}`, "MiB of text"},
		"Space":              {`{{ define "t" }}` + strings.Repeat(" ", 50_000) + `{{ end }}{{ range until 2000 }}{{ template "t" }}{{ end }}`, "MiB of text"},
		"SpaceIncluded":      {`{{ define "t" }}` + strings.Repeat(" ", 50_000) + `{{ end }}{{ range until 2000 }}{{ $_ := include "t" $ }}{{ end }}`, "MiB of text"},
		"SpaceOfTpl":         {`{{ $s := repeat 50000 " " }}{{ range until 2000 }}{{ $_ := tpl (print "{{ define \"t\" }}" $s "{{ end }}{{ range until 2000 }}{{ include \"t\" . }}{{ end }}") $ }}{{ end }}`, "MiB of text"},
		"TplQuoted":          {`{{ define "r" }}{{ if . }}{{ $t := printf "%s{{ include \"r\" %d }}" (repeat 90000 "\\x01") (sub . 1) }}{{ tpl $t . }}{{ else }}{{ index 1 }}{{ end }}{{ end }}{{ include "r" 60 }}`, "steps to render"},
		"OwnVariable":        {`{{ $addonflow_depth := 0 }}`, `variable "$addonflow_depth" cannot be used`},
		"OwnVariableSet":     {`{{ $addonflow_depth = 0 }}`, `variable "$addonflow_depth" cannot be used`},
		"OwnVariableRead":    {`{{ $addonflow_depth }}`, `undefined variable "$addonflow_depth"`},
		"OwnInTpl":           {`{{ tpl "{{ addonflow_end }}" . }}`, `function "addonflow_end" not defined`},
		"TwoFilesOfOneName":  {`{{ .Files.AsConfig }}`, "AsConfig would write two files as big.txt: big.txt and more/big.txt"},
		"Unique":             {`{{ $l := until 100000 | uniq }}`, "steps to render"},
		"TextShared":         {`{{ $s := repeat 1000000 "x" }}{{ $l := list }}{{ range until 200 }}{{ $l = append $l $s }}{{ end }}{{ toJson $l | len }}`, "MiB of text"},
		"FilesAgain":         {`{{ range until 100000 }}{{ $x := $.Files.Get "big.txt" }}{{ end }}`, "MiB of text"},
		"FilesAgainAsValue":  {`{{ range until 100000 }}{{ $x := list $.Files.AsConfig }}{{ end }}`, "MiB of text"},
		"FilesSearched":      {`{{ range until 100000 }}{{ $x := ($.Files.Glob "*").Lines "none" }}{{ end }}`, "steps to render"},
		"Aliases":            {`{{ $s := repeat 100000 "x" }}{{ $a := repeat 1000 "- *a\n" }}{{ len (fromYamlArray (printf "- &a %s\n%s" $s $a)) }}`, "aliases that stand for more than"},
		"AliasesOfAliases":   {`{{ $s := repeat 20000 "x" }}{{ $p := repeat 100 "p, " }}{{ len (fromYaml (print "x: &x " $s "\na: &a [" (repeat 9 "*x,") "]\nb: &b [" (repeat 9 "*a,") "]\nc: &c [" (repeat 9 "*b,") "]\nd: [" (repeat 9 "*c,") "]\np: [" $p "]")) }}`, "aliases that stand for more than"},
		"PaddingByIndexed":   {`{{ $x := printf "%[2]*[1]d" 1 1000000 }}`, "pads to more than"},
		"PaddingByPrecision": {`{{ $x := printf "%5%%.[2]*[1]d" 1 1000000 }}`, "pads to more than"},
		"AddressIndexed":     {`{{ $x := printf "%[1]20p" .Values }}`, "writes an address"},
		"AddressAfterWidth":  {`{{ $x := printf "%5%%p" .Values }}`, "writes an address"},
		"Split":              {`{{ range until 4 }}{{ $x := split "" (repeat 600000 "x") }}{{ end }}`, "steps to render"},
		"SplitList":          {`{{ range until 4 }}{{ $x := splitList "," (repeat 600000 ",") }}{{ end }}`, "steps to render"},
		"SplitSome":          {`{{ range until 4 }}{{ $x := splitn "" 600000 (repeat 600000 "x") }}{{ end }}`, "steps to render"},
		"LongCompared":       {`{{ $a := repeat 10000000 "x" }}{{ $b := repeat 10000000 "x" }}{{ range until 200 }}{{ if lt $a $b }}{{ end }}{{ end }}`, "steps to render"},
		"LongLookedUp":       {`{{ $a := repeat 10000000 "x" }}{{ $d := dict "a" 1 }}{{ range until 300 }}{{ $x := hasKey $d $a }}{{ end }}`, "steps to render"},
		"LongIndexed":        {`{{ $a := repeat 10000000 "x" }}{{ $d := dict "a" 1 }}{{ range until 300 }}{{ $x := index $d $a }}{{ end }}`, "steps to render"},
		"Without":            {`{{ $x := without (until 20000) ` + strings.Repeat("1 ", 2000) + `}}`, "steps to render"},
		"Failed":             {`{{ define "r" }}{{ if . }}{{ include "r" (sub . 1) }}{{ else }}{{ fail (repeat 100000 "x") }}{{ end }}{{ end }}{{ include "r" 90 }}`, "xxx..."},
		"Required":           {`{{ define "r" }}{{ if . }}{{ include "r" (sub . 1) }}{{ else }}{{ required (repeat 100000 "x") "" }}{{ end }}{{ end }}{{ include "r" 90 }}`, "xxx..."},
		"RangedOver":         {`{{ range (repeat 100000 "x") }}{{ end }}`, "range can't iterate over a text"},
		"NotComparable":      {`{{ $l := list (repeat 1000000 "x") }}{{ if eq $l $l }}{{ end }}`, "MiB of text"},
		"MethodOfLongText":   {`{{ .Values.Table (repeat 100000 "x") }}`, "a method is given a text of more than"},
		"LongName":           {`{{ define "` + strings.Repeat("x", 2000) + `" }}x{{ end }}`, "the name of a template is longer than"},
		"Blocks":             {strings.Repeat("{{if .}}", 11_000), "opens more than 10000 blocks"},
		"BlocksOfElse":       {`{{if .}}` + strings.Repeat("{{- else  if .}}", 11_000), "opens more than 10000 blocks"},
		"BlocksOfTpl":        {`{{ tpl (repeat 11000 "{{with .}}") . }}`, "opens more than 10000 blocks"},
		"Date":               {`{{ $t := fromToml "a = [{b = 1979-05-27T07:32:00}]" }}`, "TOML with a date"},
		"DateInTables":       {`{{ $t := fromToml "[[a]]\nb = 1979-05-27" }}`, "TOML with a date"},
		"TOMLOfLists":        {`{{ $t := fromToml (print "a = " (repeat 11000 "[")) }}`, "TOML with more than 10000 brackets"},
		"TOMLOfTables":       {`{{ $t := fromToml (print (repeat 3000 "a.") "a = 1") }}`, "MiB of text"},
		"Actions":            {`{{ range until 20 }}{{ range until 1000 }}` + strings.Repeat(`{{ "" }}`, 300) + `{{ end }}{{ end }}`, "steps to render"},
		"ActionsOfElse":      {`{{ range until 20000 }}{{ if 0 }}{{ else if 0 }}{{ else if 1 }}` + strings.Repeat(`{{ "" }}`, 300) + `{{ end }}{{ end }}`, "steps to render"},
		"ActionsOfTemplate":  {`{{ define "t" }}` + strings.Repeat(`{{ $x := 1 }}`, 300) + `{{ end }}{{ range until 20000 }}{{ template "t" }}{{ end }}`, "steps to render"},
		"ActionsFew":         {`{{ range until 90000 }}` + strings.Repeat(`{{ if 1 }}{{ if 1 }}{{ "" }}{{ end }}{{ end }}`, 20) + `{{ end }}`, "steps to render"},
		"ElseIfs":            {`{{ range until 20000 }}{{ if 0 }}` + strings.Repeat(`{{ else if 0 }}`, 300) + `{{ end }}{{ end }}`, "steps to render"},
		"Variables":          {strings.Repeat(`{{ $x := 1 }}`, 2000), "a template has more than 1000 variables"},
		"OwnFunction":        {`{{ addonflow_end }}`, `function "addonflow_end" not defined`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			from := minimal("\n"+c.template).with("big.txt", strings.Repeat("words of a line\n", 10_000))
			if name == "TwoFilesOfOneName" {
				from = from.with("more/big.txt", "x")
			}
			if name == "TextOfTpl" {
				from = from.with("values.yaml", "text: "+strings.Repeat("x", 50_000)+"\n")
			}
			_, err := loaded(t, from).Render(inputFor("cluster1"))
			failed, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(failed.Message, c.says) {
				t.Fatalf("got %v, want an error that says %q", err, c.says)
			}
			if failed.File != "templates/it.yaml" || failed.Line == 0 {
				t.Errorf("it is said to be at %s:%d", failed.File, failed.Line)
			}
		})
	}
}

// TestAliasesAreBounded refuses YAML of a megabyte that stands for gigabytes wherever a
// chart has it. A text of its size without them is fine.
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
			_, err = c.Render(inputFor("cluster1"))
		}
		if err == nil || !strings.Contains(err.Error(), "aliases") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadValues([]byte(bomb)); err == nil || !strings.Contains(err.Error(), "aliases") {
		t.Errorf("value file: %v", err)
	}
	if got := it(t, minimal("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &a hello}\ndata: {it: *a, b: "+long+"}\n"+
		"# "+strings.Repeat("*", 1000)+"\n"), inputFor("cluster1")); got != "hello" {
		t.Errorf("an alias renders %v", got)
	}
}

// TestRefusedBeforehand refuses what a function would take gigabytes for before it runs,
// and keeps no more of what a chart says than is shown.
func TestRefusedBeforehand(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	var deep any = strings.Repeat("a\n", 300_000)
	var parts any = make([]any, 200_000)
	for range 190 {
		deep, parts = map[string]any{"a": deep}, map[string]any{"a": parts}
	}
	key := map[string]any{strings.Repeat("x", 1_000_000): 1}
	for name, args := range map[string][]any{
		"a format of texts":   {"printf", strings.Repeat("%[1]s", 1000), long},
		"a format of quotes":  {"printf", strings.Repeat("%[1]q", 1000), strings.Repeat("\x01", 30_000)},
		"a format of widths":  {"printf", strings.Repeat("%9999[1]d", 10_000), 1},
		"a format of parts":   {"printf", "%9999d", make([]int, 10_000)},
		"lines, indented":     {"toYaml", deep},
		"parts, indented":     {"toPrettyJson", parts},
		"a key, written anew": {"toJson", slices.Repeat([]any{key}, 200)},
	} {
		x := &execution{budget: newBudget()}
		function, _ := args[0].(string)
		if err := x.before(function, args[1:]); err == nil || !strings.Contains(err.Error(), "MiB of text") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := fail(long); len(err.Error()) > 1000 {
		t.Errorf("fail keeps %d bytes", len(err.Error()))
	}
	if _, err := required(long, nil); len(err.Error()) > 1000 {
		t.Errorf("required keeps %d bytes", len(err.Error()))
	}
}

// TestInstancesAreBounded refuses a chart whose dependencies multiply, before one is copied.
func TestInstancesAreBounded(t *testing.T) {
	wanting := func(name, of string, times int) string {
		var b strings.Builder
		b.WriteString("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\ndependencies:\n")
		for n := range times {
			fmt.Fprintf(&b, "- {name: %s, version: 1.0.0, alias: %s%d}\n", of, of, n)
		}
		return b.String()
	}
	const last = "apiVersion: v2\nname: b\nversion: 1.0.0\n"
	for name, from := range map[string]tree{
		"product": minimal(settings("x")).with("Chart.yaml", wanting("hello", "a", 40)).
			with("charts/a/Chart.yaml", wanting("a", "b", 40)).with("charts/a/charts/b/Chart.yaml", last),
		"bytes": minimal(settings("x")).with("Chart.yaml", wanting("hello", "b", 100)).
			with("charts/b/Chart.yaml", last).with("charts/b/values.yaml", "a: "+strings.Repeat("x", 1<<20)),
	} {
		if _, err := Load(from.files()); err == nil || !strings.Contains(err.Error(), "dependencies stand for more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
	fine := minimal(settings("x")).with("Chart.yaml", wanting("hello", "b", 40)).with("charts/b/Chart.yaml", last)
	if got := it(t, fine, inputFor("cluster1")); got != "x" {
		t.Errorf("forty aliases render %v", got)
	}
}

// TestDocumentsAreBounded refuses what no hub takes before it is read.
func TestDocumentsAreBounded(t *testing.T) {
	for template, says := range map[string]string{
		`{{ repeat 1000000 "- 1\n" }}`: "renders a document of more than 2 MiB",
		"{{ $s := repeat 1000000 \"x\" }}{{ range until 34 }}\n---\n#{{ $s }}{{ end }}": "renders more than 32 MiB of manifests",
	} {
		from := minimal(settings("x") + "---\n" + template)
		if _, err := loaded(t, from).Render(inputFor("cluster1")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// TestBoundsAreWide renders what charts do with the functions that are dear.
func TestBoundsAreWide(t *testing.T) {
	for value, want := range map[string]any{
		`"{{ $t := repeat 3000 "some words of a line\n" }}{{ regexSplit "\n" $t -1 | len }}"`:                 "3001",
		`"{{ $t := repeat 300 "a line  \n" }}{{ regexReplaceAll "\\s+" $t "-" | len }}"`:                      "2100",
		`"{{ range until 200 }}{{ $_ := tpl "{{ .Release.Name }}" $ }}{{ end }}x"`:                            "x",
		`"{{ range until 1000 }}{{ $_ := regexReplaceAll "[^a-z0-9-]+" "Some_Name.of-what" "-" }}{{ end }}x"`: "x",
		`"{{ regexMatch "(b*)*c" (repeat 1000000 "b") }}"`:                                                    "false",
	} {
		if got := it(t, minimal(settings(value)), inputFor("cluster1")); got != want {
			t.Errorf("%s: got %v, want %v", value, got, want)
		}
	}
}

// TestErrorsAreTheChartsOwn says what a chart did wrong in the chart's words.
func TestErrorsAreTheChartsOwn(t *testing.T) {
	for _, value := range []string{
		`{{ lt .Values "a" }}`, `{{ .Values.greeting.x.y | eq 1 }}`, `{{ index .Values.clusterName "a" }}`,
		`{{ len 3 }}`, `{{ template "none" . }}`, `{{ template "none" }}`, `{{ include "none" $ }}`, `{{ .Values.greeting | tpl "{{ .x }}" }}`, `{{ .Values.none.YAML }}`, `{{ .Capabilities.APIVersions.Has }}`, `{{ "a" | lt 1 }}`,
	} {
		if _, err := loaded(t, minimal(settings(value))).Render(inputFor("cluster1")); err == nil || strings.Contains(err.Error(), ownPrefix) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestSchemaErrorsAreInOrder says the same each time: the text is on the commit.
func TestSchemaErrorsAreInOrder(t *testing.T) {
	from := minimal(settings("x")).
		with("values.yaml", "e: 1\na: 1\nd: 1\nb: 1\nc: 1\nz: x\nw: x\nx: x\n").
		with("values.schema.json", `{"additionalProperties": false, "properties": {"z": {"type": "number"}, "w": {"type": "number"},`+
			`"x": {"type": "number"}, "clusterName": {}, "addonInstallNamespace": {}}}`)
	const want = `the values do not meet the chart's schema: - at '': additional properties 'a', 'b', 'c', 'd', 'e' not allowed ` +
		`- at '/w': got string, want number - at '/x': got string, want number - at '/z': got string, want number`
	for range 20 {
		_, err := loaded(t, from).Render(inputFor("cluster1"))
		if failed, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(failed.Message, want) {
			t.Fatalf("got  %v\nwant %s", err, want)
		}
	}
}

// TestHelmVersionIsFixed holds .Capabilities.HelmVersion to what no build changes.
func TestHelmVersionIsFixed(t *testing.T) {
	const value = `"{{ with .Capabilities.HelmVersion }}{{ .Version }}[{{ .GoVersion }}{{ .KubeClientVersion }}{{ .GitCommit }}{{ .GitTreeState }}]{{ end }}"`
	from := minimal(settings(value))
	if got := it(t, from, inputFor("cluster1")); got != "v4.2[]" {
		t.Errorf("got %v", got)
	}
	verified(t, from, inputFor("cluster1"))
}

// TestClosed refuses what reaches out of the chart, or differs from one time to the
// next, when it is called, and with a hint.
func TestClosed(t *testing.T) {
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
			_, err := loaded(t, minimal(settings(c.value))).Render(inputFor("cluster1"))
			failed, ok := errors.AsType[*Error](err)
			if !ok || failed.Message != name+" is not available in a package" || failed.Hint != c.hint || failed.Line != 5 {
				t.Errorf("got %v", err)
			}
			if got := it(t, minimal(settings(`hi{{ if .Values.missing }}`+c.value+`{{ end }}`)), inputFor("cluster1")); got != "hi" {
				t.Errorf("what is not called renders %v", got)
			}
		})
	}
	for _, name := range []string{"env", "expandenv"} {
		if _, err := loaded(t, minimal(settings(`{{ `+name+` "HOME" }}`))).Render(inputFor("cluster1")); err == nil {
			t.Errorf("%s is a function", name)
		}
	}
}

// TestUnordered refuses a rendering that hangs on the order of a map, every time.
func TestUnordered(t *testing.T) {
	const dict = `(dict "a" 1 "b" 2 "c" 3)`
	for value, fine := range map[string]bool{
		`{{ keys ` + dict + ` | join "-" }}`:                    false,
		`"{{ values ` + dict + ` | join "-" }}"`:                false,
		`{{ keys ` + dict + ` | sortAlpha | join "-" }}`:        true,
		`"{{ len (keys ` + dict + `) }}"`:                       true,
		`"{{ range $k, $v := ` + dict + ` }}{{ $k }}{{ end }}"`: true,
	} {
		err := loaded(t, minimal(settings(value))).Verify(inputFor("cluster1"))
		if (err == nil) != fine {
			t.Errorf("%s: %v", value, err)
		}
	}
}
