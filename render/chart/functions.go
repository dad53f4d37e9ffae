package chart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// Why some of Helm's functions are refused.
const (
	randomHint = "set the value in the package, or keep it in a Secret on the managed cluster"
	clockHint  = "a rendering must always be the same"
	lookupHint = "a package is rendered without asking a cluster; pass what it needs as a value"
	dnsHint    = "pass the address as a value"
	cryptoHint = "keys and passwords do not belong in a manifest"
)

// refused maps functions of Helm to a hint. Their result depends on more than their arguments, or they would put a
// secret into a ManifestWork. A chart is refused only when rendering calls one of them.
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

// verb matches a verb of a format. The group is set for %p.
var verb = regexp.MustCompile(`(?s)%[-+# 0]*(?:\[[^]]*\])?(?:\*|[0-9]*)(?:\.(?:\[[^]]*\])?(?:\*|[0-9]*))?(?:\[[^]]*\])?(.)`)

// functions override functions of Helm: the refused ones, those whose result is random in Helm, and those that would
// reveal that AddonFlow calls the engine.
func (x *execution) functions() template.FuncMap {
	out := template.FuncMap{
		"keys": x.keys, "values": x.values, "typeOf": typeOf, "typeIs": typeIs, "typeIsLike": typeIsLike,
		"printf": printf, "required": required, "fail": fail,
		enterFunction: x.entered, folderFunction: x.folder, calledFunction: called, needFunction: need, tplFunction: needing,
	}
	for name, hint := range refused() {
		out[name] = func(...any) (any, error) {
			return nil, &refusal{name + " is not available in a package", hint}
		}
	}
	return out
}

// printf is Go's without %p, because an address differs each time.
func printf(format string, args ...any) (string, error) {
	for _, at := range verb.FindAllStringSubmatch(format, -1) {
		if at[1] == "p" {
			return "", &refusal{"printf %p writes an address in memory, which differs each time", "write the value, or its type: typeOf"}
		}
	}
	return fmt.Sprintf(format, args...), nil
}

// typeOf is sprig's, with Helm's type names for the types that replace Helm's.
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

// fail returns the message of a chart. The leading space keeps Helm from reading it as an error
// of the template language; it is removed before the message is shown.
func fail(message string) (string, error) { return "", said(message) }

func said(message string) error { return &refusal{message: " " + message} }

// keys is sprig's in a fixed order, while the order of Go's maps is random. Verify reverses it.
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
