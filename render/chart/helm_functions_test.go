package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"
	_ "unsafe" // for go:linkname
)

// helmFunctions are the functions that Helm gives to charts; Helm does not export them.
//
//go:linkname helmFunctions helm.sh/helm/v4/pkg/engine.funcMap
func helmFunctions() template.FuncMap

// languageFunctions are those of text/template itself, and those that Helm adds late.
const languageFunctions = "and or not eq ne lt le gt ge len index call html js urlquery print printf println getHostByName"

// calls are expressions by the function that they test, one per line. Helm's engine and this
// one render each of them; if one refuses it, the other must refuse it too.
var calls = map[string]string{
	"abbrev":                     "abbrev 5 \"hello world\"\nabbrev 2 \"hello\"",
	"abbrevboth":                 "abbrevboth 5 10 \"1234 5678 9123 4567\"",
	"add":                        "add 1 2 3\nadd \"4\" 1.9\nadd .Values.n .Values.big",
	"add1":                       "add1 1\nadd1 .Values.f",
	"add1f":                      "add1f 1.5",
	"addf":                       "addf 0.1 0.2\naddf 1 2 3.25",
	"adler32sum":                 "adler32sum \"abc\"",
	"all":                        "all 1 \"a\"\nall 0 1",
	"any":                        "any 0 \"\"\nany 0 1",
	"append":                     "append (list 1 2) 3\nappend \"x\" 1",
	"atoi":                       "atoi \"42\"\natoi \"x\"",
	"b32dec":                     "b32dec \"MFRGG===\"\nb32dec \"!\"",
	"b32enc":                     "b32enc \"abc\"",
	"b64dec":                     "b64dec \"YWJj\"\nb64dec \"!\"",
	"b64enc":                     "b64enc \"abc\"",
	"base":                       "base \"a/b/c.txt\"",
	"biggest":                    "biggest 1 5 3",
	"camelcase":                  "camelcase \"http_server-x\"",
	"cat":                        "cat \"a\" 1 nil \"b\"",
	"ceil":                       "ceil 1.2\nceil -1.2",
	"chunk":                      "chunk 2 (list 1 2 3 4 5)",
	"clean":                      "clean \"a//b/../c\"",
	"coalesce":                   "coalesce 0 \"\" nil \"x\"\ncoalesce",
	"compact":                    "compact (list 0 1 \"\" \"a\" nil)",
	"concat":                     "concat (list 1) (list 2 3) (list)",
	"contains":                   "contains \"ell\" \"hello\"",
	"dateModify":                 "dateModify \"1h\" \"x\"",
	"date_modify":                "date_modify \"1h\" \"x\"",
	"deepCopy":                   "deepCopy (dict \"a\" (dict \"b\" 1))",
	"deepEqual":                  "deepEqual (list 1 2) (list 1 2)\ndeepEqual (list 1) (list 2)",
	"default":                    "default \"x\" \"\"\ndefault \"x\" 0\ndefault \"x\" false\ndefault 3 .Values.n\n.Values.missing | default (dict \"a\" 1)",
	"dict":                       "dict \"a\" 1 \"b\"\ndict 1 2\ndict",
	"dig":                        "dig \"t\" \"deep\" \"er\" \"none\" (dict \"t\" (dict \"deep\" (dict \"er\" 7)))\ndig \"a\" \"b\" \"none\" (dict)\ndig \"t\" \"a\" \"none\" .Values\ndig \"t\" \"a\" \"none\" .Values.AsMap",
	"dir":                        "dir \"a/b/c.txt\"",
	"div":                        "div 7 2\ndiv 7 0",
	"divf":                       "divf 7 2\ndivf 1 0",
	"duration":                   "duration \"95\"\nduration 3700",
	"empty":                      "empty 0\nempty (dict)\nempty \"a\"\nempty .Values.missing",
	"ext":                        "ext \"a/b/c.txt\"",
	"fail":                       "fail \"stop\"",
	"first":                      "first (list 1 2)\nfirst (list)\nfirst \"abc\"",
	"float64":                    "float64 \"3.5\"\nfloat64 7\nfloat64 \"x\"",
	"floor":                      "floor 1.8\nfloor -1.2",
	"fromJson":                   "fromJson \"{\\\"a\\\": [1, 2.5, 1e21]}\"\nfromJson \"[1]\"\n(fromJson \"{\\\"a\\\": 10000000}\").a",
	"fromJsonArray":              "fromJsonArray \"[1, \\\"a\\\"]\"\nfromJsonArray \"{}\"",
	"fromToml":                   "fromToml \"a = 1\\n[b]\\nc = [1, 2]\"\nfromToml \"a =\"",
	"fromYaml":                   "fromYaml \"a: [1, 2.5, on, 010, 0x10, 1e3, ~, 2020-01-02]\"\nfromYaml \"a: b: c\"\nfromYaml \"- a\"\n(fromYaml \"n: 12345678\").n",
	"fromYamlArray":              "fromYamlArray \"[1, a]\"\nfromYamlArray \"a: 1\"",
	"get":                        "get (dict \"a\" 1) \"a\"\nget (dict) \"a\"",
	"has":                        "has 4 (list 1 4)\nhas \"a\" (list)\nhas 4 nil\nhas 4 \"x\"",
	"hasKey":                     "hasKey (dict \"a\" nil) \"a\"\nhasKey (dict) \"a\"",
	"hasPrefix":                  "hasPrefix \"he\" \"hello\"",
	"hasSuffix":                  "hasSuffix \"lo\" \"hello\"",
	"hello":                      "hello",
	"include":                    "include \"t.name\" .\ninclude \"t.dict\" (dict \"a\" 1 \"root\" .)\ninclude \"t.none\" .",
	"indent":                     "indent 2 \"a\\nb\"\nindent 0 \"a\"\nindent -1 \"a\"",
	"initial":                    "initial (list 1 2 3)\ninitial (list)",
	"initials":                   "initials \"first try\"",
	"int":                        "int \"42\"\nint 3.9\nint \"0x10\"\nint nil\nint .Values.big\nint true",
	"int64":                      "int64 \"42\"\nint64 3.9\nint64 .Values.big",
	"isAbs":                      "isAbs \"/a\"",
	"join":                       "join \"-\" (list 1 \"a\" true nil)\njoin \"-\" \"abc\"",
	"kebabcase":                  "kebabcase \"firstName HTTPServer\"",
	"keys":                       "keys (dict \"a\" 1) | sortAlpha\nkeys (dict \"a\" 1) (dict \"b\" 2) | sortAlpha",
	"kindIs":                     "kindIs \"map\" (dict)\nkindIs \"invalid\" nil\nkindIs \"float64\" .Values.n",
	"kindOf":                     "kindOf 1\nkindOf \"a\"\nkindOf (list)\nkindOf .Values\nkindOf .Values.n\nkindOf .Files",
	"last":                       "last (list 1 2)\nlast (list)",
	"list":                       "list 1 \"a\" nil true\nlist",
	"lower":                      "lower \"HeLLo\"",
	"max":                        "max 1 5 \"3\"",
	"maxf":                       "maxf 1 5.5 3",
	"merge":                      "merge (dict \"a\" 1 \"d\" (dict \"x\" 1)) (dict \"a\" 2 \"b\" 3 \"d\" (dict \"y\" 2))\nmerge (dict \"a\" false \"b\" 0) (dict \"a\" true \"b\" 1)",
	"mergeOverwrite":             "mergeOverwrite (dict \"a\" 1 \"d\" (dict \"x\" 1)) (dict \"a\" 2 \"d\" (dict \"x\" 2 \"y\" 3))\nmergeOverwrite (dict \"a\" true) (dict \"a\" false)",
	"min":                        "min 1 5 3",
	"minf":                       "minf 1 5.5 0.3",
	"mod":                        "mod 7 3\nmod 7 0",
	"mul":                        "mul 2 3 4\nmul \"2\" 3.9",
	"mulf":                       "mulf 1.5 2 2",
	"mustAppend":                 "mustAppend (list 1) 2\nmustAppend \"x\" 2",
	"mustChunk":                  "mustChunk 2 (list 1 2 3)\nmustChunk 2 \"x\"",
	"mustCompact":                "mustCompact (list 0 1)\nmustCompact \"x\"",
	"mustDateModify":             "mustDateModify \"1h\" \"x\"",
	"must_date_modify":           "must_date_modify \"1h\" \"x\"",
	"mustDeepCopy":               "mustDeepCopy (list 1 (dict))",
	"mustFirst":                  "mustFirst (list 1)\nmustFirst \"x\"",
	"mustFromJson":               "mustFromJson \"[1, {}]\"\nmustFromJson \"[\"",
	"mustHas":                    "mustHas 1 (list 1)\nmustHas 1 \"x\"",
	"mustInitial":                "mustInitial (list 1 2)\nmustInitial 1",
	"mustLast":                   "mustLast (list 1 2)\nmustLast 1",
	"mustMerge":                  "mustMerge (dict \"a\" 1) (dict \"b\" 2)",
	"mustMergeOverwrite":         "mustMergeOverwrite (dict \"a\" 1) (dict \"a\" 2)",
	"mustPrepend":                "mustPrepend (list 1) 0\nmustPrepend 1 0",
	"mustPush":                   "mustPush (list 1) 2\nmustPush 1 2",
	"mustRegexFind":              "mustRegexFind \"[a-z]+\" \"12ab\"\nmustRegexFind \"[\" \"a\"",
	"mustRegexFindAll":           "mustRegexFindAll \"[0-9]\" \"1a2b3\" -1\nmustRegexFindAll \"[\" \"a\" 1",
	"mustRegexMatch":             "mustRegexMatch \"^a+$\" \"aaa\"\nmustRegexMatch \"[\" \"a\"",
	"mustRegexReplaceAll":        "mustRegexReplaceAll \"a(x*)b\" \"-ab-axxb-\" \"${1}W\"\nmustRegexReplaceAll \"[\" \"a\" \"b\"",
	"mustRegexReplaceAllLiteral": "mustRegexReplaceAllLiteral \"a(x*)b\" \"-ab-\" \"${1}\"\nmustRegexReplaceAllLiteral \"[\" \"a\" \"b\"",
	"mustRegexSplit":             "mustRegexSplit \"z+\" \"pizza\" -1\nmustRegexSplit \"[\" \"a\" 1",
	"mustRest":                   "mustRest (list 1 2)\nmustRest 1",
	"mustReverse":                "mustReverse (list 1 2)\nmustReverse 1",
	"mustSlice":                  "mustSlice (list 1 2 3) 1 2\nmustSlice 1 2",
	"mustToToml":                 "mustToToml (dict \"a\" 1)\nmustToToml .Values.t\nmustToToml \"x\"",
	"mustToYaml":                 "mustToYaml .Values.t\n.Values.t | mustToYaml | upper\nmustToYaml nil",
	"mustToJson":                 "mustToJson (dict \"a\" \"<\")",
	"mustToPrettyJson":           "mustToPrettyJson (dict \"a\" (list 1))",
	"mustToRawJson":              "mustToRawJson (dict \"a\" \"<\")",
	"mustUniq":                   "mustUniq (list 1 1 2)\nmustUniq 1",
	"mustWithout":                "mustWithout (list 1 2 3) 2\nmustWithout 1 2",
	"nindent":                    "nindent 2 \"a\\nb\"",
	"nospace":                    "nospace \" a b \"",
	"omit":                       "omit (dict \"a\" 1 \"b\" 2) \"a\"",
	"osBase":                     "osBase \"a/b\"",
	"osClean":                    "osClean \"a//b\"",
	"osDir":                      "osDir \"a/b\"",
	"osExt":                      "osExt \"a.b\"",
	"osIsAbs":                    "osIsAbs \"a\"",
	"pick":                       "pick (dict \"a\" 1 \"b\" 2) \"a\" \"c\"",
	"pluck":                      "pluck \"a\" (dict \"a\" 1) (dict \"b\" 2) (dict \"a\" 3)",
	"plural":                     "plural \"one\" \"many\" 1\nplural \"one\" \"many\" 2",
	"prepend":                    "prepend (list 1) 0",
	"push":                       "push (list 1) 2",
	"quote":                      "quote \"a\\\"b\" 1 nil true\nquote .Values.n\nquote .Values.million\nquote nil",
	"regexFind":                  "regexFind \"[a-z]+\" \"12ab\"\nregexFind \"x\" \"a\"",
	"regexFindAll":               "regexFindAll \"[0-9]\" \"1a2b3\" 2",
	"regexMatch":                 "regexMatch \"^[a-z]+$\" \"abc\"",
	"regexQuoteMeta":             "regexQuoteMeta \"1.2.3\"",
	"regexReplaceAll":            "regexReplaceAll \"a(x*)b\" \"-ab-axxb-\" \"${1}W\"",
	"regexReplaceAllLiteral":     "regexReplaceAllLiteral \"a(x*)b\" \"-ab-\" \"${1}\"",
	"regexSplit":                 "regexSplit \"z+\" \"pizza\" -1",
	"repeat":                     "repeat 3 \"ab\"\nrepeat 0 \"a\"",
	"replace":                    "replace \" \" \"-\" \"a b c\"",
	"required":                   "required \"needed\" 0\nrequired \"needed\" \"\"\nrequired \"needed\" nil",
	"rest":                       "rest (list 1 2 3)\nrest (list)",
	"reverse":                    "reverse (list 1 2 3)",
	"round":                      "round 123.555555 3\nround 123.5555 2 0.6\nround \"1.5\" 0",
	"semver":                     "(semver \"v1.2.3-beta.1+c0ff33\").Minor\nsemver \"x\"\n(semver .Capabilities.KubeVersion.Version).Major",
	"semverCompare":              "semverCompare \"^1.2.0\" \"1.3.0\"\nsemverCompare \">=1.30-0\" .Capabilities.KubeVersion.Version\nsemverCompare \">=1.40-0\" .Capabilities.KubeVersion.Version\nsemverCompare \"x\" \"1\"\nsemverCompare \">=1.19.0\" .Capabilities.KubeVersion.GitVersion",
	"seq":                        "seq 5\nseq 2 5\nseq 0 2 6\nseq 5 1\nseq",
	"set":                        "set (dict \"a\" 1) \"b\" 2",
	"sha1sum":                    "sha1sum \"a\"",
	"sha256sum":                  "sha256sum \"a\"",
	"sha512sum":                  "sha512sum \"a\"",
	"slice":                      "slice (list 1 2 3 4) 1 3\nslice (list 1 2) 1\nslice \"abc\" 1 2",
	"snakecase":                  "snakecase \"FirstName HTTPServer\"",
	"sortAlpha":                  "sortAlpha (list \"c\" \"a\" \"B\")\nsortAlpha (list 10 9 1)\nsortAlpha \"x\"",
	"split":                      "(split \".\" \"a.b.c\")._1\nsplit \".\" \"a.b\"",
	"splitList":                  "splitList \"$\" \"foo$bar\"",
	"splitn":                     "splitn \"$\" 2 \"a$b$c\"",
	"squote":                     "squote \"a\" 1 nil\nsquote .Values.million",
	"sub":                        "sub 5 2\nsub \"5\" 1.9",
	"subf":                       "subf 7.5 2 3",
	"substr":                     "substr 0 3 \"hello\"\nsubstr -1 3 \"hello\"\nsubstr 2 -1 \"hello\"",
	"swapcase":                   "swapcase \"Hello World\"",
	"ternary":                    "ternary \"a\" \"b\" true\nfalse | ternary \"a\" \"b\"",
	"title":                      "title \"hello world\"",
	"toDecimal":                  "toDecimal \"0777\"\ntoDecimal \"x\"",
	"toJson":                     "toJson .Values\ntoJson (dict \"b\" 1 \"a\" \"<>&\")\ntoJson nil",
	"toPrettyJson":               "toPrettyJson (dict \"a\" (list 1 2))",
	"toRawJson":                  "toRawJson (dict \"a\" \"<>&\")",
	"toString":                   "toString 1.5\ntoString nil\ntoString (list 1)\ntoString .Values.million\ntoString .Values.big",
	"toStrings":                  "toStrings (list 1 \"a\" nil true)\ntoStrings \"x\"",
	"toToml":                     "toToml (dict \"a\" 1 \"b\" (dict \"c\" (list \"d\")))\ntoToml .Values.t\ntoToml \"x\"",
	"toYaml":                     "toYaml .Values\ntoYaml (list (dict \"a\" 1 \"b\" (list)) \"x\")\ntoYaml nil\ntoYaml \"a: b\"\ntoYaml .Values.million\ntoYaml (dict \"s\" \"on\" \"n\" \"12\" \"d\" \"2020-01-02\" \"m\" \"a\\nb\\n\")",
	"toYamlPretty":               "toYamlPretty (dict \"a\" (list 1 (dict \"b\" 2)))\ntoYamlPretty .Values.t",
	"tpl":                        "tpl \"{{ .Values.word }}-{{ include \\\"t.name\\\" . }}\" .\ntpl (toYaml .Values.templated) .\ntpl \"{{ define \\\"own\\\" }}o{{ end }}{{ template \\\"own\\\" }}\" .\ntpl \"{{\" .\ntpl \"{{ .Values.missing }}.\" .",
	"trim":                       "trim \"  a  \"",
	"trimAll":                    "trimAll \"$\" \"$5.00$\"",
	"trimPrefix":                 "trimPrefix \"-\" \"-a\"",
	"trimSuffix":                 "trimSuffix \"-\" \"a-\"",
	"trimall":                    "trimall \"$\" \"$5$\"",
	"trunc":                      "trunc 3 \"hello\"\ntrunc -3 \"hello\"\ntrunc 10 \"a\"",
	"tuple":                      "tuple 1 \"a\"",
	"typeIs":                     "typeIs \"float64\" .Values.n\ntypeIs \"string\" .Values.word",
	"typeIsLike":                 "typeIsLike \"float64\" .Values.n\ntypeIsLike \"*int\" 1",
	"typeOf":                     "typeOf 1\ntypeOf .Values.n\ntypeOf .Values.l\ntypeOf .Values.t\ntypeOf nil\ntypeOf .Chart.Name",
	"uniq":                       "uniq (list 1 1 \"a\" \"a\" nil nil)",
	"unixEpoch":                  "unixEpoch \"x\"",
	"unset":                      "unset (dict \"a\" 1 \"b\" 2) \"a\"",
	"until":                      "until 3\nuntil -2",
	"untilStep":                  "untilStep 3 6 2\nuntilStep 6 3 -1",
	"untitle":                    "untitle \"Hello World\"",
	"upper":                      "upper \"hello\"",
	"urlJoin":                    "urlJoin (dict \"scheme\" \"https\" \"host\" \"h:1\" \"path\" \"/p\" \"query\" \"q=1\" \"fragment\" \"f\" \"userinfo\" \"u:p\")",
	"urlParse":                   "urlParse \"https://u:p@h:80/p?q=1#f\"\nurlParse \"%\"",
	"values":                     "values (dict \"a\" 1)",
	"without":                    "without (list 1 2 3 2) 2",
	"wrap":                       "wrap 5 \"hello big world\"",
	"wrapWith":                   "wrapWith 5 \"\\t\" \"hello big world\"",
	"and":                        "and 1 0\nand \"a\" \"b\"\nand false (fail \"short\")",
	"or":                         "or 0 \"x\"\nor \"a\" (fail \"short\")",
	"not":                        "not 0\nnot \"a\"",
	"eq":                         "eq 1 1\neq 1 2 1\neq \"a\" 1\neq .Values.n 3.0\neq .Values.n 3\neq nil .Values.missing\neq (list) (list)",
	"ne":                         "ne 1 2\nne \"a\" \"a\"",
	"lt":                         "lt 1 2\nlt \"a\" \"b\"\nlt 1 1.5\nlt nil 1",
	"le":                         "le 2 2",
	"gt":                         "gt .Values.f 1.0\ngt 1 2",
	"ge":                         "ge 2 2\nge (list) 1",
	"len":                        "len .Values.l\nlen .Values.t\nlen \"abc\"\nlen 3\nlen nil",
	"index":                      "index .Values.l 1\nindex .Values \"t\" \"deep\" \"er\"\nindex .Values.l 9\nindex .Values.missing \"a\"\nindex \"abc\" 1",
	"call":                       "call 1\ncall .Files.Get \"a.txt\"",
	"html":                       "html \"<a b='c'>\"\nhtml .Values.t",
	"js":                         "js \"it's </script>\"",
	"urlquery":                   "urlquery \"a b&c\"",
	"print":                      "print 1 2 \"a\" \"b\" 3\nprint nil\nprint .Values.million",
	"printf":                     "printf \"%d %s %v %q %5.2f %t %x\" 1 \"a\" (list 1) \"q\" 1.5 true 255\nprintf \"%d\" .Values.n\nprintf \"%v %s\" .Values.million .Values.big\nprintf \"%.0f\" .Values.million\nprintf \"%s\"\nprintf \"%T\" .Values.n\nprintf \"%-5s|%05d|%+d\" \"a\" 42 7",
	"println":                    "println \"a\" 1",
}

// TestEveryFunctionIsHelms calls every function of Helm. It fails if Helm adds a function that
// is not tested here, or refused with a reason.
func TestEveryFunctionIsHelms(t *testing.T) {
	names := append(slices.Collect(maps.Keys(helmFunctions())), strings.Fields(languageFunctions)...)
	slices.Sort(names)
	no := refused()
	for _, name := range names {
		if _, isRefused := no[name]; isRefused {
			t.Run(name, func(t *testing.T) {
				_, err := loaded(t, minimal(settings("{{ "+name+" }}"))).Render(inputOfCluster1())
				if err == nil || !strings.Contains(err.Error(), name+" is not available in a package") {
					t.Errorf("got %v", err)
				}
			})
			continue
		}
		if calls[name] == "" {
			t.Errorf("function %s of Helm's is not compared", name)
		}
		for expression := range strings.SplitSeq(calls[name], "\n") {
			t.Run(name+"/"+expression, func(t *testing.T) { sameExpression(t, expression) })
		}
	}
	for name := range calls {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no function of Helm's", name)
		}
	}
}

// sameExpression renders an expression with both engines.
func sameExpression(t *testing.T, expression string) {
	t.Helper()
	from := minimal("it: {{ "+expression+" }}\n").
		with("values.yaml", "n: 3\nf: 1.25\nbig: 9007199254740993\nmillion: 1000000\nword: w\nl: [a, 1, true]\nt: {a: 1, deep: {er: x}}\ntemplated: {k: \"{{ .Values.word }}\"}\n").
		with("templates/_t.tpl", `{{ define "t.name" }}{{ .Chart.Name }}-{{ .Release.Name }}{{ end }}{{ define "t.dict" }}{{ .a }}{{ .root.Values.n }}{{ end }}`).
		with("a.txt", "A")
	in := inputOfCluster1()
	c := loaded(t, from)
	ours, _, err := c.texts(&execution{}, in)
	theirs, helmErr := helmTexts(t, c, in)
	const file = "hello/templates/it.yaml"
	switch {
	case (err == nil) != (helmErr == nil):
		t.Errorf("Helm's error is %v, ours %v (Helm renders %q, ours %q)", helmErr, err, theirs[file], ours[file])
	case err == nil && ours[file] != theirs[file]:
		t.Errorf("Helm renders %q, ours %q", theirs[file], ours[file])
	}
}
