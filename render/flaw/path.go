package flaw

import (
	"regexp"
	"strconv"
	"strings"
)

// Path is the path of a field in an object, spec.list[2].name, as problems
// show it and Located.Position takes it. "" is the object itself.
type Path string

// Child is the path of a field, or of a key of a map: labels[example.com/team].
func (p Path) Child(key string) Path {
	if !plain.MatchString(key) {
		return p + Path("["+key+"]")
	}
	if p == "" {
		return Path(key)
	}
	return p + Path("."+key)
}

// Index is the path of an item of a list, counted from 0.
func (p Path) Index(i int) Path {
	return p + Path("["+strconv.Itoa(i)+"]")
}

// Under reports whether p is the given path or a field below it.
func (p Path) Under(parent Path) bool {
	rest, found := strings.CutPrefix(string(p), string(parent))
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Last is the name of the field itself.
func (p Path) Last() string {
	return string(p[strings.LastIndexAny(string(p), ".[")+1:])
}

// Position is the index at the end of a path, -1 if there is none.
func (p Path) Position() int {
	open := strings.LastIndexByte(string(p), '[')
	i, err := strconv.Atoi(strings.TrimSuffix(string(p[open+1:]), "]"))
	if err != nil {
		return -1
	}
	return i
}

// Steps are the keys and indexes that lead to the field.
func (p Path) Steps() []string {
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

// In returns the value of the field in an object, nil if there is none.
func (p Path) In(object map[string]any) any {
	value := any(object)
	for _, name := range p.Steps() {
		value = step(value, name)
	}
	return value
}

// step returns the value under a key or index of an object or list, nil if there is none.
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

// RemoveFrom deletes the field from an object. For an item of a list it deletes the whole list,
// so that no other item takes its index.
func (p Path) RemoveFrom(object map[string]any) {
	var parent map[string]any
	key, value := "", any(object)
	for _, name := range p.Steps() {
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
