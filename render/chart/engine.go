package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrInterrupted means that a rendering was not carried out, for a reason outside the content. The
// next attempt may succeed.
var ErrInterrupted = errors.New("rendering was interrupted")

// Engine renders. An error is either an *Error, which is about the content, or wraps
// ErrInterrupted, which is not. It is safe for concurrent use.
type Engine interface {
	// Admits returns the first of the Kubernetes versions that the chart's kubeVersion allows;
	// the first of all if it allows none, or is absent.
	Admits(s *Source, versions []string) (string, error)
	// Verify refuses a source whose rendering depends on the order of a map.
	Verify(s *Source, in Input) error
	// Render renders the source for one cluster.
	Render(s *Source, in Input) ([]Manifest, error)
}

// Engines gives each owner of charts, such as a source, an Engine. Owners share nothing.
type Engines interface {
	For(owner string) Engine
}

// EngineFor returns the Engine of an owner, nil without Engines.
func EngineFor(charts Engines, owner string) Engine {
	if charts == nil {
		return nil
	}
	return charts.For(owner)
}

// Within returns engines for the parts of an owner, such as the add-ons of a source; nil without Engines.
func Within(charts Engines, owner string) Engines {
	if charts == nil {
		return nil
	}
	return parts{charts, owner}
}

type parts struct {
	charts Engines
	owner  string
}

func (p parts) For(owner string) Engine { return p.charts.For(p.owner + "/" + owner) }

// Source is a Helm chart or a folder of manifests that has not been read yet. It is immutable.
type Source struct {
	// Kind says how Load reads the files.
	Kind Kind
	// Files are sorted by path.
	Files []File
	// Sum is equal for equal sources.
	Sum string
}

// Kind says whether a Source holds a chart or manifests.
type Kind string

// The kinds of Source.
const (
	HelmChart       Kind = "helm"
	ManifestsFolder Kind = "manifests"
)

// NewSource returns a Source of files sorted by path.
func NewSource(kind Kind, files []File) *Source {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00", kind)
	for _, f := range files {
		fmt.Fprintf(sum, "%d %s %d ", len(f.Path), f.Path, len(f.Content))
		sum.Write(f.Content)
	}
	return &Source{Kind: kind, Files: files, Sum: hex.EncodeToString(sum.Sum(nil))}
}

// Load reads the files. The error is an *Error.
func (s *Source) Load() (*Chart, error) {
	if s.Kind == ManifestsFolder {
		return LoadManifests(s.Files)
	}
	return Load(s.Files)
}

// InProcess is an Engine without limits, for trusted content: in tests.
type InProcess struct{}

// For is part of Engines.
func (e InProcess) For(string) Engine { return e }

// Admits is part of Engine.
func (InProcess) Admits(s *Source, versions []string) (string, error) {
	c, err := s.Load()
	if err != nil {
		return "", err
	}
	return c.Admits(versions), nil
}

// Verify is part of Engine.
func (InProcess) Verify(s *Source, in Input) error {
	c, err := s.Load()
	if err != nil {
		return err
	}
	return c.Verify(in)
}

// Render is part of Engine.
func (InProcess) Render(s *Source, in Input) ([]Manifest, error) {
	c, err := s.Load()
	if err != nil {
		return nil, err
	}
	return c.Render(in)
}
