package gitsource

import "cmp"

// Limits of the cost of one commit. A zero field takes its default.
type Limits struct {
	// PackBytes is how many bytes the server may send for one fetch.
	PackBytes int64
	// InflatedBytes is the most bytes to which a pack may unpack, because megabytes can unpack to terabytes.
	InflatedBytes int64
	// Refs is how many references a repository may have.
	Refs int
	// Files is how many files and directories one build may read.
	Files int
	// FileBytes and TotalBytes are the most bytes that one build reads, per file and in total.
	FileBytes, TotalBytes int64
	// Depth is how deep directories may be nested.
	Depth int
}

// DefaultLimits returns the documented limits.
func DefaultLimits() Limits {
	return Limits{
		PackBytes:     64 << 20,
		InflatedBytes: 256 << 20,
		Refs:          50_000,
		Files:         10_000,
		FileBytes:     1 << 20,
		TotalBytes:    32 << 20,
		Depth:         64,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	return Limits{
		PackBytes:     cmp.Or(l.PackBytes, d.PackBytes),
		InflatedBytes: cmp.Or(l.InflatedBytes, d.InflatedBytes),
		Refs:          cmp.Or(l.Refs, d.Refs),
		Files:         cmp.Or(l.Files, d.Files),
		FileBytes:     cmp.Or(l.FileBytes, d.FileBytes),
		TotalBytes:    cmp.Or(l.TotalBytes, d.TotalBytes),
		Depth:         cmp.Or(l.Depth, d.Depth),
	}
}

// Limits that follow from the formats, not from a user's repository.
const (
	// advertisedBytes bounds the list of references, about 300 bytes each.
	advertisedBytes = 16 << 20
	// answerBytes bounds an answer that reports an error.
	answerBytes = 64 << 10
	// packOverhead is the size of the framing of a pack: 5 bytes in 64 KiB, and progress messages.
	packOverhead = 1 << 20
)
