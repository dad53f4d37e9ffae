package render

import (
	"strconv"
	"strings"
)

// The fields of every object.
const (
	apiVersionKey = "apiVersion"
	kindKey       = "kind"
	metadataKey   = "metadata"
	labelsKey     = "labels"
	nameKey       = "name"
	namespaceKey  = "namespace"
	specKey       = "spec"
	statusKey     = "status"
)

// fieldPath is the path of a field in an object, spec.list[2].name, as problems
// show it and Located.Position takes it. "" is the object itself.
type fieldPath string

// child is the path of a field, or of a key of a map: labels[example.com/team].
func (p fieldPath) child(key string) fieldPath {
	if !plainKey.MatchString(key) {
		return p + fieldPath("["+key+"]")
	}
	if p == "" {
		return fieldPath(key)
	}
	return p + fieldPath("."+key)
}

func (p fieldPath) index(i int) fieldPath {
	return p + fieldPath("["+strconv.Itoa(i)+"]")
}

// under reports whether p is the given path or a field below it.
func (p fieldPath) under(parent fieldPath) bool {
	rest, found := strings.CutPrefix(string(p), string(parent))
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// last is the name of the field itself.
func (p fieldPath) last() string {
	return string(p[strings.LastIndexAny(string(p), ".[")+1:])
}

// position is the index a path ends in, -1 if it ends in none.
func (p fieldPath) position() int {
	open := strings.LastIndexByte(string(p), '[')
	i, err := strconv.Atoi(strings.TrimSuffix(string(p[open+1:]), "]"))
	if err != nil {
		return -1
	}
	return i
}
