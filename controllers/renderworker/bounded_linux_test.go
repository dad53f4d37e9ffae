package renderworker

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/addonflow/addonflow/render/chart"
)

// In both manifests, containerMemory is the limit of the operator's container, operatorMemory its GOMEMLIMIT.
const (
	containerMemory = 1 << 30
	operatorMemory  = 600 << 20
)

// hostile are templates that would use up the operator's memory, time or stack.
func hostile() map[string]string {
	doubling := `{{ $s := "0123456789abcdef" }}{{ range until 40 }}{{ $s = print $s $s }}{{ end }}{{ $s }}`
	return map[string]string{
		"NestedLoops":        `{{ $l := until 10000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`,
		"LongList":           `{{ range until 1000000000 }}{{ end }}`,
		"LongSequence":       `{{ seq 1 1000000000 }}`,
		"Repeat":             `{{ repeat 1000000000 "x" }}`,
		"RepeatNested":       `{{ repeat 1000000 (repeat 1000000 "x") }}`,
		"Indent":             `{{ indent 1000000000 "x" }}`,
		"Doubling":           doubling,
		"DoublingByReplace":  `{{ $s := repeat 9000 "a" }}{{ $s = replace "a" $s $s }}{{ $s }}`,
		"DoublingByRegex":    `{{ $s := repeat 9000 "a" }}{{ $s = regexReplaceAll "a" $s $s }}{{ $s }}`,
		"Padding":            `{{ printf "%1000000d" 1 }}`,
		"PaddingByArgument":  `{{ printf "%*d" 1000000 1 }}`,
		"SharedParts":        `{{ $d := dict "a" "b" }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toYaml $d }}`,
		"SharedPartsPrinted": `{{ $d := dict "a" "b" }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ $d }}`,
		"Cycle":              `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYamlPretty $d }}`,
		"CyclePrinted":       `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`,
		"CycleCopied":        `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d | len }}`,
		"Recursion":          `{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`,
		"RecursionTemplate":  `{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`,
		"RecursionTpl":       `{{ define "r" }}{{ tpl "{{ include \"r\" . }}" . }}{{ end }}{{ include "r" . }}`,
		"Fork":               `{{ define "r" }}{{ if lt . 40 }}{{ template "r" (add1 .) }}{{ template "r" (add1 .) }}{{ end }}{{ end }}{{ template "r" 0 }}`,
		"Expressions":        `{{ $b := repeat 1000000 "b" }}{{ range until 300 }}{{ if regexMatch "(b*)*c" $b }}1{{ end }}{{ end }}`,
		"ExpressionRepeated": `{{ $b := repeat 1000000 "b" }}{{ mustRegexFind "((b{0,30}){0,30})c" $b }}`,
		"ExpressionSearched": `{{ $b := repeat 100000 "b" }}{{ regexFindAll "b*c|b" $b -1 | len }}`,
		"ExpressionReplaced": `{{ $b := repeat 100000 "b" }}{{ regexReplaceAllLiteral "b*c|b" $b "" }}`,
		"ExpressionSplit":    `{{ $b := repeat 100000 "b" }}{{ mustRegexSplit "b*c|b" $b -1 | len }}`,
		"Tpl":                `{{ range until 8000 }}{{ tpl "{{ 1 }}" $ }}{{ end }}`,
		"Parsed":             `{{ $l := until 10000 | toYaml }}{{ range until 1000 }}{{ $_ := fromYamlArray $l }}{{ end }}`,
		"Escapes":            `{{ $x := "\\" }}{{ range until 40 }}{{ $x = js $x }}{{ end }}{{ len $x }}`,
		"CycleEscaped":       `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ html $d }}`,
		"CycleCompared":      `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ eq $d $d }}`,
		"CycleComparedPiped": `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d | ne $d }}`,
		"CycleAsKey":         `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $x := dict $d 1 }}`,
		"ValuesYAML":         `{{ range until 40 }}{{ $_ := set $.Values "a" (dict "x" $.Values.a "y" $.Values.a) }}{{ end }}{{ .Values.YAML }}`,
		"ValuesYAMLInAPath":  `{{ $d := dict "YAML" $.Values }}{{ $_ := set $.Values "a" $.Values }}{{ $d.YAML.YAML }}`,
		"ValuesEncode":       `{{ $_ := set $.Values "a" $.Values }}{{ $.Values.Encode nil }}`,
		"RecursionBlock":     `{{ define "r" }}{{ block "b" . }}{{ template "r" . }}{{ end }}{{ end }}{{ include "r" . }}`,
		"RecursionFile":      `{{ include .Template.Name . }}`,
		"RecursionInData":    `{{ define "r" }}{{ include "n" (include "r" .) }}{{ end }}{{ define "n" }}{{ end }}{{ include "r" . }}`,
		"Text":               `{{ range until 2000 }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}`,
		"TextOfBranches":     `{{ range until 2000 }}{{ if . }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}{{ end }}`,
		"TextOfElse":         `{{ range until 2000 }}{{ with 0 }}{{ else }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}{{ end }}`,
		"TextOfTemplate":     `{{ define "t" }}` + strings.Repeat("text that stands here ", 2000) + `{{ end }}{{ range until 2000 }}{{ template "t" }}{{ end }}`,
		"TextOfTpl":          `{{ range until 2000 }}{{ tpl "{{ $.Values.text }}" $ }}{{ end }}`,
		"Space":              `{{ define "t" }}` + strings.Repeat(" ", 50_000) + `{{ end }}{{ range until 2000 }}{{ template "t" }}{{ end }}`,
		"SpaceIncluded":      `{{ define "t" }}` + strings.Repeat(" ", 50_000) + `{{ end }}{{ range until 2000 }}{{ $_ := include "t" $ }}{{ end }}`,
		"SpaceOfTpl":         `{{ $s := repeat 50000 " " }}{{ range until 2000 }}{{ $_ := tpl (print "{{ define \"t\" }}" $s "{{ end }}{{ range until 2000 }}{{ include \"t\" . }}{{ end }}") $ }}{{ end }}`,
		"TplQuoted":          `{{ define "r" }}{{ if . }}{{ $t := printf "%s{{ include \"r\" %d }}" (repeat 90000 "\\x01") (sub . 1) }}{{ tpl $t . }}{{ else }}{{ index 1 }}{{ end }}{{ end }}{{ include "r" 60 }}`,
		"Unique":             `{{ $l := until 100000 | uniq }}`,
		"TextShared":         `{{ $s := repeat 1000000 "x" }}{{ $l := list }}{{ range until 200 }}{{ $l = append $l $s }}{{ end }}{{ toJson $l | len }}`,
		"FilesAgain":         `{{ range until 100000 }}{{ $x := $.Files.Get "big.txt" }}{{ end }}`,
		"FilesAgainAsValue":  `{{ range until 100000 }}{{ $x := list $.Files.AsConfig }}{{ end }}`,
		"FilesSearched":      `{{ range until 100000 }}{{ $x := ($.Files.Glob "*").Lines "none" }}{{ end }}`,
		"Aliases":            `{{ $s := repeat 100000 "x" }}{{ $a := repeat 1000 "- *a\n" }}{{ len (fromYamlArray (printf "- &a %s\n%s" $s $a)) }}`,
		"AliasesOfAliases":   `{{ $s := repeat 20000 "x" }}{{ $p := repeat 100 "p, " }}{{ len (fromYaml (print "x: &x " $s "\na: &a [" (repeat 9 "*x,") "]\nb: &b [" (repeat 9 "*a,") "]\nc: &c [" (repeat 9 "*b,") "]\nd: [" (repeat 9 "*c,") "]\np: [" $p "]")) }}`,
		"PaddingByIndexed":   `{{ $x := printf "%[2]*[1]d" 1 1000000 }}`,
		"PaddingByPrecision": `{{ $x := printf "%5%%.[2]*[1]d" 1 1000000 }}`,
		"AddressIndexed":     `{{ $x := printf "%[1]20p" .Values }}`,
		"AddressAfterWidth":  `{{ $x := printf "%5%%p" .Values }}`,
		"Split":              `{{ range until 4 }}{{ $x := split "" (repeat 600000 "x") }}{{ end }}`,
		"SplitList":          `{{ range until 4 }}{{ $x := splitList "," (repeat 600000 ",") }}{{ end }}`,
		"SplitSome":          `{{ range until 4 }}{{ $x := splitn "" 600000 (repeat 600000 "x") }}{{ end }}`,
		"LongCompared":       `{{ $a := repeat 10000000 "x" }}{{ $b := repeat 10000000 "x" }}{{ range until 200 }}{{ if lt $a $b }}{{ end }}{{ end }}`,
		"LongLookedUp":       `{{ $a := repeat 10000000 "x" }}{{ $d := dict "a" 1 }}{{ range until 300 }}{{ $x := hasKey $d $a }}{{ end }}`,
		"LongIndexed":        `{{ $a := repeat 10000000 "x" }}{{ $d := dict "a" 1 }}{{ range until 300 }}{{ $x := index $d $a }}{{ end }}`,
		"Without":            `{{ $x := without (until 20000) ` + strings.Repeat("1 ", 2000) + `}}`,
		"Failed":             `{{ define "r" }}{{ if . }}{{ include "r" (sub . 1) }}{{ else }}{{ fail (repeat 100000 "x") }}{{ end }}{{ end }}{{ include "r" 90 }}`,
		"Required":           `{{ define "r" }}{{ if . }}{{ include "r" (sub . 1) }}{{ else }}{{ required (repeat 100000 "x") "" }}{{ end }}{{ end }}{{ include "r" 90 }}`,
		"RangedOver":         `{{ range (repeat 100000 "x") }}{{ end }}`,
		"NotComparable":      `{{ $l := list (repeat 1000000 "x") }}{{ if eq $l $l }}{{ end }}`,
		"MethodOfLongText":   `{{ .Values.Table (repeat 100000 "x") }}`,
		"LongName":           `{{ define "` + strings.Repeat("x", 2000) + `" }}x{{ end }}`,
		"Blocks":             strings.Repeat("{{if .}}", 11_000),
		"BlocksOfElse":       `{{if .}}` + strings.Repeat("{{- else  if .}}", 11_000),
		"BlocksOfTpl":        `{{ tpl (repeat 11000 "{{with .}}") . }}`,
		"Date":               `{{ $t := fromToml "a = [{b = 1979-05-27T07:32:00}]" }}`,
		"DateInTables":       `{{ $t := fromToml "[[a]]\nb = 1979-05-27" }}`,
		"TOMLOfLists":        `{{ $t := fromToml (print "a = " (repeat 11000 "[")) }}`,
		"TOMLOfTables":       `{{ $t := fromToml (print (repeat 3000 "a.") "a = 1") }}`,
		"Actions":            `{{ range until 20 }}{{ range until 1000 }}` + strings.Repeat(`{{ "" }}`, 300) + `{{ end }}{{ end }}`,
		"ActionsOfElse":      `{{ range until 20000 }}{{ if 0 }}{{ else if 0 }}{{ else if 1 }}` + strings.Repeat(`{{ "" }}`, 300) + `{{ end }}{{ end }}`,
		"ActionsOfTemplate":  `{{ define "t" }}` + strings.Repeat(`{{ $x := 1 }}`, 300) + `{{ end }}{{ range until 20000 }}{{ template "t" }}{{ end }}`,
		"ActionsFew":         `{{ range until 90000 }}` + strings.Repeat(`{{ if 1 }}{{ if 1 }}{{ "" }}{{ end }}{{ end }}`, 20) + `{{ end }}`,
		"ElseIfs":            `{{ range until 20000 }}{{ if 0 }}` + strings.Repeat(`{{ else if 0 }}`, 300) + `{{ end }}{{ end }}`,
		"Variables":          strings.Repeat(`{{ $x := 1 }}`, 2000),
		"JoinNumbers":        `{{ join (repeat 100000 "x") (until 100000) }}`,
		"JoinTexts":          `{{ join (repeat 100000 "x") (splitList "," (repeat 100000 ",")) }}`,
		"JoinAny":            `{{ join (repeat 100000 "x") (fromYamlArray (repeat 100000 "- 1\n")) }}`,
		"JoinKeys":           `{{ join (repeat 100000 "x") (keys (fromYaml (until 100000 | join ": 1\n"))) }}`,
		"JoinSplit":          `{{ join (repeat 100000 "x") (values (split "," (repeat 100000 ","))) }}`,
		"JoinBytes":          `{{ join (repeat 100000 "x") (.Files.GetBytes "big.txt") }}`,
		"QuoteOfList":        `{{ quote (until 50000000) }}`,
		"QuoteOfMany":        `{{ $s := repeat 1000000 "x" }}{{ $l := list }}{{ range until 500 }}{{ $l = append $l $s }}{{ end }}{{ quote $l | len }}`,
		"ToJsonOfList":       `{{ toJson (until 50000000) }}`,
		"ToYamlOfList":       `{{ toYaml (until 10000000) }}`,
		"ToPrettyJsonOfList": `{{ toPrettyJson (until 50000000) }}`,
		"LargeDocument": `{{ range until 15 }}---
{{ repeat 120000 "- 1\n" }}{{ end }}`,
		"ManyObjects": `{{ range until 100000 }}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a{{ . }}}}{{ end }}`,
	}
}

// TestChartThatExhaustsAResourceEndsInAnError renders charts that would use up the operator's memory,
// time or stack. Each ends in an error of its template, or in objects. This process acts as the
// operator. It and its child stay within the memory limit of the container.
func TestChartThatExhaustsAResourceEndsInAnError(t *testing.T) {
	limits := tightLimits()
	contain(t, containerMemory, limits.Memory)
	before := debug.SetMemoryLimit(operatorMemory)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	p := newPool(t, Options{Limits: limits})
	rendered := 0
	for name, template := range hostile() {
		t.Run(name, func(t *testing.T) {
			s := chartOf("\n"+template+"\n---\n"+settings("x"), "big.txt", strings.Repeat("words of a line\n", 10_000), "values.yaml", "text: "+strings.Repeat("x", 50_000)+"\n")
			out, err := p.For("a").Render(s, inputFor("cluster1"))
			failed, blamed := errors.AsType[*chart.Error](err)
			switch {
			case err == nil:
				rendered++
				t.Logf("renders %d objects", len(out))
			case !blamed:
				t.Fatalf("got %v, want an error of the chart", err)
			case failed.File != "templates/it.yaml":
				t.Errorf("the error is at %q: %v", failed.File, err)
			default:
				t.Log(err)
			}
		})
	}
	t.Logf("%d charts rendered", rendered)
}

// TestLimits_AreSetBeforeTheChildReads: a child has its limits before it reads anything.
func TestLimits_AreSetBeforeTheChildReads(t *testing.T) {
	p := newPool(t, Options{})
	entryOf(t, p.For("a"), chartOf(settings("x")), "c1")
	pid := p.pids()[0]
	var data unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &data); err != nil || data.Max != uint64(DefaultLimits().Memory) { //nolint:gosec // positive
		t.Errorf("memory: %v, %v", data, err)
	}
	var space unix.Rlimit // a single allocation is not stopped by RLIMIT_DATA
	if err := unix.Prlimit(pid, unix.RLIMIT_AS, nil, &space); err != nil || space.Max == unix.RLIM_INFINITY {
		t.Errorf("address space: %v, %v", space, err)
	}
	score, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/oom_score_adj")
	if err != nil || strings.TrimSpace(string(score)) != "1000" {
		t.Errorf("oom_score_adj: %s, %v", score, err)
	}
}

// TestLimits_SignalFromOutsideBlamesNoContent: a child that another process sends SIGXCPU ends long before its limit.
func TestLimits_SignalFromOutsideBlamesNoContent(t *testing.T) {
	p := newPool(t, Options{})
	s := chartOf(settings("x"))
	c, err := p.acquire(key{"a", s.Sum}, s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.lost(c)
	if err := c.cmd.Process.Signal(unix.SIGXCPU); err != nil {
		t.Fatal(err)
	}
	_, err = c.read()
	if ended, ok := errors.AsType[*broken](err); !ok || ended.wrong != nil {
		t.Errorf("got %v, want an interruption", err)
	}
}

// TestLimits_NameTheTemplate: the error names the template that reached the limit, even if
// another file includes it.
func TestLimits_NameTheTemplate(t *testing.T) {
	p := newPool(t, Options{Limits: tightLimits()})
	memory := `{{ $l := list }}{{ range until 10000 }}{{ $l = append $l (repeat 1000000 "x") }}{{ end }}`
	for says, source := range map[string]*chart.Source{
		"templates/b.yaml: takes more than 256 MiB of memory to render": chartOf(settings("x"), "templates/b.yaml", memory),
		"templates/b.yaml: takes more than 1s of CPU time to render":    chartOf(settings("x"), "templates/b.yaml", `{{ $l := until 10000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`),
		"templates/c.yaml: takes more than 256 MiB of memory":           chartOf(settings("x"), "templates/b.yaml", settings("x"), "templates/c.yaml", `{{ $_ := include (print $.Template.BasePath "/b.yaml") . }}`+memory),
		"sub/b.yaml: takes more than 256 MiB of memory": chart.NewSource(chart.ManifestsFolder, []chart.File{
			{Path: "a.yaml", Content: []byte(settings("x"))}, {Path: "sub/b.yaml", Content: []byte(memory)},
		}),
	} {
		_, err := p.For("a").Render(source, inputFor("c1"))
		if _, blamed := errors.AsType[*chart.Error](err); !blamed || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("got %v, want %s", err, says)
		}
	}
}

// TestThousandClusters: the chart that helm create writes is rendered for 1,000 clusters within five seconds of two cores.
// CPU time is compared, because it does not depend on what else the machine does.
func TestThousandClusters(t *testing.T) {
	p, s, before := newPool(t, Options{}), helmCreate(t), cpuTime(t)
	e := p.For("a")
	for i := range 1000 {
		out, err := e.Render(s, inputFor(fmt.Sprintf("cluster-%d", i)))
		if err != nil || len(out) != 3 {
			t.Fatal(len(out), err)
		}
	}
	p.Close() // the time of a child counts from its end
	used := cpuTime(t) - before
	if t.Logf("1,000 clusters of the chart that helm create writes: %s of CPU time", used.Round(time.Millisecond)); used > 2*5*time.Second {
		t.Errorf("took %s of CPU time", used)
	}
}

// cpuTime is the CPU time of this program and of its children that have ended.
func cpuTime(t *testing.T) (used time.Duration) {
	t.Helper()
	for _, of := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(of, &usage); err != nil {
			t.Fatal(err)
		}
		used += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return used
}
