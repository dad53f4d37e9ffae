package gitsource

import (
	"fmt"
	"maps"
)

// Bounds of what one build may cost. Kustomize holds every patch against every object and
// notes each on each, and nothing stops it once it runs, while every other source waits
// for its turn.
const (
	// maxPatching bounds objects times patches times patches: about a minute.
	maxPatching = 4_000_000
	// patchCost is what a patch costs without those before it, in units of one of them.
	patchCost = 40
	// maxAdded bounds what a kustomization may add to its objects, each of them counted.
	maxAdded = 256 << 20
)

// weight is what a kustomization costs whoever builds it.
type weight struct {
	objects        int
	patches, bytes int // what is held against the objects, and how long it is
	work           int // of it and of all below it
}

// weigh adds up a kustomization whose references were followed, and refuses one that
// would take too long or grow too large. A component is held against the objects of
// whoever uses it.
func (w *walker) weigh(k kustomization) *failure {
	own := weight{
		patches: len(k.Patches) + len(k.PatchesStrategicMerge) + len(k.PatchesJson6902) + len(k.Transformers), //nolint:staticcheck // deprecated, and kustomize reads them all the same
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

// transforming is a kustomization without the fields that name or make objects.
func transforming(value map[string]any) map[string]any {
	out := maps.Clone(value)
	for _, field := range []string{"resources", "components", "configMapGenerator", "secretGenerator", "generators", "crds", "configurations"} {
		delete(out, field)
	}
	return out
}
