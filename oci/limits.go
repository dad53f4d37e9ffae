package oci

import "time"

// DefaultTimeout bounds one call when Options has none.
const DefaultTimeout = 60 * time.Second

// Limits bound what one chart or artifact may cost.
type Limits struct {
	// Bytes is the size of the archive.
	Bytes int64
	// Unpacked is its size in bytes after unpacking: an archive of megabytes can unpack to terabytes.
	Unpacked int64
	// Files is how many files and directories it may have.
	Files int
	// FileBytes bounds the content of a file that is kept, and TotalBytes that of all with their paths.
	FileBytes, TotalBytes int64
	// Depth is how deep directories may be nested.
	Depth int
}

// chartLimits returns the documented limits of a chart: those of an AddOnPackage in Git.
func chartLimits() Limits {
	return Limits{Bytes: 8 << 20, Unpacked: 32 << 20, Files: 10_000, FileBytes: 1 << 20, TotalBytes: 8 << 20, Depth: 64}
}

// Bounds that follow from the formats rather than from a user's content.
const (
	// metadataBytes bounds a manifest and a page of a list of tags.
	metadataBytes = 1 << 20
	// pathBytes bounds the path of a file, as Linux does. An archive can have one of a megabyte.
	pathBytes = 4096
	// headerBytes bounds the headers of an answer.
	headerBytes = 256 << 10
	// redirects is how often one request is redirected.
	redirects = 5
	// connectTimeout and idleTimeout bound a connection.
	connectTimeout = 15 * time.Second
	idleTimeout    = 15 * time.Second
)
