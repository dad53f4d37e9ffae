package gitsource

import (
	"bytes"
	"cmp"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/hash"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/addonflow/addonflow/api/brief"
)

const (
	// packObjects is how many objects a pack may hold, ten times the files of a tree.
	packObjects = 500_000
	// tagDepth is how many tags may point to each other before a commit.
	tagDepth = 8
	// commitBytes is the size limit of a commit or a tag, which are read whole.
	commitBytes = 1 << 20
	// treeBytes is the size limit of a directory's list of entries: about 100,000 entries.
	treeBytes = 4 << 20
	// deltaBytes is the size limit of objects that are stored as deltas and of their bases, because base,
	// instructions and result are in memory at once.
	deltaBytes = 32 << 20
	// basesKept is how many bytes of bases are kept from one read to the next.
	basesKept = 8 << 20
	// unpackWork is the most bytes that are unpacked for one commit in total. The base of a delta counts again for
	// each delta.
	unpackWork = 8 << 30
)

// packed is the position of an object in the pack, with its kind.
type packed struct {
	hash   plumbing.Hash
	offset int64
	// size of the object itself; of a delta, of its result.
	size int64
	// kind of the object; of a delta AnyObject until its base is known, then the base's.
	kind plumbing.ObjectType
	// base is the index of the object that a delta changes; noBase of any other object.
	base int32
}

// noBase: the object is stored whole.
const noBase = -1

// pack is a pack in memory. Each object is unpacked when it is read, so content that add-ons do not use costs only
// its compressed size.
type pack struct {
	mu      sync.Mutex // the scanner seeks
	scanner *packfile.Scanner
	// objects are in the order of their offsets.
	objects []packed
	byHash  map[plumbing.Hash]int32
	bases   *cache.BufferLRU
	// work is how many bytes have been unpacked.
	work int64
}

// openPack verifies the pack's checksum and indexes it. Objects are hashed while they are inflated, and not kept. So
// an object takes no memory before its kind and size are known to be within the limits.
func openPack(content []byte, inflated int64) (*pack, error) {
	if err := verifyChecksum(content); err != nil {
		return nil, err
	}
	p := &pack{
		scanner: packfile.NewScanner(bytes.NewReader(content)),
		byHash:  map[plumbing.Hash]int32{},
		bases:   cache.NewBufferLRU(basesKept),
	}
	deltas, err := p.scan(inflated)
	if err != nil {
		return nil, err
	}
	if err := p.resolve(deltas); err != nil {
		return nil, err
	}
	return p, nil
}

func corrupt(err error) error { return fmt.Errorf("%w: %w", ErrCorrupt, err) }

// verifyChecksum compares a pack with the sha it ends with; go-git reads but does not check it.
func verifyChecksum(content []byte) error {
	body := len(content) - hash.Size
	if body <= 0 {
		return corrupt(fmt.Errorf("the answer has %d bytes, too few for a pack", len(content)))
	}
	sum := hash.New(crypto.SHA1)
	_, _ = sum.Write(content[:body])
	if !bytes.Equal(sum.Sum(nil), content[body:]) {
		return corrupt(errors.New("the pack's checksum does not match"))
	}
	return nil
}

// deltas are the deltas of a pack by their base: by its index if the pack gives an offset, by its hash if the pack
// gives a hash.
type deltas struct {
	ofIndex map[int32][]int32
	ofHash  map[plumbing.Hash][]int32
}

func (d deltas) of(index int32, hash plumbing.Hash) []int32 {
	if named := d.ofHash[hash]; len(named) > 0 {
		return append(slices.Clone(d.ofIndex[index]), named...)
	}
	return d.ofIndex[index]
}

// scan reads the pack once from beginning to end. It hashes every object that is stored whole. Before it allocates
// memory for objects, it adds up their claimed sizes; for deltas, the sizes of their results.
func (p *pack) scan(limit int64) (deltas, error) {
	_, count, err := p.scanner.Header()
	if err != nil {
		return deltas{}, corrupt(err)
	}
	if count > packObjects {
		return deltas{}, fmt.Errorf("%w: %d objects in the pack, at most %d are read", ErrLimitExceeded, count, packObjects)
	}
	found := deltas{ofIndex: map[int32][]int32{}, ofHash: map[plumbing.Hash][]int32{}}
	var total int64
	for range count {
		size, err := p.scanObject(limit, found)
		if err != nil {
			return deltas{}, err
		}
		if total += size; total > limit {
			return deltas{}, fmt.Errorf("%w: the pack unpacks to more than %d bytes", ErrLimitExceeded, limit)
		}
	}
	return found, nil
}

// scanObject reads the next object and returns the memory that unpacking it needs.
func (p *pack) scanObject(limit int64, found deltas) (int64, error) {
	header, err := p.scanner.NextObjectHeader()
	if err != nil {
		return 0, corrupt(err)
	}
	if err := checkSize(header.Type, header.Length, limit); err != nil {
		return 0, err
	}
	index := int32(len(p.objects)) //nolint:gosec // at most packObjects
	if !header.Type.IsDelta() {
		hasher := plumbing.NewHasher(header.Type, header.Length)
		if err := p.next(hasher, header.Length); err != nil {
			return 0, err
		}
		p.add(packed{hash: hasher.Sum(), offset: header.Offset, size: header.Length, kind: header.Type, base: noBase})
		return header.Length, nil
	}
	var start prefix
	if err := p.next(&start, header.Length); err != nil {
		return 0, err
	}
	_, rest := varint(start)
	result, _ := varint(rest)
	if err := checkSize(header.Type, result, limit); err != nil {
		return 0, err
	}
	if header.Type == plumbing.REFDeltaObject {
		found.ofHash[header.Reference] = append(found.ofHash[header.Reference], index)
	} else {
		base, ok := slices.BinarySearchFunc(p.objects, header.OffsetReference, func(o packed, at int64) int { return cmp.Compare(o.offset, at) })
		if !ok {
			return 0, corrupt(errors.New("a delta refers to an object that is not in the pack"))
		}
		found.ofIndex[int32(base)] = append(found.ofIndex[int32(base)], index) //nolint:gosec // at most packObjects
	}
	p.objects = append(p.objects, packed{offset: header.Offset, size: result, kind: plumbing.AnyObject})
	// The instructions are in memory together with the result.
	return header.Length + result, nil
}

// next inflates the object whose header was read.
func (p *pack) next(w io.Writer, size int64) error {
	n, _, err := p.scanner.NextObject(w)
	p.work += n
	switch {
	case err != nil:
		return corrupt(err)
	case n != size:
		return corrupt(fmt.Errorf("an object has %d bytes, but its header says %d", n, size))
	}
	return nil
}

func (p *pack) add(o packed) {
	p.byHash[o.hash] = int32(len(p.objects)) //nolint:gosec // at most packObjects
	p.objects = append(p.objects, o)
}

// checkSize refuses an object that exceeds the limit of its kind.
func checkSize(kind plumbing.ObjectType, size, limit int64) error {
	what := "an object"
	switch kind {
	case plumbing.CommitObject, plumbing.TagObject:
		limit, what = min(limit, commitBytes), "a "+kind.String()
	case plumbing.TreeObject:
		limit, what = min(limit, treeBytes), "a directory's list of entries"
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		limit = min(limit, deltaBytes)
	case plumbing.BlobObject, plumbing.AnyObject:
	case plumbing.InvalidObject:
		return corrupt(fmt.Errorf("an object has the unknown type %d", kind))
	default:
		return corrupt(fmt.Errorf("an object has the unknown type %d", kind))
	}
	if size >= 0 && size <= limit {
		return nil
	}
	return fmt.Errorf("%w: %s of %d bytes, at most %d are read", ErrLimitExceeded, what, size, limit)
}

// unfinished is an object with the deltas that must still be applied to it.
type unfinished struct {
	index   int32
	content []byte
	deltas  []int32
}

// resolve applies every delta once, to learn its hash and kind. An object is kept only
// while one of its deltas is still to be applied.
func (p *pack) resolve(all deltas) error {
	for index := range int32(len(p.objects)) { //nolint:gosec // at most packObjects
		o := p.objects[index]
		if o.base != noBase || o.kind == plumbing.AnyObject {
			continue
		}
		if changes := all.of(index, o.hash); len(changes) > 0 {
			if err := p.resolveFrom(index, changes, all); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(p.objects, func(o packed) bool { return o.kind == plumbing.AnyObject }) {
		return corrupt(errors.New("a delta of an object that is not in the pack"))
	}
	return nil
}

// resolveFrom applies all deltas of one object.
func (p *pack) resolveFrom(root int32, changes []int32, all deltas) error {
	if err := checkSize(plumbing.OFSDeltaObject, p.objects[root].size, deltaBytes); err != nil {
		return err
	}
	content, err := p.inflate(root)
	if err != nil {
		return err
	}
	stack, held := []unfinished{{root, content, changes}}, int64(len(content))
	for len(stack) > 0 {
		base := &stack[len(stack)-1]
		from, next := *base, base.deltas[0]
		if base.deltas = base.deltas[1:]; len(base.deltas) == 0 {
			stack = stack[:len(stack)-1]
			held -= int64(len(from.content))
		}
		if p.objects[next].kind != plumbing.AnyObject {
			continue // two objects with the same content were named as the base
		}
		result, err := p.apply(next, from)
		if err != nil {
			return err
		}
		if changes := all.of(next, p.objects[next].hash); len(changes) > 0 {
			if held += int64(len(result)); held > 2*deltaBytes {
				return fmt.Errorf("%w: deltas of deltas take more than %d bytes", ErrLimitExceeded, 2*deltaBytes)
			}
			stack = append(stack, unfinished{next, result, changes})
		}
	}
	return nil
}

// apply applies a delta to its base and indexes the result.
func (p *pack) apply(index int32, base unfinished) ([]byte, error) {
	o := &p.objects[index]
	kind := p.objects[base.index].kind
	if err := checkSize(kind, o.size, deltaBytes); err != nil {
		return nil, err
	}
	result, err := p.patch(index, base.content)
	if err != nil {
		return nil, err
	}
	o.kind, o.base, o.hash = kind, base.index, plumbing.ComputeHash(kind, result)
	p.byHash[o.hash] = index
	return result, nil
}

func (p *pack) patch(index int32, base []byte) ([]byte, error) {
	instructions, err := p.inflate(index)
	if err != nil {
		return nil, err
	}
	result, err := packfile.PatchDelta(base, instructions)
	if err != nil {
		return nil, corrupt(err)
	}
	if p.work += int64(len(result)); p.work > unpackWork {
		return nil, fmt.Errorf("%w: reading the commit unpacks more than %d bytes", ErrLimitExceeded, int64(unpackWork))
	}
	return result, nil
}

// inflate returns the stored bytes at an index: an object, or the instructions of a delta.
func (p *pack) inflate(index int32) ([]byte, error) {
	header, err := p.scanner.SeekObjectHeader(p.objects[index].offset)
	if err != nil {
		return nil, corrupt(err)
	}
	if p.work > unpackWork {
		return nil, fmt.Errorf("%w: reading the commit unpacks more than %d bytes", ErrLimitExceeded, int64(unpackWork))
	}
	content := bytes.NewBuffer(make([]byte, 0, header.Length+bytes.MinRead))
	if err := p.next(content, header.Length); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

func (p *pack) content(index int32) ([]byte, error) {
	var chain []int32
	var content []byte
	for at := index; content == nil; at = p.objects[at].base {
		if known, ok := p.bases.Get(p.objects[at].offset); ok {
			content = known
			break
		}
		if p.objects[at].base == noBase {
			whole, err := p.inflate(at)
			if err != nil {
				return nil, err
			}
			content = whole
			break
		}
		chain = append(chain, at)
	}
	for _, at := range slices.Backward(chain) {
		p.bases.Put(p.objects[p.objects[at].base].offset, content)
		patched, err := p.patch(at, content)
		if err != nil {
			return nil, err
		}
		content = patched
	}
	return content, nil
}

// prefix keeps the first bytes that are written to it: enough for the two sizes at the beginning of a delta.
type prefix []byte

func (p *prefix) Write(b []byte) (int, error) {
	const enough = 20
	*p = append(*p, b[:min(len(b), enough-len(*p))]...)
	return len(b), nil
}

// varint reads a little-endian number in groups of seven bits; -1: it does not fit.
func varint(b []byte) (int64, []byte) {
	var n int64
	for i, c := range b {
		if i == 8 {
			return -1, nil
		}
		n |= int64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return n, b[i+1:]
		}
	}
	return -1, nil
}

func (p *pack) has(h plumbing.Hash) bool {
	_, ok := p.byHash[h]
	return ok
}

// size returns the size of an object without unpacking it.
func (p *pack) size(h plumbing.Hash) (int64, error) {
	index, ok := p.byHash[h]
	if !ok {
		return 0, corrupt(fmt.Errorf("object %s is missing", h))
	}
	return p.objects[index].size, nil
}

func (p *pack) object(h plumbing.Hash) (plumbing.EncodedObject, error) {
	index, ok := p.byHash[h]
	if !ok {
		return nil, corrupt(fmt.Errorf("object %s is missing", h))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	content, err := p.content(index)
	if err != nil {
		return nil, err
	}
	o := &plumbing.MemoryObject{}
	o.SetType(p.objects[index].kind)
	if _, err := o.Write(content); err != nil {
		return nil, fmt.Errorf("cannot keep object %s: %w", h, err)
	}
	return o, nil
}

// commit returns the commit with the hash, or the commit to which the tag with the hash points.
func (p *pack) commit(h plumbing.Hash) (*object.Commit, error) {
	for range tagDepth {
		o, err := p.object(h)
		if err != nil {
			return nil, err
		}
		switch o.Type() {
		case plumbing.CommitObject:
			c := &object.Commit{}
			if err := c.Decode(o); err != nil {
				return nil, corrupt(err)
			}
			return c, nil
		case plumbing.TagObject:
			t := &object.Tag{}
			if err := t.Decode(o); err != nil {
				return nil, corrupt(err)
			}
			h = t.Target
		default:
			return nil, fmt.Errorf("%w: the reference leads to a %s, not to a commit", ErrRefNotFound, o.Type())
		}
	}
	return nil, fmt.Errorf("%w: more than %d tags point to each other", ErrRefNotFound, tagDepth)
}

// tree returns the entries of one directory.
func (p *pack) tree(h plumbing.Hash) (*object.Tree, error) {
	o, err := p.object(h)
	if err != nil {
		return nil, err
	}
	t := &object.Tree{}
	if err := t.Decode(o); err != nil {
		return nil, corrupt(err)
	}
	return t, nil
}

// complete walks every tree once and checks that the pack contains the objects that the trees name, so that a later
// read cannot miss one. If directories share a tree, it is walked once, because otherwise a few kilobytes could name
// 2^64 files.
func (p *pack) complete(root plumbing.Hash) error {
	seen := make([]bool, len(p.objects))
	for queue := []plumbing.Hash{root}; len(queue) > 0; queue = queue[1:] {
		t, err := p.tree(queue[0])
		if err != nil {
			return err
		}
		for _, e := range t.Entries {
			kind := kindOf(e.Mode)
			if kind == submodule {
				continue
			}
			index, ok := p.byHash[e.Hash]
			switch {
			case !ok:
				return corrupt(fmt.Errorf("object %s (%s) is missing", e.Hash, brief.Printable(e.Name)))
			case kind == directory && !seen[index]:
				queue = append(queue, e.Hash)
				seen[index] = true
			}
		}
	}
	return nil
}
