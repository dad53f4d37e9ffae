package variable

import (
	"fmt"
	"strings"
)

// TypedAnnotation on an AddOnTemplate declares variables that are not strings, as NAME=type pairs:
// "REPLICAS=integer,DEBUG=boolean". A string of the template that is exactly "{{NAME}}" becomes a value of that type;
// inside a longer string the variable stays text. To use the same value as a string too, such as in an environment
// variable, declare a second variable.
const TypedAnnotation = "addonflow.io/typed-variables"

// ParseTyped reads the value of TypedAnnotation: name to type.
func ParseTyped(value string) (map[string]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	typed := map[string]string{}
	for entry := range strings.SplitSeq(value, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(entry), "=")
		switch {
		case !IsName(name):
			return nil, fmt.Errorf("cannot read typed variables: %q is not NAME=type", entry)
		case kind != TypeInteger && kind != TypeNumber && kind != TypeBoolean:
			return nil, fmt.Errorf("cannot read typed variables: type %q of %s is none of %s, %s, %s",
				kind, name, TypeInteger, TypeNumber, TypeBoolean)
		case typed[name] != "":
			return nil, fmt.Errorf("cannot read typed variables: %s is declared twice", name)
		case name == ClusterName || name == InstallNamespace:
			return nil, fmt.Errorf("cannot read typed variables: %s is a string", name)
		}
		typed[name] = kind
	}
	return typed, nil
}

// Types with which a variable can be declared.
const (
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
)
