package chart

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// Why a function that Helm has is refused here.
const (
	randomHint = "set the value in the package, or keep it in a Secret on the managed cluster"
	clockHint  = "a rendering must be the same tomorrow"
	lookupHint = "a package is rendered without asking a cluster; pass what it needs as a value"
	dnsHint    = "pass the address as a value"
	cryptoHint = "keys and passwords do not belong into a manifest"
)

// refused are Helm's functions whose result is not given by their arguments, or that
// would put a secret into a ManifestWork, each with what to do instead. They are
// refused when they are called, not where they are written.
func refused() map[string]string {
	out := map[string]string{"lookup": lookupHint, "getHostByName": dnsHint}
	for hint, names := range map[string]string{
		randomHint: "randAlphaNum randAlpha randAscii randNumeric randInt randBytes shuffle uuidv4",
		clockHint:  "now ago date date_in_zone dateInZone htmlDate htmlDateInZone toDate mustToDate durationRound",
		cryptoHint: "bcrypt htpasswd derivePassword genPrivateKey buildCustomCert genCA genCAWithKey genSelfSignedCert " +
			"genSelfSignedCertWithKey genSignedCert genSignedCertWithKey encryptAES decryptAES",
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = hint
		}
	}
	return out
}

// shallow are the functions that look at their arguments, or put them somewhere,
// without walking into them.
const shallow = " include tpl required fail default coalesce ternary empty all any kindIs kindOf typeOf typeIs typeIsLike " +
	"get set unset hasKey dict list tuple pluck pick omit keys values dig first mustFirst rest mustRest last mustLast " +
	"initial mustInitial append mustAppend push mustPush prepend mustPrepend concat reverse mustReverse slice mustSlice chunk mustChunk "

// keyed are the shallow functions of which a text among the arguments is a name
// that is looked up.
const keyed = " include get unset hasKey pluck pick omit dig kindIs typeIs typeIsLike "

// transparent are the functions that carry a text on as it is: what they return for
// one name of a cluster is what they return for another, with the name replaced.
const transparent = " print println quote squote cat toString toStrings join indent nindent trim lower " +
	"toYaml mustToYaml toYamlPretty toJson toRawJson toPrettyJson mustToJson mustToRawJson mustToPrettyJson " +
	"deepCopy mustDeepCopy merge mustMerge mergeOverwrite mustMergeOverwrite "

func among(list, name string) bool { return strings.Contains(list, " "+name+" ") }

// formats are Helm's functions of one argument that write or read a format.
const formats = " toYaml mustToYaml toYamlPretty fromYaml fromYamlArray toJson mustToJson fromJson fromJsonArray toToml mustToToml fromToml "

// helmsOwn are the functions that stay Helm's, and those of the language that stay Go's:
// what goes into them is seen, see instrument. One that Helm has and that is neither
// among these nor among ours cannot be named.
const helmsOwn = formats + "include tpl and or not len index slice call eq ne lt le gt ge"

// functions are sprig's and Go's, each behind a guard, which Helm's engine takes over its own.
func (x *execution) functions() template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	maps.Copy(all, template.FuncMap{
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
		"keys": x.keys, "values": x.values, "typeOf": typeOf, "typeIs": typeIs, "typeIsLike": typeIsLike,
	})
	out := make(template.FuncMap, len(all))
	for name, function := range all {
		if among(formats, name) {
			continue
		}
		out[name] = x.guard(name, function)
	}
	for name, hint := range refused() {
		out[name] = func(...any) (any, error) {
			return nil, &refusal{name + " is not available in a package", hint}
		}
	}
	out["required"], out["fail"] = required, fail
	return out
}

// typeOf is sprig's, with Helm's name for what stands here in the place of its type.
func typeOf(v any) string {
	return strings.ReplaceAll(fmt.Sprintf("%T", v), "chart.capabilities", "common.Capabilities")
}

func typeIs(name string, v any) bool { return name == typeOf(v) }

func typeIsLike(name string, v any) bool { return typeIs(name, v) || typeIs("*"+name, v) }

func required(message string, value any) (any, error) {
	if text, isText := value.(string); value == nil || isText && text == "" {
		return value, said(message)
	}
	return value, nil
}

// fail says what a chart says. The space keeps Helm from reading it as an error of the
// language: it is taken out again.
func fail(message string) (string, error) { return "", said(message) }

// said is what a chart says, as far as it may be shown: an error is kept once for each
// level that it passes.
func said(message string) error {
	return &refusal{message: " " + message[:min(len(message), 2*shownMessage)]}
}

// keys is sprig's in a fixed order, which Go's maps have not; Verify turns it round
// to see whether the rendering hangs on it.
func (x *execution) keys(dicts ...map[string]any) []string {
	out := []string{}
	for _, dict := range dicts {
		out = append(out, x.ordered(dict)...)
	}
	return out
}

func (x *execution) values(dict map[string]any) []any {
	out := []any{}
	for _, key := range x.ordered(dict) {
		out = append(out, dict[key])
	}
	return out
}

func (x *execution) ordered(dict map[string]any) []string {
	names := slices.Sorted(maps.Keys(dict))
	if x.backwards {
		slices.Reverse(names)
	}
	return names
}

// guard returns a function of the same parameters that pays for what it does and
// notices what the name of the cluster decides.
func (x *execution) guard(name string, function any) any {
	inner := reflect.ValueOf(function)
	of := inner.Type()
	in := make([]reflect.Type, of.NumIn())
	for i := range in {
		in[i] = of.In(i)
	}
	call := inner.Call
	if of.IsVariadic() {
		call = inner.CallSlice
	}
	outer := reflect.FuncOf(in, []reflect.Type{of.Out(0), reflect.TypeFor[error]()}, of.IsVariadic())
	return reflect.MakeFunc(outer, func(args []reflect.Value) []reflect.Value {
		plain := flat(args, of.IsVariadic())
		if err := x.before(name, plain); err != nil {
			return []reflect.Value{reflect.Zero(of.Out(0)), reflect.ValueOf(&err).Elem()}
		}
		results := call(args)
		var err error
		if len(results) > 1 {
			err, _ = reflect.TypeAssert[error](results[1])
		}
		if err != nil && len(err.Error()) > 2*shownMessage {
			err = said(err.Error())
		}
		result := results[0]
		if err == nil && result.Kind() == reflect.String {
			err = x.budget.produce(int64(result.Len()))
			if x.mark != "" && (name == "quote" || name == "printf") {
				result = reflect.ValueOf(strings.ReplaceAll(result.String(), quotedMark, x.mark)).Convert(result.Type())
			}
		}
		return []reflect.Value{result, reflect.ValueOf(&err).Elem()}
	}).Interface()
}

// flat returns arguments as values, those of a variadic function each for itself.
func flat(args []reflect.Value, variadic bool) []any {
	out := make([]any, 0, len(args))
	for i, arg := range args {
		if variadic && i == len(args)-1 {
			for j := range arg.Len() {
				out = append(out, arg.Index(j).Interface())
			}
			break
		}
		out = append(out, arg.Interface())
	}
	return out
}

// before pays for a call and judges its arguments.
func (x *execution) before(name string, args []any) error {
	if err := x.budget.step(1 + int64(len(args))); err != nil {
		return err
	}
	if among(shallow, name) {
		if err := x.noticeShallow(name, args); err != nil {
			return err
		}
		if err := x.payKeys(name, args); err != nil {
			return err
		}
		return x.payLists(args)
	}
	inValue, inKey, before := false, false, x.budget.steps
	for _, arg := range args {
		value, key, err := x.budget.walk(arg, x.mark)
		if err != nil {
			return err
		}
		inValue, inKey = inValue || value, inKey || key
	}
	if inKey || inValue && !x.carries(name, args) {
		x.alone = true
	}
	if err := x.budget.step((before - x.budget.steps) * comparisons(name, args) / compared); err != nil {
		return err
	}
	return x.bound(name, args)
}

// compared is how many comparisons one step pays for.
const compared = 8

// comparisons is with how many others a function compares each part of its arguments.
func comparisons(name string, args []any) int64 {
	most := 0
	switch name {
	case "without", "mustWithout":
		return int64(len(args))
	case "uniq", "mustUniq": // with those of the list
	default:
		return 0
	}
	for _, arg := range args {
		if v := reflect.ValueOf(arg); v.Kind() == reflect.Slice {
			most = max(most, v.Len())
		}
	}
	return int64(most)
}

// payKeys pays for the keys of a dict, which are written out whatever they are.
func (x *execution) payKeys(name string, args []any) error {
	if name != "dict" {
		return nil
	}
	for i := 0; i < len(args); i += 2 {
		if _, isText := args[i].(string); isText {
			continue
		}
		if _, _, err := x.budget.walk(args[i], x.mark); err != nil {
			return err
		}
	}
	return nil
}

// noticeShallow notices a name of the cluster that is looked up or becomes a key, and pays
// for the length of what is.
func (x *execution) noticeShallow(name string, args []any) error {
	for i, arg := range args {
		text, isText := arg.(string)
		if isText && x.marked(text) && (among(keyed, name) || (name == "dict" && i%2 == 0) || (name == "set" && i == 1)) {
			x.alone = true
		}
		if err := x.budget.step(int64(len(text) >> 10)); err != nil {
			return err
		}
	}
	return nil
}

// payLists pays for the lists that a function copies.
func (x *execution) payLists(args []any) error {
	for _, arg := range args {
		if v := reflect.ValueOf(arg); v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
			if err := x.budget.step(int64(v.Len() >> 2)); err != nil {
				return err
			}
		}
	}
	return nil
}

// carries reports whether a function carries the name of the cluster on unchanged.
func (x *execution) carries(name string, args []any) bool {
	last := ""
	if len(args) > 0 {
		last, _ = args[len(args)-1].(string)
	}
	switch name {
	case "trunc":
		most, isInt := args[0].(int)
		grown := len(last) + strings.Count(last, x.mark)*(longestName-len(x.mark))
		return isInt && most >= grown
	case "trimSuffix", "trimPrefix": // a name neither starts nor ends with a dash
		affix, _ := args[0].(string)
		return affix == "-"
	case "printf":
		format, _ := args[0].(string)
		return !x.marked(format) && plainFormat(format)
	default:
		return among(transparent, name)
	}
}

// plainFormat reports whether every verb of a format writes its argument as it is.
func plainFormat(format string) bool {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		if i++; i == len(format) || !strings.ContainsRune("svdqt%", rune(format[i])) {
			return false
		}
	}
	return true
}
