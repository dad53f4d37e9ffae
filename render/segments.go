package render

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"strings"
)

// Two noncharacters are place holders for what differs between clusters, while the rest is
// rendered once. Unicode reserves them for a program's internal use. Input that contains one is
// refused, so a place holder always comes from this package.
const (
	namePlaceholder   = "\uFDD0"
	digestPlaceholder = "\uFDD1"
)

// varies reports whether text depends on the cluster.
func varies(text string) bool {
	return strings.Contains(text, namePlaceholder)
}

// segments is encoded JSON cut at its place holders: fixed[0], hole[0],
// fixed[1], ... fixed[n].
type segments struct {
	fixed [][]byte
	holes []hole
	size  int // of all fixed parts
}

// hole says what goes between two fixed parts.
type hole byte

const (
	nameHole hole = iota
	digestHole
)

// fill is what goes into the holes: JSON string content, without quotes.
type fill struct {
	name, digest []byte
}

func (f fill) of(h hole) []byte {
	if h == digestHole {
		return f.digest
	}
	return f.name
}

// cut splits encoded JSON at the place holders. Both are three bytes of UTF-8 that
// encoding/json neither escapes nor produces otherwise.
func cut(encoded []byte) segments {
	s := segments{}
	for {
		name := bytes.Index(encoded, []byte(namePlaceholder))
		digest := bytes.Index(encoded, []byte(digestPlaceholder))
		at, kind := name, nameHole
		if at < 0 || (digest >= 0 && digest < at) {
			at, kind = digest, digestHole
		}
		if at < 0 {
			s.fixed = append(s.fixed, encoded)
			s.size += len(encoded)
			return s
		}
		s.fixed = append(s.fixed, encoded[:at:at])
		s.holes = append(s.holes, kind)
		s.size += at
		encoded = encoded[at+len(namePlaceholder):]
	}
}

// same reports whether the text is the same for every cluster.
func (s segments) same() bool {
	return len(s.holes) == 0
}

// length of the filled text.
func (s segments) length(f fill) int {
	n := s.size
	for _, h := range s.holes {
		n += len(f.of(h))
	}
	return n
}

// appendTo appends the filled text to dst.
func (s segments) appendTo(dst []byte, f fill) []byte {
	for i, part := range s.fixed {
		dst = append(dst, part...)
		if i < len(s.holes) {
			dst = append(dst, f.of(s.holes[i])...)
		}
	}
	return dst
}

// sum returns the SHA-256 of the filled text, using h as scratch.
func (s segments) sum(h hash.Hash, f fill) (sum [sha256.Size]byte) {
	h.Reset()
	for i, part := range s.fixed {
		h.Write(part)
		if i < len(s.holes) {
			h.Write(f.of(s.holes[i]))
		}
	}
	h.Sum(sum[:0])
	return sum
}
