package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// allocated returns how many bytes f allocates, freed or not.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// manyEntries is a directory's list of n entries.
func manyEntries(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "100644 %07d\x00%s", i, strings.Repeat("h", 20))
	}
	return b.Bytes()
}

// TestOpenPack_RefusesLargeObjectsBeforeTheyTakeMemory: a pack of kilobytes may unpack to a
// commit of 200 MiB or a directory of 2,000,000 entries.
func TestOpenPack_RefusesLargeObjectsBeforeTheyTakeMemory(t *testing.T) {
	const large = 200 << 20
	zeros := make([]byte, large)
	from := func(kind plumbing.ObjectType, delta stored) []byte {
		return write(t, stored{kind: kind, content: []byte("hello")}, delta)
	}
	claims := func(kind plumbing.ObjectType) stored {
		return stored{kind: kind, base: 1, content: append(append(number7(5), number7(8<<20)...), 0x90, 5)}
	}
	commit := plumbing.ComputeHash(plumbing.CommitObject, []byte("hello"))
	byHash := claims(plumbing.REFDeltaObject)
	byHash.reference = commit[:]
	for name, c := range map[string]struct {
		pack []byte
		want string
	}{
		"commit":            {write(t, stored{kind: plumbing.CommitObject, content: zeros}), "a commit of 209715200 bytes, at most 1048576 are read"},
		"tag":               {write(t, stored{kind: plumbing.TagObject, content: zeros}), "a tag of 209715200 bytes, at most 1048576 are read"},
		"tree":              {write(t, stored{kind: plumbing.TreeObject, content: manyEntries(2_000_000)}), "a directory's list of entries of 70000000 bytes, at most 4194304 are read"},
		"commit as a delta": {from(plumbing.CommitObject, claims(plumbing.OFSDeltaObject)), "a commit of 8388608 bytes, at most 1048576 are read"},
		"tree as a delta":   {from(plumbing.TreeObject, claims(plumbing.OFSDeltaObject)), "a directory's list of entries of 8388608 bytes, at most 4194304 are read"},
		"delta by hash":     {from(plumbing.CommitObject, byHash), "a commit of 8388608 bytes, at most 1048576 are read"},
		"delta of a large blob": {
			write(t, stored{kind: plumbing.BlobObject, content: []byte("hello")}, stored{kind: plumbing.OFSDeltaObject, base: 1, content: append(append(number7(5), number7(100<<20)...), 0x90, 5)}),
			"an object of 104857600 bytes, at most 33554432 are read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := allocated(func() { _, err = openPack(c.pack, DefaultLimits().InflatedBytes) })
			if !errors.Is(err, ErrLimitExceeded) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a limit with %q", err, c.want)
			}
			if took > 4<<20 {
				t.Errorf("a pack of %d bytes takes %d bytes of memory before it is refused", len(c.pack), took)
			}
		})
	}
}

// TestOpenPack_LargeBlobCostsItsCompressedSize: content that add-ons do not use is hashed and
// not kept.
func TestOpenPack_LargeBlobCostsItsCompressedSize(t *testing.T) {
	content := write(t, stored{kind: plumbing.BlobObject, content: make([]byte, 200<<20)})
	var err error
	took := allocated(func() { _, err = openPack(content, DefaultLimits().InflatedBytes) })
	if err != nil {
		t.Fatal(err)
	}
	if took > 4<<20 {
		t.Errorf("a pack of %d bytes takes %d bytes of memory", len(content), took)
	}
}

// TestOpenPack_DeltasByHash: a base may come after its delta.
func TestOpenPack_DeltasByHash(t *testing.T) {
	base := stored{kind: plumbing.BlobObject, content: []byte("hello")}
	hash := plumbing.ComputeHash(plumbing.BlobObject, base.content)
	change := stored{kind: plumbing.REFDeltaObject, reference: hash[:], content: append(append(number7(5), number7(4)...), 0x90, 4)}
	want := plumbing.ComputeHash(plumbing.BlobObject, []byte("hell"))
	for name, pack := range map[string][]byte{"base first": write(t, base, change), "base last": write(t, change, base)} {
		p, err := openPack(pack, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		o, err := p.object(want)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o.Size() != 4 || o.Type() != plumbing.BlobObject {
			t.Errorf("%s: got a %s of %d bytes", name, o.Type(), o.Size())
		}
	}
	if _, err := openPack(write(t, change), 1<<20); !errors.Is(err, ErrCorrupt) {
		t.Errorf("without its base: got %v, want %v", err, ErrCorrupt)
	}
}
