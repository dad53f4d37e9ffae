package addonrollout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
)

// renderers caches the decoded revisions that turns use, and drops all others. A renderer stores every cluster that
// it rendered, so an unused one takes as much memory as one in use.
type renderers struct {
	live   client.Reader
	charts chart.Engines

	// warm are the renderers of the operator's turns, which have already rendered the fleet; nil: none. They are read
	// and not dropped. If a rendering for a viewer is interrupted, no turn plans again.
	warm *renderers

	mu   sync.Mutex
	kept map[revisionKey]*render.Renderer
}

type revisionKey struct{ namespace, addOn, digest string }

// newRenderers returns an empty store. It reads bodies uncached, because they may be a mebibyte each
// and a watch would keep all of them in memory.
func newRenderers(live client.Reader, charts chart.Engines) *renderers {
	return &renderers{live: live, charts: charts, kept: map[revisionKey]*render.Renderer{}}
}

// get returns the renderer of one add-on's revision, within bounds. The error is a *plan.MissingRevision if the
// AddOnRevision does not exist or its content does not match its name.
func (s *renderers) get(ctx context.Context, kept revisionKey, bounds *render.Bounds) (*render.Renderer, error) {
	if r := s.lookup(kept); r != nil && r.IsWithin(bounds) {
		return r, nil
	}
	if r := s.warm.lookup(kept); r != nil && r.IsWithin(bounds) {
		return r.Apart(), nil
	}
	return s.read(ctx, kept, bounds)
}

// read is get of a revision that may have been deleted after it was decoded.
func (s *renderers) read(ctx context.Context, kept revisionKey, bounds *render.Bounds) (*render.Renderer, error) {
	s.drop(kept)
	namespace, addOn, digest := kept.namespace, kept.addOn, kept.digest
	key := client.ObjectKey{Namespace: namespace, Name: render.RevisionName(addOn, digest)}
	var rev v1alpha1.AddOnRevision
	if err := s.live.Get(ctx, key, &rev); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &plan.MissingRevision{Name: key.Name}
		}
		return nil, fmt.Errorf("cannot read revision %s: %w", key.Name, err)
	}
	if rev.Spec.Digest != digest {
		return nil, &plan.MissingRevision{Name: key.Name, Why: "holds " + rev.Spec.Digest}
	}
	content, err := render.Decode(rev.Spec.Body)
	if err == nil && content.AddOn != addOn {
		err = fmt.Errorf("it is of add-on %q", content.AddOn)
	}
	var r *render.Renderer
	if err == nil {
		r, err = render.NewRendererWithin(bounds, content, chart.EngineFor(s.charts, namespace+"/"+addOn))
	}
	if err != nil {
		// This error is permanent, and must hold only the clusters that run the revision.
		return nil, &plan.MissingRevision{Name: key.Name, Why: "cannot be used: " + err.Error()}
	}
	s.keep(kept, r)
	return r, nil
}

// cached returns a renderer that was decoded before, of a revision in any namespace, or nil.
func (s *renderers) cached(addOn, digest string) *render.Renderer {
	if digest == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.kept {
		if key.addOn == addOn && key.digest == digest {
			return r
		}
	}
	return nil
}

func (s *renderers) lookup(key revisionKey) *render.Renderer {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[key]
}

func (s *renderers) keep(key revisionKey, r *render.Renderer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key] = r
}

// drop forgets a renderer.
func (s *renderers) drop(key revisionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
}

// retain forgets the renderers of an add-on, except those of the revisions that are used.
func (s *renderers) retain(rollout client.ObjectKey, used plan.Revisions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(key revisionKey, _ *render.Renderer) bool {
		_, isUsed := used[key.digest]
		return key.namespace == rollout.Namespace && key.addOn == rollout.Name && !isUsed
	})
}

// readStored reads which revisions of the add-on the hub has, and which of them succeeded. Times are RFC 3339 in UTC,
// so their texts sort by time.
func (r *Reconciler) readStored(ctx context.Context, ro *v1alpha1.AddOnRollout) (plan.StoredRevisions, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind + "List"))
	err := r.Live.List(ctx, list, client.InNamespace(ro.Namespace), client.MatchingLabels{v1alpha1.AddOnLabel: ro.Name})
	if err != nil {
		return plan.StoredRevisions{}, fmt.Errorf("cannot list revisions of %s: %w", ro.Name, err)
	}
	found := plan.StoredRevisions{MarkedQuarantined: map[string]v1alpha1.RememberedQuarantine{}, StoredAs: map[string]types.UID{}}
	for i := range list.Items {
		m := &list.Items[i]
		found.StoredAs[m.Name] = m.UID
		digest := m.Annotations[v1alpha1.RevisionAnnotation]
		stored := v1alpha1.Target{Source: ro.Spec.Target.Source, Revision: m.Name, Digest: digest}
		for _, stored.Commit = range v1alpha1.Commits(m.Annotations) {
			found.Stored = append(found.Stored, stored)
		}
		if stored.Commit == "" {
			found.Stored = append(found.Stored, stored)
		}
		if at := m.Annotations[v1alpha1.SucceededAtAnnotation]; at != "" {
			found.MarkedSucceeded = append(found.MarkedSucceeded, plan.Success{Name: m.Name, Digest: digest, At: at})
		}
		if q, ok := v1alpha1.ReadQuarantine(m.Annotations); ok {
			found.MarkedQuarantined[m.Name] = v1alpha1.RememberedQuarantine{Quarantine: q, RevisionUID: m.UID}
		}
	}
	slices.SortFunc(found.MarkedSucceeded, func(a, b plan.Success) int {
		return cmp.Or(strings.Compare(b.At, a.At), strings.Compare(a.Name, b.Name))
	})
	return found, nil
}

// readContents reads the bodies of revisions, uncached, and decodes each once. A deleted revision is not among the
// stored ones and counts as missing, even if this process decoded it before.
func (r *Reconciler) readContents(ctx context.Context, ro *v1alpha1.AddOnRollout, digests []string, stored map[string]types.UID, bounds *render.Bounds) plan.Revisions {
	contents := plan.Revisions{}
	for _, digest := range digests {
		key, read := revisionKey{ro.Namespace, ro.Name, digest}, r.renderers.get
		if _, ok := stored[render.RevisionName(ro.Name, digest)]; !ok {
			read = r.renderers.read
		}
		renderer, err := read(ctx, key, bounds)
		contents.Add(digest, renderer, err)
	}
	r.renderers.retain(client.ObjectKeyFromObject(ro), contents)
	return contents
}
