package chart

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"
	"pgregory.net/rapid"
)

// drawn writes templates as nobody would: trimmed or not, over many lines, with braces in
// texts and quotes, and each construct of the language inside of each other.
type drawn struct {
	*rapid.T
	left int
	loop int
}

func (d *drawn) of(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(d.T, what)
}

// action puts something between delimiters.
func (d *drawn) action(content string) string {
	return d.of("left", "{{", "{{ ", "{{- ", "{{-\n", "{{\n", "{{\t") + content + d.of("right", "}}", " }}", " -}}", "\n-}}", "\n}}")
}

func (d *drawn) value() string {
	if d.left--; d.left < 0 {
		return "1"
	}
	space := d.of("space", " ", " ", "\n", "  \n\t")
	switch d.of("value", "leaf", "leaf", "leaf", "leaf", "()", "field", "call", "piped", "compare", "include", "tpl", "format", "method") {
	case "()":
		return "(" + d.of("open", "", " ", "\n") + d.value() + d.of("close", "", " ", "\n") + ")"
	case "field":
		return "(dict \"a\"" + space + d.value() + ").a"
	case "call":
		return "(printf" + space + "\"%v-%v\"" + space + d.value() + space + d.value() + ")"
	case "piped":
		return "(" + d.value() + space + "|" + space + d.of("piped", "quote", "default 3", "list 1", "toYaml", "eq 1", "ne \"x\"", "toJson", "len", "print") + ")"
	case "compare":
		return "(" + d.of("compare", "eq", "ne", "and", "or", "lt") + space + d.value() + space + d.value() + ")"
	case "include":
		return "(" + d.of("include", "include \"t.name\"", "include\n(print \"t.\" \"dict\")", "include \"blank\"", "include \"none\"", "include `own`") + space + d.value() + ")"
	case "tpl":
		text := d.of("tpl", "\"{{ .Values.word }}\"", "`{{- if . }}\n{{ . }}{ {{- end }}`", "`{{ define \"own\" }}tpl{{ end }}{{ include \"own\" . }}`", "\" \"", "(printf \"{{ %s }}\" \".\")", ".Values.templated")
		return "(tpl " + text + space + d.value() + ")"
	case "format":
		return "(" + d.of("format", "toYaml", "fromYaml", "toJson", "fromJsonArray", "mustToYaml") + space + d.value() + ")"
	case "method":
		return d.of("method", "$.Files.AsConfig", "($.Files.Glob \"*.txt\").AsConfig", "($.Files.Get \"a.txt\")", "($.Files.Glob\n\"none\").AsSecrets",
			"$.Values.YAML", "($.Values.Table \"t\").YAML", "$.Values.t.YAML", "($.Values.Table \"none\")", "($.Values.PathValue \"t.a\")", "($).Values.YAML", ".YAML", ".Values.YAML", "(list $.Files.AsConfig)")
	default:
		return d.of("leaf", "1", "0x1F", "'c'", "'}'", "1.5", "true", "nil", "\"text }} {{ \\\"\"", "`raw\n}}\n`", "\"\"", ".", "$", "$.Values.word", "$.Values.m", ".Values.t.deep.er",
			".Values.missing", "$.Values.missing.x", "(index $.Values.l 1)", "$.Values.t", "$.Chart.Name", "$x", "$x.y", "list", "(list 1 2)", "$.Values.t.a")
	}
}

// nodes is some text with what stands in it.
func (d *drawn) nodes() string {
	var b strings.Builder
	for range rapid.IntRange(0, 4).Draw(d.T, "nodes") {
		b.WriteString(d.node())
	}
	return b.String()
}

func (d *drawn) node() string {
	if d.left--; d.left < 0 {
		return "."
	}
	switch d.of("node", "text", "text", "text", "value", "value", "comment", "if", "range", "with", "template", "block", "set", "leave") {
	case "value":
		return d.action(d.value())
	case "comment":
		return d.of("comment", "{{/* a */}}", "{{- /* {{\n}} */ -}}", "{{/* */ -}}", "{{- /* */}}")
	case "if":
		middle := d.of("else", "", d.action("else"), d.action("else if "+d.value()), d.action("else\nif "+d.value())+d.action("else"))
		if middle != "" {
			middle += d.nodes()
		}
		return d.action("if "+d.value()) + d.nodes() + middle + d.action("end")
	case "with":
		return d.action("with "+d.of("with", "", "$x := ")+d.value()) + d.nodes() + d.of("else", "", d.action("else with "+d.value()), d.action("else")) + d.nodes() + d.action("end")
	case "range":
		d.loop++
		out := d.action("range "+d.of("range", "", "$x := ", "$i, $x := ")+d.of("over", "$.Values.l", "(list 1 2 3)", "$.Values.t", "3", "(list)", d.value())) + d.nodes()
		d.loop--
		return out + d.of("else", "", d.action("else")+d.nodes()) + d.action("end")
	case "template":
		return d.action("template " + d.of("template", "\"t.name\" $", "`own` .", "\"own\"", "\"blank\"", "\"t.name\"\n$", "\"own\" $y := 1", "\"none\" .", "\"own\" "+d.value()))
	case "block":
		return d.action("block \""+d.of("block", "own", "b1", "b2", "b3")+"\" "+d.value()) + d.nodes() + d.action("end")
	case "set":
		return d.action(d.of("set", "$x = ", "$x := ", "$y := ") + d.value())
	case "leave":
		if d.loop > 0 {
			return d.action("if "+d.value()) + d.action(d.of("leave", "break", "continue")) + d.action("end")
		}
		return ""
	default:
		return d.of("text", "a", " ", "\n", "\n\n  ", "{", "}", "}}", " {\n", "text\n", "\t'\"`\n", "-", "{ ")
	}
}

// file is a template with what it defines.
func (d *drawn) file() string {
	d.left = rapid.IntRange(5, 60).Draw(d.T, "size")
	out := d.of("first", "", "\n", d.action("define \"own\"")+d.nodes()+d.action("end"), d.action("define \"blank\"")+" \n "+d.action("end"))
	return out + d.action("$x := 1") + d.nodes() + d.of("last", "", "\n", "{", " {", d.action("define \"own\"")+d.nodes()+d.action("end"))
}

// pointer is how Go prints where .Capabilities is.
var pointer = regexp.MustCompile("0x[0-9a-f]{6,}")

// TestWhatIsWrittenIntoTemplatesChangesNothing: a template renders with Helm's engine as
// it does with counting and watching written into it, and what is wrong with it is wrong
// in the same file and line.
func TestWhatIsWrittenIntoTemplatesChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := &drawn{T: r}
		source := d.file()
		c := loaded(t, minimal(source).
			with("values.yaml", "m: 3\nword: w\nl: [a, 1, true]\nt: {a: 1, deep: {er: x}}\ntemplated: '{{ .Values.m }}'\n").
			with("templates/_t.tpl", "{{ define \"t.name\" }}{{ .Chart.Name }}-\n{{ .Release.Name }}{{ end }}{{ define \"t.dict\" }}[{{ . }}]{{ end }}\n{{ define \"blank\" }}  {{ end }}{{ define \"own\" }}\n{{ end }}").
			with("a.txt", "A"))
		in := inputFor("cluster1")
		ours, _, err := c.texts(&execution{}, in, newCapabilities(in.KubeVersion))
		if err != nil && strings.Contains(err.Error(), "levels deep") {
			return // it is in Helm too, with a hundred thousand
		}
		helm, values, prepareErr := c.prepare(in)
		if prepareErr != nil {
			r.Fatal(prepareErr)
		}
		theirs, helmErr := engine.Engine{}.Render(helm, common.Values{"Capabilities": newCapabilities(in.KubeVersion), "Release": release(in), "Values": values})
		if helmErr != nil {
			failed, ok := errors.AsType[*Error](err)
			if !ok {
				r.Fatalf("%s\nHelm says %v, and ours renders it", source, helmErr)
			}
			want := c.templateError(helmErr)
			if strings.Contains(want.Message, "undefined variable") {
				want.Line = failed.Line // Go names what it ran before
			}
			if failed.File != want.File || failed.Line != want.Line {
				r.Fatalf("%s\nHelm says %v, ours %v", source, helmErr, err)
			}
			return
		}
		if err != nil {
			r.Fatalf("%s\nHelm renders it, and ours says %v", source, err)
		}
		for name := range theirs {
			ours[name], theirs[name] = pointer.ReplaceAllString(ours[name], "0x"), pointer.ReplaceAllString(theirs[name], "0x")
		}
		if name := firstDifference(ours, theirs); name != "" {
			r.Fatalf("%s\nHelm renders %q, ours %q", source, theirs[name], ours[name])
		}
	})
}
