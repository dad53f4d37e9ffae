package render

import (
	"bytes"
	"encoding/json"

	workv1 "open-cluster-management.io/api/work/v1"
)

// identitiesOf reads the identities of a work's objects, in order. An object that cannot be
// read has no identity and does not stay in the work.
func identitiesOf(work *workv1.ManifestWork) []Identity {
	ids := make([]Identity, 0, len(work.Spec.Workload.Manifests))
	for i := range work.Spec.Workload.Manifests {
		if id, ok := identityIn(work.Spec.Workload.Manifests[i].Raw); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// identityIn reads a manifest's identity from its text.
func identityIn(raw []byte) (Identity, bool) {
	if id, ok := scanIdentity(raw); ok {
		return id, true
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return Identity{}, false
	}
	return Identity{head.APIVersion, head.Kind, head.Metadata.Namespace, head.Metadata.Name}, true
}

// scanIdentity reads the identity from JSON as the hub writes it, without spaces and without
// escapes in keys and names. It returns false for any other text. It runs for every manifest of
// every cluster that is written; decoding takes twenty times as long.
func scanIdentity(raw []byte) (id Identity, ok bool) {
	s := scan{raw}
	ok = s.object(func(key []byte) bool {
		switch string(key) {
		case apiVersionKey:
			return s.text(&id.APIVersion)
		case kindKey:
			return s.text(&id.Kind)
		case metadataKey:
			return s.object(func(key []byte) bool {
				switch string(key) {
				case namespaceKey:
					return s.text(&id.Namespace)
				case nameKey:
					return s.text(&id.Name)
				}
				return s.skip()
			})
		}
		return s.skip()
	})
	return id, ok && len(s.rest) == 0
}

// scan is a position in a JSON text. After a failure the position is undefined.
type scan struct{ rest []byte }

// take skips one byte if it is b.
func (s *scan) take(b byte) bool {
	if len(s.rest) == 0 || s.rest[0] != b {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// object skips an object and calls field at the value of each key.
func (s *scan) object(field func(key []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		key, ok := s.plain()
		if !ok || !s.take(':') || !field(key) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// plain reads a string without escapes.
func (s *scan) plain() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	value, rest, ok := bytes.Cut(s.rest, []byte{'"'})
	s.rest = rest
	return value, ok && bytes.IndexByte(value, '\\') < 0
}

// text reads a string into a variable.
func (s *scan) text(into *string) bool {
	value, ok := s.plain()
	*into = string(value)
	return ok
}

// skip skips a value of any type.
func (s *scan) skip() bool {
	depth := 0
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '"':
			i = endOfString(s.rest, i)
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 { // the enclosing value continues
				s.rest = s.rest[i:]
				return i > 0
			}
			if s.rest[i] != ',' {
				depth--
			}
		}
	}
	return false
}

// endOfString returns where the string that begins at a position ends: its last quote, or the
// end of the text.
func endOfString(text []byte, at int) int {
	for at++; at < len(text) && text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at
}
