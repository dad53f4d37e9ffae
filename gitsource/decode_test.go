package gitsource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

// reported returns mistakes as a user reads them.
func reported(mistakes []mistake) []string {
	var out []string
	for _, m := range mistakes {
		p := m.at("f")
		out = append(out, fmt.Sprintf("%s %s", p.Reason, p))
	}
	return out
}

func values(docs []document) []any {
	var out []any
	for _, d := range docs {
		out = append(out, d.value)
	}
	return out
}

func TestDecodeValues(t *testing.T) {
	type object = map[string]any
	for name, c := range map[string]struct {
		in   string
		want []any
	}{
		"a boolean in other words": {"a: no\nb: Yes\nc: on\nd: off\ne: \"no\"", []any{object{"a": false, "b": true, "c": true, "d": false, "e": "no"}}},
		"numbers":                  {"a: 1.10\nb: 010\nc: '010'\nd: 0x10\ne: 1e3\nf: 1.0\ng: -7\nh: +_0\ni: -._5", []any{object{"a": 1.1, "b": int64(8), "c": "010", "d": int64(16), "e": int64(1000), "f": int64(1), "g": int64(-7), "h": int64(0), "i": -0.5}}},
		"data":                     {"a: \"x\\n'\\\"#:\"\nb: |\n  one\n  two\nc: >-\n  one\n  two", []any{object{"a": "x\n'\"#:", "b": "one\ntwo\n", "c": "one two"}}},
		"byte order mark, CRLF":    {"\xef\xbb\xbfa: 1\r\nb: |\r\n  x\r\n  y\r\n", []any{object{"a": int64(1), "b": "x\ny\n"}}},
		"empty":                    {"", nil},
		"comments":                 {"# nothing\n# here\n", nil},
		"empty documents":          {"---\n---\na: 1\n---\n# only a comment\n---\n~\n---\nnull\n", []any{object{"a": int64(1)}}},
		"anchors":                  {"a: &x {k: 1}\nb: *x\nc: [*x, *x]", []any{object{"a": object{"k": int64(1)}, "b": object{"k": int64(1)}, "c": []any{object{"k": int64(1)}, object{"k": int64(1)}}}}},
		"merge keys":               {"a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\nc: {<<: [{k: 4}, *x]}", []any{object{"a": object{"k": int64(1), "l": int64(2)}, "b": object{"k": int64(3), "l": int64(2)}, "c": object{"k": int64(4), "l": int64(2)}}}},
		"standard tags":            {"a: !!str 1\nb: !!int 1\nc: !!map {}\nd: !!seq []\ne: !!null ''", []any{object{"a": "1", "b": int64(1), "c": object{}, "d": []any{}, "e": nil}}},
		"timestamps are strings":   {"a: 2001-12-14\nb: 2001-12-14T21:59:43Z", []any{object{"a": "2001-12-14", "b": "2001-12-14T21:59:43Z"}}},
		"versions are strings":     {"a: v1.2.3\nb: 1.2.3\nc: 1:2\nd: 1Gi\ne: 100m\nf: =\ng: .", []any{object{"a": "v1.2.3", "b": "1.2.3", "c": "1:2", "d": "1Gi", "e": "100m", "f": "=", "g": "."}}},
		"64 bits":                  {"a: 9223372036854775807\nb: -9223372036854775808\nc: 1.5e300", []any{object{"a": int64(9223372036854775807), "b": int64(-9223372036854775808), "c": 1.5e300}}},
		"null":                     {"a:\nb: ~\nc: null\nd: ''", []any{object{"a": nil, "b": nil, "c": nil, "d": ""}}},
		"numbers as keys":          {"8080: web\n-1: x\ntrue: z", []any{object{"8080": "web", "-1": "x", "true": "z"}}},
		"several documents":        {"a: 1\n---\nb: 2\n...\n---\nc: 3\n", []any{object{"a": int64(1)}, object{"b": int64(2)}, object{"c": int64(3)}}},
		"JSON":                     {"{\n\t\"a\": [1, 2.5, null, true, \"x\\u00e9\"]\n}\n", []any{object{"a": []any{int64(1), 2.5, nil, true, "xé"}}}},
		"braces in text":           {"a: '{{FOO}}'\nb: \"{{ $labels.job }}\"\nc: x {{FOO}} y", []any{object{"a": "{{FOO}}", "b": "{{ $labels.job }}", "c": "x {{FOO}} y"}}},
	} {
		t.Run(name, func(t *testing.T) {
			docs, mistakes := decodeYAML([]byte(c.in))
			if len(mistakes) > 0 {
				t.Fatal(reported(mistakes))
			}
			if diff := cmp.Diff(c.want, values(docs)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"duplicate key":                      {"a: 1\nb:\n  k: 1\n  k: 2\n", []string{`InvalidYAML f:4: key "k" already set in line 3`}},
		"two of them":                        {"a: 1\na: 2\nb: 1\nb: 2\n", []string{`InvalidYAML f:2: key "a" already set in line 1`, `InvalidYAML f:4: key "b" already set in line 3`}},
		"in another spelling":                {"a: 1\n\"a\": 2\n", []string{`InvalidYAML f:2: key "a" already set in line 1`}},
		"braces":                             {"a: 1\nk: {{FOO}}\n", []string{`InvalidYAML f:2: a key must be a string, not a mapping or list; quote it: "{{FOO}}"`}},
		"braces and more":                    {"a: 1\nk: {{FOO}}-x\n", []string{`InvalidYAML f:2: did not find expected key; quote it: "{{FOO}}-x"`}},
		"braces in a list":                   {"a:\n- {{ FOO }}\n", []string{`InvalidYAML f:2: a key must be a string, not a mapping or list; quote it: "{{FOO}}"`}},
		"not UTF-8":                          {"a: \xff\xfe\n", []string{"InvalidEncoding f:1: not UTF-8 at byte 3; save it as UTF-8"}},
		"Latin-1":                            {"a: 1\nb: caf\xe9\n", []string{"InvalidEncoding f:2: not UTF-8 at byte 11; save it as UTF-8"}},
		"UTF-16":                             {"\xff\xfea\x00:\x00", []string{"InvalidEncoding f:1: UTF-16 at byte 0; save it as UTF-8"}},
		"tab":                                {"a:\n\tb: 1\n", []string{"InvalidYAML f:2: tabs are not allowed for indentation; use spaces"}},
		"tab after spaces":                   {"a:\n  b:\n  \tc: 1\n", []string{"InvalidYAML f:3: tabs are not allowed for indentation; use spaces"}},
		"NUL":                                {"a: 1\nb: \x00\n", []string{"InvalidYAML f:2: control character U+0000"}},
		"contains itself":                    {"a: &x [*x]\n", []string{"InvalidYAML f:1: the anchor x contains itself"}},
		"custom tag":                         {"a: !foo bar\n", []string{"InvalidYAML f:1: the tag !foo is not allowed"}},
		"binary":                             {"a: 1\nb: !!binary aGVsbG8=\n", []string{"InvalidYAML f:2: the tag !!binary is not allowed"}},
		"on a mapping":                       {"a: !env {b: c}\n", []string{"InvalidYAML f:1: the tag !env is not allowed"}},
		"a bare tag":                         {"a: ! 1\n", []string{"InvalidYAML f:1: the tag ! is not allowed"}},
		"CR alone":                           {"a: 1\nb: 2\rc: 3\r\n", []string{"InvalidYAML f:2: a carriage return without a line feed; end lines with LF"}},
		"CR before CRLF":                     {"a: 1\r\r\n", []string{"InvalidYAML f:1: a carriage return without a line feed; end lines with LF"}},
		"a bare tag after a byte order mark": {"\ufeffa: ! 1\n", []string{"InvalidYAML f:1: the tag ! is not allowed"}},
		"a bare tag, anchored":               {"a: [\"é\", &x ! 1]\n", []string{"InvalidYAML f:1: the tag ! is not allowed"}},
		"a bare tag below its anchor":        {"a: &x # c\n  ! 1\n", []string{"InvalidYAML f:1: the tag ! is not allowed"}},
		"a key that no parser reads again":   {"? " + strings.Repeat("k", 1024) + "\n: 1\n", []string{"InvalidYAML f:1: a key of more than 1000 characters"}},
		"on a key":                           {"!x a: 1\n", []string{"InvalidYAML f:1: the tag !x is not allowed"}},
		"a tag that does not fit":            {"a: !!int x\n", []string{`InvalidYAML f:1: the tag !!int does not fit the value x; quote it: "x"`}},
		"an unknown anchor":                  {"a: 1\nb: *x\n", []string{"InvalidYAML f:2: unknown anchor 'x' referenced"}},
		"infinity":                           {"a: .inf\n", []string{`InvalidYAML f:1: the number has no JSON form; quote it: ".inf"`}},
		"65 bits":                            {"a: 18446744073709551615\n", []string{`InvalidYAML f:1: the number does not fit into 64 bits and would be rounded; quote it: "18446744073709551615"`}},
		"65 bits, underscored":               {"a: 1_0000000000000000000000\n", []string{`InvalidYAML f:1: the number does not fit into 64 bits and would be rounded; quote it: "1_0000000000000000000000"`}},
		"65 bits as a float":                 {"a: 1e19\n", []string{`InvalidYAML f:1: the number does not fit into 64 bits and would be rounded; quote it: "1e19"`}},
		"a key that is a boolean":            {"on: push\n", []string{`InvalidYAML f:1: the key on is read as the boolean true; quote it: "on"`}},
		"a key that is an octal number":      {"010: x\n", []string{`InvalidYAML f:1: the key 010 is read as the number 8; quote it: "010"`}},
		"a merge of nothing":                 {"a: {<<: 1}\n", []string{"InvalidYAML f:1: << wants a mapping or a list of mappings"}},
		"conflict of a merge":                {"a:\n<<<<<<< HEAD\n  b: 1\n=======\n  b: 2\n>>>>>>> other\n", []string{"InvalidYAML f:2: an unresolved merge conflict begins here; keep one of the two versions"}},
		"indentation":                        {"a:\n  - b: 1\n c: 2\n", []string{"InvalidYAML f:3: did not find expected key; check the indentation of this line and of those above"}},
		"a colon in a value":                 {"a: b: c\n", []string{"InvalidYAML f:1: mapping values are not allowed in this context; check the indentation, or quote a value with a colon in it"}},
		"unclosed":                           {"a: [1, 2\nb: 3\n", []string{"InvalidYAML f:1: did not find expected ',' or ']'"}},
		"mistakes of several documents":      {"a: !x 1\n---\nb: 1\nb: 2\n", []string{"InvalidYAML f:1: the tag !x is not allowed", `InvalidYAML f:4: key "b" already set in line 3`}},
		"LFS pointer":                        {lfsPointer + "v1\noid sha256:00\nsize 3\n", []string{"LFSPointer f:1: the file is in Git LFS, the commit holds only a pointer to it; commit the file itself"}},
		"depth":                              {strings.Repeat("[", 200) + strings.Repeat("]", 200), []string{"LimitExceeded f:1: nested more than 100 levels deep"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, mistakes := decodeYAML([]byte(c.in))
			if diff := cmp.Diff(c.want, reported(mistakes)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestAliasBombs: what aliases expand to is bounded in bytes, not in nodes, and refusing it
// costs little.
func TestAliasBombs(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	long := "s: &s " + strings.Repeat("x", 2000) + "\nl:\n"
	for name, in := range map[string]string{
		"laughs":       laughs,
		"long strings": long + strings.Repeat("- *s\n", 20_000),
		"merges":       "a: &a {" + manyKeys(2000) + "}\nl:\n" + strings.Repeat("- {<<: *a}\n", 99),
		"just over":    "a: &a 1\nl:\n" + strings.Repeat("- *a\n", 101),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, mistakes := decodeYAML([]byte(in))
			runtime.ReadMemStats(&after)
			if len(mistakes) == 0 || mistakes[len(mistakes)-1].reason != AliasLimitExceeded {
				t.Errorf("got %v, want an alias limit", reported(mistakes))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 50<<20 {
				t.Errorf("refusing it took %d MiB", used>>20)
			}
		})
	}
	if _, mistakes := decodeYAML([]byte("a: &a 1\nl:\n" + strings.Repeat("- *a\n", 100))); len(mistakes) > 0 {
		t.Errorf("100 aliases are refused: %v", reported(mistakes))
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: v, ", i)
	}
	return b.String()
}

// FuzzDecode: the decoder reads accepted input as the API server's own reader does, and its
// canonical form has the same meaning and is stable.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"a: 1\n", "a: no\nb: [1, 2.5, x]\n", "- a\n- {b: c}\n", "a: &x {k: 1}\nb: {<<: *x}\n", "a: |\n  x\n---\nb: ~\n",
		"8080: x\n", "a: {{FOO}}\n", "\xef\xbb\xbfa: \"\\x7f\\u2028\\ud83d\\ude00\"\r\n", "a: 0o7\nb: 1_000\nc: 190:20:30\n", "? a\n: b\n",
		"a: -0\nb: 1e400\nc: .5\nd: +1\n", "!!map {a: !!str 1}\n", "a: 'x\n\n  y'\n", "%YAML 1.1\n---\na: y\n",
		"0: 000\n1: 1_0000000000000000000", "+_0", "\r!   000",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		docs, mistakes := decodeYAML(in)
		if len(mistakes) > 0 {
			return
		}
		canon := canonical(values(docs)...)
		again, mistakes := decodeYAML(canon)
		if len(mistakes) > 0 {
			t.Fatalf("the canonical form %q is refused: %v", canon, reported(mistakes))
		}
		// An empty document leaves the list; all others come back as they were.
		if diff := cmp.Diff(withoutNil(values(docs)), withoutNil(values(again))); diff != "" {
			t.Fatalf("the canonical form %q of %q means something else: (-want +got)\n%s", canon, in, diff)
		}
		if len(docs) != 1 || bytes.Contains(in, []byte("---")) || bytes.Contains(in, []byte("...")) {
			return // the API server's reader takes the first document
		}
		theirs, err := sigsyaml.YAMLToJSON(in)
		if err != nil {
			return // stricter than this package, so the promise does not apply
		}
		var want any
		if err := json.Unmarshal(theirs, &want); err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(canon, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q is not what the API server reads: (-server +got)\n%s", in, diff)
		}
	})
}

func withoutNil(in []any) []any {
	var out []any
	for _, v := range in {
		if v != nil {
			out = append(out, v)
		}
	}
	return out
}
