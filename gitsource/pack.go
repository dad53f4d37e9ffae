package gitsource

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/hash"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const (
	// packObjects is how many objects a pack may hold, ten times the files of a tree.
	packObjects = 500_000
	// tagDepth is how many tags may point to each other before a commit comes.
	tagDepth = 8
)

// pack is a pack in memory. Objects are unpacked one by one, when they are read:
// what lies in the repository besides add-ons costs its compressed size only.
type pack struct {
	mu    sync.Mutex // packfile.Packfile seeks
	file  *packfile.Packfile
	index *idxfile.MemoryIndex
}

// openPack verifies the pack's checksum and what it claims to unpack to, and indexes it.
func openPack(content []byte, inflated int64) (*pack, error) {
	if err := verifyChecksum(content); err != nil {
		return nil, err
	}
	if err := weigh(content, inflated); err != nil {
		return nil, err
	}
	fs := memfs.New()
	file, err := fs.Create("pack")
	if err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot keep the pack: %w", err)
	}
	writer := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(bytes.NewReader(content)), writer)
	if err == nil {
		_, err = parser.Parse()
	}
	if err != nil {
		return nil, corrupt(err)
	}
	index, err := writer.Index()
	if err != nil {
		return nil, corrupt(err)
	}
	return &pack{index: index, file: packfile.NewPackfile(index, nil, file, 0)}, nil
}

func corrupt(err error) error { return fmt.Errorf("%w: %w", ErrCorrupt, err) }

// verifyChecksum compares a pack with the sha it ends with; go-git reads but does not check it.
func verifyChecksum(content []byte) error {
	body := len(content) - hash.Size
	if body <= 0 {
		return corrupt(fmt.Errorf("%d bytes are no pack", len(content)))
	}
	sum := hash.New(crypto.SHA1)
	_, _ = sum.Write(content[:body])
	if !bytes.Equal(sum.Sum(nil), content[body:]) {
		return corrupt(errors.New("the pack's checksum does not match"))
	}
	return nil
}

// weigh adds up what the objects claim to unpack to, deltas by the size of their
// result, before anything is allocated for them.
func weigh(content []byte, limit int64) error {
	scanner := packfile.NewScanner(bytes.NewReader(content))
	_, count, err := scanner.Header()
	if err != nil {
		return corrupt(err)
	}
	if count > packObjects {
		return fmt.Errorf("%w: %d objects in the pack, at most %d are read", ErrLimitExceeded, count, packObjects)
	}
	var total int64
	for range count {
		size, err := nextSize(scanner, limit)
		if err != nil {
			return err
		}
		if total += size; total > limit {
			return fmt.Errorf("%w: the pack unpacks to more than %d bytes", ErrLimitExceeded, limit)
		}
	}
	return nil
}

func nextSize(scanner *packfile.Scanner, limit int64) (int64, error) {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return 0, corrupt(err)
	}
	if header.Length < 0 || header.Length > limit {
		return 0, fmt.Errorf("%w: an object of %d bytes, at most %d are read", ErrLimitExceeded, header.Length, limit)
	}
	var start prefix
	if _, _, err := scanner.NextObject(&start); err != nil {
		return 0, corrupt(err)
	}
	if !header.Type.IsDelta() {
		return header.Length, nil
	}
	_, rest := varint(start)
	result, _ := varint(rest)
	if result < 0 || result > limit {
		return 0, fmt.Errorf("%w: an object of %d bytes, at most %d are read", ErrLimitExceeded, result, limit)
	}
	// The instructions are held besides the result.
	return header.Length + result, nil
}

// prefix keeps the first bytes written to it: enough for the two sizes a delta starts with.
type prefix []byte

// Write is part of io.Writer.
func (p *prefix) Write(b []byte) (int, error) {
	const enough = 20
	*p = append(*p, b[:min(len(b), enough-len(*p))]...)
	return len(b), nil
}

// varint reads a little-endian number in groups of seven bits; -1 when it does not fit.
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
	found, err := p.index.Contains(h)
	return err == nil && found
}

// size returns how large an object is without unpacking it.
func (p *pack) size(h plumbing.Hash) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	offset, err := p.index.FindOffset(h)
	if err != nil {
		return 0, corrupt(fmt.Errorf("object %s is missing", h))
	}
	size, err := p.file.GetSizeByOffset(offset)
	if err != nil {
		return 0, corrupt(err)
	}
	return size, nil
}

// object unpacks one object.
func (p *pack) object(h plumbing.Hash) (plumbing.EncodedObject, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, err := p.file.Get(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, corrupt(fmt.Errorf("object %s is missing", h))
	}
	if err != nil {
		return nil, corrupt(err)
	}
	return o, nil
}

// commit returns the commit that h is, or that the tag h leads to.
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

// complete walks every tree once and makes sure that the pack holds what they
// name, so that a later read cannot fail for want of an object. Directories that
// share a tree are one walk: otherwise a few kilobytes could name 2^64 files.
func (p *pack) complete(root plumbing.Hash) error {
	seen := map[plumbing.Hash]bool{root: true}
	for queue := []plumbing.Hash{root}; len(queue) > 0; queue = queue[1:] {
		t, err := p.tree(queue[0])
		if err != nil {
			return err
		}
		for _, e := range t.Entries {
			kind := kindOf(e.Mode)
			switch {
			case seen[e.Hash] || kind == submodule:
			case kind == directory:
				queue = append(queue, e.Hash)
			case !p.has(e.Hash):
				return corrupt(fmt.Errorf("object %s (%s) is missing", e.Hash, printable(e.Name)))
			}
			seen[e.Hash] = true
		}
	}
	return nil
}
