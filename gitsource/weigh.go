package gitsource

import (
	"fmt"
	"maps"
)

// Limits of the cost of one build. Kustomize compares every patch with every object and records each patch on each
// object. A running build cannot be stopped, and every other source waits meanwhile.
const (
	// maxPatching is the limit of objects times patches times patches: about a minute.
	maxPatching = 4_000_000
	// patchCost is the cost of a patch by itself, in units of the cost that each earlier patch
	// adds.
	patchCost = 40
	// maxAdded is the most bytes that a kustomization may add to its objects; each object counts.
	maxAdded = 256 << 20
)

// weight is the cost of building a kustomization.
type weight struct {
	objects        int
	patches, bytes int // number and total length of the patches
	work           int // of this kustomization and all its bases
}

// weigh adds up the cost of a kustomization whose references were followed. It refuses a kustomization that would
// take too long or grow too large. A component counts with the objects of the kustomizations that use it.
func (w *walker) weigh(k kustomization) *failure {
	own := weight{
		patches: len(k.Patches) + len(k.PatchesStrategicMerge) + len(k.PatchesJson6902) + len(k.Transformers), //nolint:staticcheck // deprecated, but kustomize still reads them
		bytes:   len(canonical(transforming(k.source.value))),
	}
	for _, r := range references(k.Kustomization) {
		name, e, f := w.target(k.dir, r)
		switch {
		case f != nil || r.use == asBytes:
		case e.kind == directory:
			below := w.weights[name]
			own.objects, own.work = own.objects+below.objects, own.work+below.work
			if r.use == asBase {
				own.patches, own.bytes = own.patches+below.patches, own.bytes+below.bytes
			}
		case r.use == asResource:
			own.objects += len(w.origin[name])
		default:
			own.bytes += len(w.files[name])
		}
	}
	own.work = min(own.work+own.objects*own.patches*(patchCost+own.patches), 2*maxPatching)
	w.weights[k.dir] = own
	switch {
	case own.work > maxPatching:
		return &failure{LimitExceeded, fmt.Sprintf("%d patches of %d objects would take too long", own.patches, own.objects), "split the tree, or patch fewer objects at once"}
	case own.objects*own.bytes > maxAdded:
		return &failure{LimitExceeded, fmt.Sprintf("%d bytes would be added to each of %d objects", own.bytes, own.objects), "split the tree"}
	}
	return nil
}

// transforming returns a kustomization without the fields that name or create objects.
func transforming(value map[string]any) map[string]any {
	out := maps.Clone(value)
	for _, field := range []string{"resources", "components", "configMapGenerator", "secretGenerator", "generators", "crds", "configurations"} {
		delete(out, field)
	}
	return out
}
