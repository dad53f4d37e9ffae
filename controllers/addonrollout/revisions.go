package addonrollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
)

// errRevisionMissing says that an AddOnRevision a cluster needs has no body. The
// clusters that need it are held; it is never rendered again from live objects.
var errRevisionMissing = errors.New("revision is missing")

// renderersKept bounds how many revisions are kept decoded.
const renderersKept = 64

// renderers turns digests into renderers, each decoded once.
type renderers struct {
	live   client.Reader
	charts chart.Engines

	mu   sync.Mutex
	kept map[client.ObjectKey]*render.Renderer
	// order of kept keys, oldest first.
	order []client.ObjectKey
}

// newRenderers returns a store that reads bodies uncached: they may be a
// mebibyte each, and a watch would hold all of them.
func newRenderers(live client.Reader, charts chart.Engines) *renderers {
	return &renderers{live: live, charts: charts, kept: map[client.ObjectKey]*render.Renderer{}}
}

// get returns the renderer of one add-on's revision. The error is
// errRevisionMissing when the AddOnRevision is gone or is not what its name says.
func (s *renderers) get(ctx context.Context, namespace, addOn, digest string) (*render.Renderer, error) {
	key := client.ObjectKey{Namespace: namespace, Name: render.RevisionName(addOn, digest)}
	if r := s.lookup(key); r != nil {
		return r, nil
	}
	var rev v1alpha1.AddOnRevision
	if err := s.live.Get(ctx, key, &rev); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &missingRevision{name: key.Name}
		}
		return nil, fmt.Errorf("cannot read revision %s: %w", key.Name, err)
	}
	if rev.Spec.Digest != digest {
		return nil, &missingRevision{name: key.Name, why: "holds " + rev.Spec.Digest}
	}
	r, err := decodeRenderer(rev.Spec.Body, chart.EngineFor(s.charts, namespace+"/"+addOn))
	if err != nil {
		// It will not get better by itself, and must hold nobody but those that run it.
		return nil, &missingRevision{name: key.Name, why: "cannot be used: " + err.Error()}
	}
	s.keep(key, r)
	return r, nil
}

// turnRevisions are the revisions of one add-on that one turn asks for, each once: of
// one that is gone, a thousand clusters would each ask the hub.
type turnRevisions struct {
	*renderers
	namespace, addOn string
	// listed are the names of those that the watch shows; nil: nobody looked.
	listed map[string]bool

	mu    sync.Mutex
	asked map[string]func() (*render.Renderer, error)
	// used are the renderers of this turn, with their interruptions before it.
	used map[*render.Renderer]int
}

// forTurn begins a turn.
func (s *renderers) forTurn(namespace, addOn string) *turnRevisions {
	return &turnRevisions{renderers: s, namespace: namespace, addOn: addOn, asked: map[string]func() (*render.Renderer, error){}, used: map[*render.Renderer]int{}}
}

// interrupted returns why a package could not be rendered since the turn began. What the
// turn observed is then not true of any cluster, and must not be planned with.
func (t *turnRevisions) interrupted() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r, before := range t.used {
		if n, err := r.Interruptions(); n > before {
			return fmt.Errorf("cannot render the package now: %w", err)
		}
	}
	return nil
}

// use notes the interruptions that a renderer had before it is used.
func (t *turnRevisions) use(r *render.Renderer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[r], _ = r.Interruptions()
}

// get returns the renderer of a digest, as renderers.get does.
func (t *turnRevisions) get(ctx context.Context, digest string) (*render.Renderer, error) {
	return t.ask(ctx, digest)()
}

// ask returns what answers for a digest, whoever calls it first.
func (t *turnRevisions) ask(ctx context.Context, digest string) func() (*render.Renderer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked[digest] == nil {
		t.asked[digest] = sync.OnceValues(func() (*render.Renderer, error) {
			// What one cluster asks for is every cluster's, whatever becomes of the one.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clusterFor)
			defer cancel()
			if name := render.RevisionName(t.addOn, digest); t.listed != nil && !t.listed[name] {
				// What was deleted is missing for this process as for the next one.
				t.drop(client.ObjectKey{Namespace: t.namespace, Name: name})
			}
			r, err := t.renderers.get(ctx, t.namespace, t.addOn, digest)
			if err == nil {
				t.use(r)
			}
			return r, err
		})
	}
	return t.asked[digest]
}

// decodeRenderer builds a renderer from a revision's body.
func decodeRenderer(body []byte, charts chart.Engine) (*render.Renderer, error) {
	content, err := render.Decode(body)
	if err != nil {
		return nil, err
	}
	return render.NewRenderer(content, charts)
}

// cached returns a renderer that was decoded before, whichever namespace it is of, or nil.
func (s *renderers) cached(addOn, digest string) *render.Renderer {
	if digest == "" {
		return nil
	}
	name := render.RevisionName(addOn, digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.kept {
		if key.Name == name {
			return r
		}
	}
	return nil
}

func (s *renderers) lookup(key client.ObjectKey) *render.Renderer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[key]
}

func (s *renderers) keep(key client.ObjectKey, r *render.Renderer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.kept[key]; !ok {
		s.order = append(s.order, key)
	}
	s.kept[key] = r
	for len(s.order) > renderersKept {
		delete(s.kept, s.order[0])
		s.order = s.order[1:]
	}
}

// drop forgets a renderer: its revision is to be read again.
func (s *renderers) drop(key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
	s.order = slices.DeleteFunc(s.order, func(k client.ObjectKey) bool { return k == key })
}

// success is one revision and when a rollout of it last ended Succeeded.
type success struct{ name, digest, at string }

// succeeded are the revisions of an add-on that succeeded here, the newest first.
type succeeded []success

// has reports whether a rollout of the revision of that name ended Succeeded here.
func (s succeeded) has(revision string) bool {
	return slices.ContainsFunc(s, func(x success) bool { return x.name == revision })
}

// since reports whether a rollout of the revision ended Succeeded after the time.
func (s succeeded) since(revision string, t *metav1.Time) bool {
	return t != nil && slices.ContainsFunc(s, func(x success) bool {
		at, err := time.Parse(time.RFC3339, x.at)
		return err == nil && x.name == revision && at.After(t.Time)
	})
}

// newest returns the revision that succeeded last; zero when none did.
func (s succeeded) newest() success {
	if len(s) == 0 {
		return success{}
	}
	return s[0]
}

// readRevisions reads the names and annotations of an add-on's revisions, without
// bodies: those that succeeded, and which there are. Times are RFC 3339 in UTC, whose
// order is that of their text.
func readRevisions(ctx context.Context, c client.Reader, namespace, addOn string) (s succeeded, listed map[string]bool, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind + "List"))
	err = c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.AddOnLabel: addOn})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list revisions of %s: %w", addOn, err)
	}
	listed = make(map[string]bool, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		listed[m.Name] = true
		if at := m.Annotations[v1alpha1.SucceededAtAnnotation]; at != "" {
			s = append(s, success{name: m.Name, digest: m.Annotations[v1alpha1.RevisionAnnotation], at: at})
		}
	}
	slices.SortFunc(s, func(a, b success) int {
		return cmp.Or(strings.Compare(b.at, a.at), strings.Compare(a.name, b.name))
	})
	return s, listed, nil
}
