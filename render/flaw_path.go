package render

import (
	"regexp"
	"strconv"
	"strings"
)

// fieldPath is the path of a field in an object, spec.list[2].name, as problems
// show it and Located.Position takes it. "" is the object itself.
type fieldPath string

// child is the path of a field, or of a key of a map: labels[example.com/team].
func (p fieldPath) child(key string) fieldPath {
	if !plainKey(key) {
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

// parent is the object or list that holds the field.
func (p fieldPath) parent() fieldPath {
	if strings.HasSuffix(string(p), "]") {
		return p[:strings.LastIndexByte(string(p), '[')]
	}
	return p[:max(0, strings.LastIndexByte(string(p), '.'))]
}

// steps are the keys and indexes that lead to the field.
func (p fieldPath) steps() []string {
	var steps []string
	for rest := string(p); rest != ""; {
		switch rest[0] {
		case '.':
			rest = rest[1:]
		case '[':
			inside, after, _ := strings.Cut(rest[1:], "]")
			steps, rest = append(steps, inside), after
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			steps, rest = append(steps, rest[:end]), rest[end:]
		}
	}
	return steps
}

// in returns the value of the field in an object, nil where there is none.
func (p fieldPath) in(object map[string]any) any {
	value := any(object)
	for _, name := range p.steps() {
		value = step(value, name)
	}
	return value
}

// step returns what an object or list has under a key or index, nil for nothing.
func step(value any, name string) any {
	switch value := value.(type) {
	case map[string]any:
		return value[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(value) {
			return value[i]
		}
	}
	return nil
}

// removeFrom deletes the field from an object, and of an item of a list the whole list,
// so that no other item gets its place.
func (p fieldPath) removeFrom(object map[string]any) {
	var parent map[string]any
	key, value := "", any(object)
	for _, name := range p.steps() {
		if fields, isObject := value.(map[string]any); isObject {
			parent, key = fields, name
		}
		if value = step(value, name); value == nil {
			break
		}
	}
	if parent != nil && value != nil {
		delete(parent, key)
	}
}

// plain is a map key that reads well after a dot in a field path.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// plainKey reports whether a map key reads well after a dot in a field path.
func plainKey(key string) bool { return plain.MatchString(key) }
