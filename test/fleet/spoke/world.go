package spoke

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DigestAnnotation is what AddonFlow marks workloads with; Running shows it.
const DigestAnnotation = "addonflow.io/digest"

// Options are true of every cluster of a World.
type Options struct {
	// ImageStarts decides whether pods of an image become ready. Nil:
	// DefaultImageStarts.
	ImageStarts func(image string) bool
	// Nodes is how many pods a DaemonSet wants. Zero: 3.
	Nodes int
	// Namespaces exist besides those of a freshly joined cluster.
	Namespaces []string
	// Served lists custom, namespaced kinds that need no CRD in a work.
	Served []schema.GroupVersionKind
}

// DefaultImageStarts is false for images with a tag "bad", or with "never-starts" or a trailing
// "-bad" anywhere in their reference.
func DefaultImageStarts(image string) bool {
	name, _, _ := strings.Cut(image, "@")
	return !strings.HasSuffix(name, ":bad") && !strings.HasSuffix(name, "-bad") && !strings.Contains(name, "never-starts")
}

// World is what all clusters of a fleet have in common. It is safe for
// concurrent use; a Cluster is not.
type World struct {
	opts    Options
	readers sync.Pool
}

// NewWorld returns a World with the given options.
func NewWorld(opts Options) *World {
	if opts.ImageStarts == nil {
		opts.ImageStarts = DefaultImageStarts
	}
	if opts.Nodes == 0 {
		opts.Nodes = 3
	}
	return &World{opts: opts, readers: sync.Pool{New: func() any { return newReader() }}}
}

// NewCluster returns an empty cluster, as it is after joining.
func (w *World) NewCluster() *Cluster {
	return &Cluster{world: w, objects: map[identity]*object{}}
}

func (w *World) serves(gvk schema.GroupVersionKind) bool { return slices.Contains(w.opts.Served, gvk) }

// hasNamespace reports whether a namespace exists before any work: Kubernetes' own and those
// that a klusterlet creates.
func (w *World) hasNamespace(name string) bool {
	switch name {
	case "default", "kube-system", "kube-public", "kube-node-lease",
		"open-cluster-management-agent", "open-cluster-management-agent-addon":
		return true
	}
	return slices.Contains(w.opts.Namespaces, name)
}
