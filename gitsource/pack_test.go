package gitsource

import (
	"bytes"
	"compress/zlib"
	"crypto"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// stored is an object as a test writes it into a pack. base counts objects back
// for an offset delta.
type stored struct {
	kind    plumbing.ObjectType
	claims  int // the size in the header; 0: the real one
	content []byte
	base    int
	// reference is the hash of the base for a delta by hash.
	reference []byte
}

// write makes a pack; objects are placed as they come.
//
//nolint:gosec // the numbers are small and cut into groups of bits
func write(t *testing.T, objects ...stored) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("PACK")
	_ = binary.Write(&b, binary.BigEndian, []uint32{2, uint32(len(objects))})
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		size := len(o.content)
		if o.claims != 0 {
			size = o.claims
		}
		first := byte(o.kind)<<4 | byte(size&0xf)
		for size >>= 4; size > 0; size >>= 7 {
			b.WriteByte(first | 0x80)
			first = byte(size & 0x7f)
		}
		b.WriteByte(first)
		if o.kind == plumbing.OFSDeltaObject {
			distance := offsets[i] - offsets[i-o.base]
			if distance > 127 {
				t.Fatal("the test's packs are small")
			}
			b.WriteByte(byte(distance))
		}
		b.Write(o.reference)
		z := zlib.NewWriter(&b)
		_, _ = z.Write(o.content)
		_ = z.Close()
	}
	return sealed(b.Bytes())
}

// sealed adds the checksum a pack ends with.
func sealed(content []byte) []byte {
	sum := hash.New(crypto.SHA1)
	_, _ = sum.Write(content)
	return sum.Sum(content)
}

// number7 is a number in groups of seven bits.
//
//nolint:gosec // a group fits into a byte
func number7(n int) []byte {
	var out []byte
	for ; n > 0x7f; n >>= 7 {
		out = append(out, byte(n&0x7f)|0x80)
	}
	return append(out, byte(n))
}

func TestOpenPack(t *testing.T) {
	blob := stored{kind: plumbing.BlobObject, content: []byte("hello")}
	delta := func(from, to int, instructions ...byte) stored {
		return stored{kind: plumbing.OFSDeltaObject, base: 1, content: append(append(number7(from), number7(to)...), instructions...)}
	}
	const limit = 1 << 20
	for name, c := range map[string]struct {
		reason string
		pack   []byte
		want   error
	}{
		"whole":        {"a blob and a delta of it", write(t, blob, delta(5, 5, 0x90, 5)), nil},
		"empty":        {"nothing at all", nil, ErrCorrupt},
		"not a pack":   {"something else with a checksum", sealed([]byte("<html>not found</html>")), ErrCorrupt},
		"checksum":     {"one bit of the checksum", flip(write(t, blob), -1), ErrCorrupt},
		"content":      {"one bit of the content", flip(write(t, blob), 16), ErrCorrupt},
		"lies small":   {"an object larger than it says", write(t, stored{kind: plumbing.BlobObject, claims: 2, content: []byte("hello")}), ErrCorrupt},
		"lies large":   {"an object of a terabyte, it says", write(t, stored{kind: plumbing.BlobObject, claims: 1 << 40, content: []byte("hello")}), ErrLimitExceeded},
		"zeros":        {"a small object that is large", write(t, stored{kind: plumbing.BlobObject, content: make([]byte, 2*limit)}), ErrLimitExceeded},
		"many":         {"objects that are large together", write(t, slabs(3, limit/2)...), ErrLimitExceeded},
		"delta bomb":   {"a delta of a gigabyte", write(t, blob, delta(5, 1<<30, 0x90, 5)), ErrLimitExceeded},
		"delta cut":    {"a delta without its sizes", write(t, blob, stored{kind: plumbing.OFSDeltaObject, base: 1, content: []byte{0x85}}), ErrLimitExceeded},
		"delta larger": {"a delta that makes less than it says", write(t, blob, delta(5, 9, 0x90, 5)), ErrCorrupt},
		"count":        {"more objects than there are", recount(write(t, blob), 2), ErrCorrupt},
		"huge count":   {"billions of objects", recount(write(t, blob), 1<<31), ErrLimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := openPack(c.pack, limit)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
			}
			if (err == nil) == (p == nil) {
				t.Errorf("%s: got %v and %v", c.reason, p, err)
			}
		})
	}
}

func slabs(n, size int) []stored {
	out := make([]stored, n)
	for i := range out {
		out[i] = stored{kind: plumbing.BlobObject, content: []byte(strings.Repeat(string(rune('a'+i)), size))}
	}
	return out
}

func flip(pack []byte, at int) []byte {
	if at < 0 {
		at += len(pack)
	}
	pack[at] ^= 1
	return pack
}

func recount(pack []byte, n uint32) []byte {
	body := pack[:len(pack)-hash.Size]
	binary.BigEndian.PutUint32(body[8:], n)
	return sealed(body)
}

// TestTreeBomb: a few trees that name each other 16 times make 16^20 directories.
func TestTreeBomb(t *testing.T) {
	blob := stored{kind: plumbing.BlobObject, content: []byte("a: 1\n")}
	objects := []stored{blob}
	below := plumbing.ComputeHash(plumbing.BlobObject, blob.content)
	mode := "100644"
	for range 20 {
		var tree bytes.Buffer
		for i := range 16 {
			tree.WriteString(mode + " " + string(rune('a'+i)) + "\x00")
			tree.Write(below[:])
		}
		below, mode = plumbing.ComputeHash(plumbing.TreeObject, tree.Bytes()), "40000"
		objects = append(objects, stored{kind: plumbing.TreeObject, content: tree.Bytes()})
	}
	p, err := openPack(write(t, objects...), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.complete(below); err != nil {
		t.Fatal(err)
	}
	tree := &Tree{files: newGitFiles(p, below), limits: DefaultLimits()}
	_, problems := tree.Build(t.Context(), BuildOptions{})
	if len(problems) == 0 || problems[len(problems)-1].Reason != LimitExceeded {
		t.Errorf("got %d problems, want a limit", len(problems))
	}
	if len(problems) > 100 {
		t.Errorf("the limit is reported %d times", len(problems))
	}
}

func FuzzOpenPack(f *testing.F) {
	t := &testing.T{}
	f.Add(write(t, stored{kind: plumbing.BlobObject, content: []byte("hello")}))
	f.Add([]byte("PACK"))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := openPack(sealed(body), 1<<16)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrLimitExceeded) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		for h := range p.byHash {
			o, err := p.object(h)
			if err != nil {
				t.Fatal(err)
			}
			if o.Size() > 1<<16 {
				t.Errorf("an object of %d bytes passed the limit", o.Size())
			}
		}
	})
}
