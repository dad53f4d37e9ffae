package recording

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/hub"
)

// addOnLabel and clusterLabel are OCM's, on works. The second names the managed cluster of a
// work that a hosting cluster has.
const (
	addOnLabel   = "open-cluster-management.io/addon-name"
	clusterLabel = "open-cluster-management.io/addon-namespace"
)

// Recording keeps what a hub stored, from a watch. It is safe for concurrent use.
type Recording struct {
	mu       sync.Mutex
	rollouts map[types.UID][]*v1alpha1.AddOnRollout
	works    map[types.UID][]content
	// from is the version of the hub at which the record begins.
	from  uint64
	ended error
}

// content is a version of a work whose digest differs from the version before.
type content struct {
	written                                uint64
	name, addOn, cluster, revision, digest string
}

func empty() *Recording {
	return &Recording{rollouts: map[types.UID][]*v1alpha1.AddOnRollout{}, works: map[types.UID][]content{}}
}

// Record watches until ctx ends. The record begins with the current state of the hub.
func Record(ctx context.Context, c client.WithWatch) (*Recording, error) {
	r := empty()
	for _, list := range []client.ObjectList{&v1alpha1.AddOnRolloutList{}, &workv1.ManifestWorkList{}} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("cannot list %T: %w", list, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			r.note(watch.Event{Type: watch.Added, Object: o})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot read %T: %w", list, err)
		}
		r.from = max(r.from, versionNumber(list.GetResourceVersion()))
		// An API server ends a watch that is slow; the next one begins where it ended.
		events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, list, &client.ListOptions{Raw: &options})
			},
		})
		if err != nil {
			return nil, fmt.Errorf("cannot watch %T: %w", list, err)
		}
		go r.follow(ctx, events)
	}
	return r, nil
}

// Stored is the recording of a hub's whole history.
func Stored(changes []hub.Change) (*Recording, error) {
	r := empty()
	for _, c := range changes {
		var o client.Object
		switch {
		case c.Value == nil:
			continue
		case strings.HasPrefix(c.Key, "/registry/addonflow.io/addonrollouts/"):
			o = &v1alpha1.AddOnRollout{}
		case strings.HasPrefix(c.Key, "/registry/work.open-cluster-management.io/manifestworks/"):
			o = &workv1.ManifestWork{}
		default:
			continue
		}
		if err := json.Unmarshal(c.Value, o); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", c.Key, err)
		}
		o.SetResourceVersion(strconv.FormatInt(c.Revision, 10))
		r.note(watch.Event{Type: watch.Modified, Object: o})
	}
	return r, nil
}

func (r *Recording) follow(ctx context.Context, events watch.Interface) {
	for e := range events.ResultChan() {
		r.note(e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil && r.ended == nil {
		r.ended = errors.New("the API server ended a watch: versions may be missing")
	}
}

func (r *Recording) note(e watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := e.Object.(type) {
	case *v1alpha1.AddOnRollout:
		if e.Type != watch.Deleted { // its last version, once more
			r.rollouts[o.UID] = append(r.rollouts[o.UID], o)
		}
	case *workv1.ManifestWork:
		now := content{
			written: version(o), name: o.Namespace + "/" + o.Name, addOn: o.Labels[addOnLabel], cluster: o.Labels[clusterLabel],
			revision: o.Annotations[v1alpha1.RevisionAnnotation], digest: o.Annotations[v1alpha1.DigestAnnotation],
		}
		if now.cluster == "" {
			now.cluster = o.Namespace
		}
		known := r.works[o.UID]
		if e.Type != watch.Deleted && now.digest != "" && (len(known) == 0 || known[len(known)-1].digest != now.digest) {
			r.works[o.UID] = append(known, now)
		}
	}
}

func version(o client.Object) uint64 { return versionNumber(o.GetResourceVersion()) }

// versionNumber is a resourceVersion as a number: it counts the writes of a hub.
func versionNumber(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64) // an API server's is a number
	return n
}

// Versions are all versions of the rollouts of an add-on so far, oldest first.
func (r *Recording) Versions(addOn string) []*v1alpha1.AddOnRollout {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*v1alpha1.AddOnRollout
	for _, versions := range r.rollouts {
		if versions[0].Name == addOn {
			all = append(all, versions...)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.AddOnRollout) int { return cmp.Compare(version(a), version(b)) })
	return all
}
