package render

import (
	"bytes"
	"encoding/json"

	workv1 "open-cluster-management.io/api/work/v1"
)

// identitiesOf reads which objects a work holds, in order. One that cannot be
// read is none that could stay.
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

// scanIdentity reads the identity from JSON as the hub writes it, without a space and
// without an escape in a key or a name, and says no to any other. It is done for every
// manifest of every cluster that is written; decoding one takes twenty times as long.
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

// scan is where in a JSON text one is. What it says no to leaves it anywhere.
type scan struct{ rest []byte }

// take passes one byte.
func (s *scan) take(b byte) bool {
	if len(s.rest) == 0 || s.rest[0] != b {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// object passes an object; field passes the value of each key.
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

// plain passes a string that says what it is written as.
func (s *scan) plain() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	value, rest, ok := bytes.Cut(s.rest, []byte{'"'})
	s.rest = rest
	return value, ok && bytes.IndexByte(value, '\\') < 0
}

// text passes a string and keeps it.
func (s *scan) text(into *string) bool {
	value, ok := s.plain()
	*into = string(value)
	return ok
}

// skip passes a value, whatever is in it.
func (s *scan) skip() bool {
	depth := 0
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '"':
			i = endOfString(s.rest, i)
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 { // what is around the value goes on
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

// endOfString is where the string ends that begins at a position: its last quote, or
// the end of the text.
func endOfString(text []byte, at int) int {
	for at++; at < len(text) && text[at] != '"'; at++ {
		if text[at] == '\\' {
			at++
		}
	}
	return at
}
