package strict

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// The fields of every object.
const (
	apiVersionKey = "apiVersion"
	kindKey       = "kind"
	metadataKey   = "metadata"
	labelsKey     = "labels"
	nameKey       = "name"
	specKey       = "spec"
	statusKey     = "status"
)

// selectorKey is where a workload or Service says which pods are its own.
const selectorKey = "selector"

// typeString is the name of text in JSON schemas.
const typeString = "string"

// Flaws compares a value with the Go type it will be decoded into, for kinds without an embedded
// schema: unknown fields (by case) and wrong types, each with its path. encoding/json would match
// fields whatever their case, stop at the first wrong type and lose the index. A null field counts
// as absent, as in the API server; a null item of a list is a flaw.
func Flaws(at flaw.Path, value any, want reflect.Type) []flaw.Flaw {
	return strictness{}.flaws(at, value, want)
}

// strictness is how values are compared with types.
type strictness struct {
	// manifest: the value is a manifest of a template, in whose strings variables stand.
	manifest *Declarations
	// known are the fields of structs that were looked up before; nil: none were.
	known map[reflect.Type]map[string]reflect.Type
	// rules for values of the right type.
	rules map[fieldOf]valueRule
}

// flaws judges a value by its type, and then by the rule for the type.
func (s strictness) flaws(at flaw.Path, value any, want reflect.Type) []flaw.Flaw {
	if value == nil {
		return nil
	}
	return s.ruled(at, value, fieldOf{of: want}, s.typeFlaws(at, value, want))
}

// ruled returns the flaws of a value's type; if there are none, those that the value rule of the field finds.
func (s strictness) ruled(at flaw.Path, value any, of fieldOf, flaws []flaw.Flaw) []flaw.Flaw {
	if rule, ruled := s.rules[of]; ruled && len(flaws) == 0 {
		return rule(at, value)
	}
	return flaws
}

func (s strictness) typeFlaws(at flaw.Path, value any, want reflect.Type) []flaw.Flaw {
	if found, special := s.special(at, value, want); special {
		return found
	}
	if text, isString := value.(string); isString && s.manifest != nil && want.Kind() != reflect.Pointer {
		return s.manifest.text(at, text, want.Kind())
	}
	switch want.Kind() {
	case reflect.Interface:
		return nil // any value
	case reflect.Pointer:
		return s.flaws(at, value, want.Elem())
	case reflect.Struct:
		return s.object(at, value, want)
	case reflect.Map:
		return s.entries(at, value, want)
	case reflect.Slice:
		return s.list(at, value, want)
	default:
		return strictScalar(at, value, want)
	}
}

// special judges the types that have a form of their own in JSON.
func (s strictness) special(at flaw.Path, value any, want reflect.Type) (found []flaw.Flaw, special bool) {
	switch want {
	case reflect.TypeFor[metav1.Duration]():
		return nil, true // paceFlaws checks it
	case reflect.TypeFor[intstr.IntOrString]():
		if s.manifest == nil {
			return nil, true // paceFlaws checks it
		}
		return alternativeFlaws(at, value), true
	case reflect.TypeFor[resource.Quantity]():
		return quantityFlaws(at, value), true
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return strictScalar(at, value, reflect.TypeFor[string]()), true
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return nil, true
	case reflect.TypeFor[[]byte]():
		return base64Flaws(at, value), true
	}
	return nil, false
}

func (s strictness) object(at flaw.Path, value any, want reflect.Type) []flaw.Flaw {
	object, isObject := value.(map[string]any)
	if !isObject {
		return []flaw.Flaw{typeFlaw(at, "object", value)}
	}
	fields, collected := s.known[want]
	if !collected {
		fields = jsonFields(want)
	}
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if typed, known := fields[key]; known {
			child := at.Child(key)
			flaws = append(flaws, s.ruled(child, object[key], fieldOf{want, key}, s.flaws(child, object[key], typed))...)
		} else if s.manifest == nil || !s.manifest.takes(key) {
			flaws = append(flaws, s.unknown(at, key, declarableFields(want, fields)))
		}
	}
	return flaws
}

// unknown is the flaw of a field that is not known. A cluster may know the field of a
// manifest for which there is no better hint.
func (s strictness) unknown(at flaw.Path, key string, known []string) flaw.Flaw {
	f := UnknownField(at, key, known)
	if s.manifest != nil && f.Hint == "" {
		f.Hint = newerHint(key)
	}
	return f
}

// declarableFields are the fields of a struct that a commit may declare, for hints.
func declarableFields(want reflect.Type, fields map[string]reflect.Type) []string {
	names := slices.Collect(maps.Keys(fields))
	return slices.DeleteFunc(names, func(name string) bool {
		return want == reflect.TypeFor[v1alpha1.AddOnRolloutSpec]() && slices.Contains(WrittenFields(), name)
	})
}

// jsonFields are the fields of a struct by JSON name. Embedded structs are followed
// by hand: reflect.VisibleFields hides a field that has its embedded struct's name,
// as OCM's MandatoryDecisionGroups has, and JSON does not.
func jsonFields(want reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range want.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			maps.Copy(fields, jsonFields(f.Type))
		case name != "" && name != "-" && f.IsExported():
			fields[name] = f.Type
		}
	}
	return fields
}

func (s strictness) entries(at flaw.Path, value any, want reflect.Type) []flaw.Flaw {
	entries, isMap := value.(map[string]any)
	if !isMap {
		return []flaw.Flaw{typeFlaw(at, "object", value)}
	}
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		flaws = append(flaws, s.flaws(at.Child(key), entries[key], want.Elem())...)
	}
	return flaws
}

func (s strictness) list(at flaw.Path, value any, want reflect.Type) []flaw.Flaw {
	items, isList := value.([]any)
	if !isList {
		return []flaw.Flaw{typeFlaw(at, "array", value)}
	}
	var flaws []flaw.Flaw
	for i, item := range items {
		if item == nil && s.manifest == nil {
			flaws = append(flaws, flaw.Flaw{Field: at.Index(i), Reason: flaw.ReasonInvalidType, Message: "must not be null"})
		}
		flaws = append(flaws, s.flaws(at.Index(i), item, want.Elem())...)
	}
	return flaws
}

func strictScalar(at flaw.Path, value any, want reflect.Type) []flaw.Flaw {
	got := jsonType(value)
	switch want.Kind() {
	case reflect.String:
		if got != typeString {
			return []flaw.Flaw{typeFlaw(at, typeString, value)}
		}
	case reflect.Bool:
		if got != variable.TypeBoolean {
			return []flaw.Flaw{typeFlaw(at, variable.TypeBoolean, value)}
		}
	case reflect.Float32, reflect.Float64:
		if got != variable.TypeInteger && got != variable.TypeNumber {
			return []flaw.Flaw{typeFlaw(at, variable.TypeNumber, value)}
		}
	default:
		number, isInteger := value.(int64)
		if !isInteger {
			return []flaw.Flaw{typeFlaw(at, variable.TypeInteger, value)}
		}
		if zero := reflect.Zero(want); zero.CanInt() && zero.OverflowInt(number) {
			return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidType, Message: "is too large for an " + want.Kind().String()}}
		}
	}
	return nil
}

// alternativeFlaws requires a number or a string, as a port or a percentage has it.
func alternativeFlaws(at flaw.Path, value any) []flaw.Flaw {
	if got := jsonType(value); got == variable.TypeInteger || got == typeString {
		return nil
	}
	return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidType, Message: "must be an integer or a string"}}
}

// quantityFlaws wants an amount of a resource.
func quantityFlaws(at flaw.Path, value any) []flaw.Flaw {
	f := flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidType, Message: flaw.Shown(value) + " is not a quantity", Hint: "such as 100m, 2 or 64Mi"}
	switch text, isString := value.(string); {
	case isString && len(variable.References(text)) > 0:
		return nil
	case isString:
		// The type is right, and the value may be that of a variable.
		f.Reason = flaw.ReasonInvalidManifest
		if _, err := resource.ParseQuantity(strings.TrimSpace(text)); err == nil { // as decoding does
			return nil
		}
	case jsonType(value) == variable.TypeInteger || jsonType(value) == variable.TypeNumber:
		return nil
	}
	return []flaw.Flaw{f}
}

func base64Flaws(at flaw.Path, value any) []flaw.Flaw {
	text, isString := value.(string)
	if !isString {
		return []flaw.Flaw{typeFlaw(at, typeString, value)}
	}
	if len(variable.References(text)) > 0 {
		return nil // what it becomes is the cluster's
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidManifest, Message: "is not base64"}}
	}
	return nil
}

func typeFlaw(at flaw.Path, want string, value any) flaw.Flaw {
	message, hint := MustBe(want, jsonType(value))
	return flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidType, Message: message, Hint: hint}
}

// jsonType returns the JSON name of the type of an unstructured value.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return typeString
	case bool:
		return variable.TypeBoolean
	case int64, int:
		return variable.TypeInteger
	case float64:
		return variable.TypeNumber
	case []any:
		return "array"
	default:
		return "object"
	}
}

// MustBe says which type a value must have, and how to give it if it was meant as
// a string: YAML reads an unquoted no, 1.10 or 010 as something else.
func MustBe(want, got string) (message, hint string) {
	article := "a "
	if strings.HasPrefix(want, "array") || strings.HasPrefix(want, "object") || strings.HasPrefix(want, "integer") {
		article = "an "
	}
	if want == "string" && (got == "boolean" || got == "integer" || got == "number") {
		return "must be a string", "quote it"
	}
	return "must be " + article + strings.ReplaceAll(want, ",", " or ") + ", not " + got, ""
}

// WrittenFields are the fields of an AddOnRollout's spec that AddonFlow writes.
func WrittenFields() []string {
	return []string{"install", "placementDigest", "policyCommit", "removal", "target"}
}

// UnknownField is the flaw of a field whose parent knows the given ones.
func UnknownField(parent flaw.Path, key string, known []string) flaw.Flaw {
	f := flaw.Flaw{
		Field: parent.Child(key), Reason: flaw.ReasonUnknownField,
		Message: "unknown field", Hint: flaw.DidYouMean(key, known),
	}
	if hint := ProposedHint(f.Field, known); hint != "" {
		f.Hint = hint
	}
	return f
}

// Convert reads unstructured JSON into a typed value.
func Convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("cannot encode: %w", err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("cannot decode: %w", err)
	}
	return nil
}
