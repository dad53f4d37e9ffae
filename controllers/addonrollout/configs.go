package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
)

const (
	// configRetry is how long an object that could not be read is left alone.
	configRetry = 15 * time.Second
	// configTimeout bounds one read, so that one slow kind delays nobody's turn for long.
	configTimeout = 10 * time.Second
	// configReads run in parallel.
	configReads = 8
)

// errConfigMissing says that a configuration a ManagedClusterAddOn names is not there.
var errConfigMissing = errors.New("does not exist")

// hindrance is why a cluster cannot be given anything now, though it is there: what
// its own ManagedClusterAddOn names on the hub. It is that cluster's trouble alone.
type hindrance struct {
	// unsupported says that it names a kind the add-on does not list.
	unsupported bool
	message     string
	// retry says that nothing need change on the hub for it to pass.
	retry bool
}

// conditions say so on the ManagedClusterAddOn.
func (h hindrance) conditions() []metav1.Condition {
	if h.unsupported {
		return addonstatus.Unsupported(h.message)
	}
	return addonstatus.Hindered(h.message)
}

// configStore reads the configurations that ManagedClusterAddOns name on the hub.
// What it returns is always as the hub has it: a body is kept only with the version
// a watch still shows for it, and is read otherwise.
type configStore struct {
	live   client.Reader
	mapper func() meta.RESTMapper
	// watch is nil where nothing is watched, as in a command; then all is read.
	watch *kindWatch
	clock clock.PassiveClock

	mu sync.Mutex
	// kept by rollout, what the last turn of it used.
	kept map[client.ObjectKey]map[render.ConfigReference]readConfig
}

// newConfigStore returns a store that watches nothing yet.
func newConfigStore(live client.Reader, mapper func() meta.RESTMapper, c clock.PassiveClock) *configStore {
	return &configStore{live: live, mapper: mapper, clock: c, kept: map[client.ObjectKey]map[render.ConfigReference]readConfig{}}
}

// readConfig is one object as read, or why it could not be.
type readConfig struct {
	// version is uid and resource version; "" for one that was not found or read.
	version string
	config  render.Config
	err     error
	at      time.Time
}

// namedConfig is one configuration and where the hub serves it.
type namedConfig struct {
	render.ConfigReference
	kind schema.GroupVersionKind
	key  client.ObjectKey
	err  error
}

// read returns every one of the references as the hub has it now.
func (s *configStore) read(ctx context.Context, of client.ObjectKey, references map[render.ConfigReference]bool) map[render.ConfigReference]readConfig {
	wanted := make([]namedConfig, 0, len(references))
	for reference := range references {
		wanted = append(wanted, s.locate(reference))
	}
	s.watch.use(ctx, of, wanted)
	s.mu.Lock()
	before := s.kept[of]
	s.mu.Unlock()
	found := make([]readConfig, len(wanted))
	var g errgroup.Group
	g.SetLimit(configReads)
	for i := range wanted {
		g.Go(func() error {
			found[i] = s.one(ctx, of.Name, wanted[i], before[wanted[i].ConfigReference])
			return nil
		})
	}
	_ = g.Wait() // every trouble is one object's
	next := make(map[render.ConfigReference]readConfig, len(wanted))
	for i := range wanted {
		next[wanted[i].ConfigReference] = found[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[of] = next
	return next
}

// locate finds the kind and scope of a reference's resource. OCM's own kinds are read
// in the version whose hash is OCM's.
func (s *configStore) locate(reference render.ConfigReference) namedConfig {
	n := namedConfig{ConfigReference: reference, key: client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}}
	resource := schema.GroupVersionResource{Group: reference.Group, Resource: reference.Resource}
	if reference.Group == addonv1alpha1.GroupName {
		resource.Version = addonv1alpha1.GroupVersion.Version
	}
	mapper := s.mapper()
	if n.kind, n.err = mapper.KindFor(resource); n.err != nil {
		return n
	}
	mapping, err := mapper.RESTMapping(n.kind.GroupKind(), n.kind.Version)
	if n.err = err; err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		n.key.Namespace = ""
	}
	return n
}

// one returns one object as the hub has it. before is what was read last.
func (s *configStore) one(ctx context.Context, addOn string, n namedConfig, before readConfig) readConfig {
	now := s.clock.Now()
	if n.err != nil {
		return readConfig{err: n.err, at: now}
	}
	version, known := s.watch.version(ctx, n)
	switch {
	case known && version == "":
		return readConfig{err: errConfigMissing, at: now}
	case known && version == before.version:
		return before
	case before.version == "" && before.err != nil && !errors.Is(before.err, errConfigMissing) && now.Sub(before.at) < configRetry:
		return before
	}
	return s.fetch(ctx, addOn, n)
}

// fetch reads one object from the API server.
func (s *configStore) fetch(ctx context.Context, addOn string, n namedConfig) readConfig {
	ctx, cancel := context.WithTimeout(ctx, configTimeout)
	defer cancel()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(n.kind)
	read := readConfig{at: s.clock.Now()}
	err := s.live.Get(ctx, n.key, object)
	switch {
	case apierrors.IsNotFound(err):
		read.err = errConfigMissing
	case err != nil:
		read.err = err
	default:
		read.version = versionOf(object)
		read.config, read.err = load.LiveConfig(addOn, n.ConfigReference, object)
	}
	return read
}

// forget drops what a rollout used.
func (s *configStore) forget(of client.ObjectKey) {
	s.watch.use(context.Background(), of, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, of)
}

// versionOf tells versions of objects apart, also of one that was made anew.
func versionOf(o client.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// joinConfigs gives every member the configurations its ManagedClusterAddOn names, or
// says what hinders it. Clusters that name one object share what is read of it.
func (r *Reconciler) joinConfigs(ctx context.Context, o *observation) {
	target, _ := o.revisions.get(ctx, o.rollout.Spec.Target.Digest) // without: the plan says so
	references := map[render.ConfigReference]bool{}
	for _, m := range o.members {
		m.hindered = unsupported(m, target)
		if m.hindered == nil && m.addOn != nil {
			for _, c := range m.addOn.Spec.Configs {
				references[configReference(c)] = true
			}
		}
	}
	read := r.configs.read(ctx, client.ObjectKeyFromObject(o.rollout), references)
	for _, m := range o.members {
		if m.addOn == nil || m.hindered != nil {
			continue
		}
		for _, c := range m.addOn.Spec.Configs {
			m.take(configReference(c), read[configReference(c)])
		}
	}
}

// take adds a configuration as it was read to those of the member. What is named
// twice counts once.
func (m *member) take(reference render.ConfigReference, read readConfig) {
	switch {
	case m.hindered != nil:
	case errors.Is(read.err, errConfigMissing):
		m.hindered = &hindrance{message: reference.String() + " does not exist"}
	case read.err != nil:
		m.hindered = &hindrance{
			message: fmt.Sprintf("cannot read %s: %v", reference, read.err), retry: !errors.Is(read.err, load.ErrUnusableConfig),
		}
	default:
		m.configs = append(m.configs, read.config)
	}
}

// unsupported says which kind a member's ManagedClusterAddOn names that the add-on
// does not list, in OCM's words.
func unsupported(m *member, target *render.Renderer) *hindrance {
	if m.addOn == nil || target == nil {
		return nil
	}
	for _, c := range m.addOn.Spec.Configs {
		if !target.Supports(c.Group, c.Resource) {
			return &hindrance{unsupported: true, message: render.UnsupportedMessage(c.Group, c.Resource)}
		}
	}
	return nil
}

// namesTemplate reports whether a ManagedClusterAddOn names a template itself.
func namesTemplate(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(addOn.Spec.Configs, func(c addonv1alpha1.AddOnConfig) bool { return addonstatus.IsTemplate(c.Group, c.Resource) })
}

func configReference(c addonv1alpha1.AddOnConfig) render.ConfigReference {
	return render.ConfigReference{Group: c.Group, Resource: c.Resource, Namespace: c.Namespace, Name: c.Name}
}

// retries reports whether something is in a member's way that may be gone soon, without
// anything that is watched for this rollout.
func (o *observation) retries() bool {
	return slices.ContainsFunc(o.members, func(m *member) bool {
		return m.hindered != nil && m.hindered.retry || m.refused != nil && m.refused.retry || m.overruled != nil
	})
}
