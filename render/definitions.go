package render

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"

	workv1 "open-cluster-management.io/api/work/v1"
)

// definitionKind is the kind whose removal deletes all objects of a kind.
const definitionKind = "CustomResourceDefinition"

// Definition is a CustomResourceDefinition of one cluster.
type Definition struct {
	// Sum is its SHA-256.
	Sum [sha256.Size]byte
	// Orphaned: the agent that applied it leaves it on the cluster after it was removed from the works.
	Orphaned bool
}

// Definitions returns the CustomResourceDefinitions that Render returns, by name, at the cost of Digest. The
// caller must not change them.
func (r *Renderer) Definitions(c Cluster) (map[string]Definition, error) {
	o := r.outline(c)
	return o.definitions, o.err
}

// definitions are the CustomResourceDefinitions among the cluster's objects, by name.
func (r Rendered) definitions() map[string]Definition {
	if r.rendering == nil {
		return nil
	}
	var found map[string]Definition
	for i := range r.rendering.objects {
		if o := &r.rendering.objects[i]; o.id.Kind == definitionKind {
			if found == nil {
				found = map[string]Definition{}
			}
			found[o.id.Name] = Definition{Sum: sha256.Sum256(o.plain), Orphaned: orphans(r.rendering.deleteOption, o.id)}
		}
	}
	return found
}

// orphans reports whether the agent leaves an object on the cluster, because the object has no owner there.
func orphans(option *workv1.DeleteOption, id Identity) bool {
	switch {
	case option == nil:
		return false
	case option.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan:
		return true
	}
	return option.PropagationPolicy == workv1.DeletePropagationPolicyTypeSelectivelyOrphan && option.SelectivelyOrphan != nil &&
		slices.Contains(option.SelectivelyOrphan.OrphaningRules, workv1.OrphaningRule(id.resource()))
}

// Displaces returns the names of the CustomResourceDefinitions in works that Render does not return for the cluster,
// and of those that it returns with other content. Works of other writers count; works that are being deleted do not.
// It reads every object of the works, which a comparison of two revisions does not.
func (r *Renderer) Displaces(c Cluster, works []*workv1.ManifestWork) (gone, changed []string, err error) {
	o := r.outline(c)
	if o.err != nil {
		return nil, nil, o.err
	}
	rendered := sync.OnceValues(func() (Rendered, error) { return r.Render(c) })
	for _, w := range works {
		if !w.DeletionTimestamp.IsZero() {
			continue
		}
		for i := range w.Spec.Workload.Manifests {
			raw := w.Spec.Workload.Manifests[i].Raw
			if !bytes.Contains(raw, []byte(definitionKind)) {
				continue // most objects, at a fraction of the cost
			}
			id, ok := identityIn(raw)
			if !ok || id.Kind != definitionKind {
				continue
			}
			there, stays := o.definitions[id.Name]
			switch {
			case !stays:
				gone = append(gone, id.Name)
			case there.Sum != sha256.Sum256(raw):
				now, err := rendered()
				if err != nil {
					return nil, nil, err
				}
				if !now.defines(id.Name, raw) {
					changed = append(changed, id.Name)
				}
			}
		}
	}
	slices.Sort(gone)
	slices.Sort(changed)
	return slices.Compact(gone), slices.Compact(changed), nil
}

// defines reports whether the rendering has a CustomResourceDefinition with the same meaning as a manifest.
func (r Rendered) defines(name string, raw []byte) bool {
	return slices.ContainsFunc(r.rendering.objects, func(o object) bool {
		return o.id.Kind == definitionKind && o.id.Name == name && sameMeaning(o.plain, raw)
	})
}
