package render

import (
	"encoding/base64"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// strictFlaws compares a value with the Go type it will be decoded into, for kinds
// without an embedded schema: unknown fields (by case) and wrong types, each with
// its path. encoding/json would match fields whatever their case, stop at the
// first wrong type and lose the index. A null field is an absent one, as in the API
// server; a null item of a list is nothing.
func strictFlaws(at fieldPath, value any, want reflect.Type) []flaw {
	if value == nil {
		return nil
	}
	switch want {
	case reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Duration]():
		return nil // paceFlaws checks these
	case reflect.TypeFor[[]byte]():
		return base64Flaws(at, value)
	}
	switch want.Kind() {
	case reflect.Interface:
		return nil // any value
	case reflect.Pointer:
		return strictFlaws(at, value, want.Elem())
	case reflect.Struct:
		return strictObject(at, value, want)
	case reflect.Map:
		return strictMap(at, value, want)
	case reflect.Slice:
		return strictList(at, value, want)
	default:
		return strictScalar(at, value, want)
	}
}

func strictObject(at fieldPath, value any, want reflect.Type) []flaw {
	object, isObject := value.(map[string]any)
	if !isObject {
		return []flaw{typeFlaw(at, "object", value)}
	}
	fields := jsonFields(want)
	var flaws []flaw
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if typed, known := fields[key]; known {
			flaws = append(flaws, strictFlaws(at.child(key), object[key], typed)...)
		} else {
			flaws = append(flaws, unknownField(at, key, slices.Collect(maps.Keys(fields))))
		}
	}
	return flaws
}

// jsonFields are the fields of a struct by JSON name. Embedded structs are followed
// by hand: reflect.VisibleFields hides a field that has its embedded struct's name,
// as OCM's MandatoryDecisionGroups has, and JSON does not.
func jsonFields(want reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range want.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			maps.Copy(fields, jsonFields(f.Type))
		case name != "" && name != "-" && f.IsExported():
			fields[name] = f.Type
		}
	}
	return fields
}

func strictMap(at fieldPath, value any, want reflect.Type) []flaw {
	entries, isMap := value.(map[string]any)
	if !isMap {
		return []flaw{typeFlaw(at, "object", value)}
	}
	var flaws []flaw
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		flaws = append(flaws, strictFlaws(at.child(key), entries[key], want.Elem())...)
	}
	return flaws
}

func strictList(at fieldPath, value any, want reflect.Type) []flaw {
	items, isList := value.([]any)
	if !isList {
		return []flaw{typeFlaw(at, "array", value)}
	}
	var flaws []flaw
	for i, item := range items {
		if item == nil {
			flaws = append(flaws, flaw{field: at.index(i), reason: ReasonInvalidType, message: "must not be null"})
		}
		flaws = append(flaws, strictFlaws(at.index(i), item, want.Elem())...)
	}
	return flaws
}

func strictScalar(at fieldPath, value any, want reflect.Type) []flaw {
	got := jsonType(value)
	switch want.Kind() {
	case reflect.String:
		if got != "string" {
			return []flaw{typeFlaw(at, "string", value)}
		}
	case reflect.Bool:
		if got != "boolean" {
			return []flaw{typeFlaw(at, "boolean", value)}
		}
	default:
		number, isInteger := value.(int64)
		if !isInteger {
			return []flaw{typeFlaw(at, "integer", value)}
		}
		if reflect.Zero(want).OverflowInt(number) {
			return []flaw{{field: at, reason: ReasonInvalidType, message: "is too large for an " + want.Kind().String()}}
		}
	}
	return nil
}

func base64Flaws(at fieldPath, value any) []flaw {
	text, isString := value.(string)
	if !isString {
		return []flaw{typeFlaw(at, "string", value)}
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return []flaw{{field: at, reason: ReasonInvalidManifest, message: "is not base64"}}
	}
	return nil
}

func typeFlaw(at fieldPath, want string, value any) flaw {
	message, hint := mustBe(want, jsonType(value))
	return flaw{field: at, reason: ReasonInvalidType, message: message, hint: hint}
}

// jsonType is what JSON calls the type of an unstructured value.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64, int:
		return "integer"
	case float64:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}
