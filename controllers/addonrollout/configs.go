package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
)

const (
	// configRetry is the pause after an object could not be read.
	configRetry = 15 * time.Second
	// configTimeout bounds one read, so that one slow kind delays no turn for long.
	configTimeout = 10 * time.Second
	// configReads run in parallel.
	configReads = 8
)

var errConfigMissing = errors.New("does not exist")

// configStore reads the configurations that ManagedClusterAddOns name. It always returns the present state: a stored
// body is used only while the watch shows the same version.
type configStore struct {
	live   client.Reader
	mapper func() meta.RESTMapper
	// watch is nil in a command, which watches nothing. Then every object is read each time.
	watch *kindWatch
	clock clock.PassiveClock
}

// newConfigStore returns a store that watches nothing yet.
func newConfigStore(live client.Reader, mapper func() meta.RESTMapper, c clock.PassiveClock) *configStore {
	return &configStore{live: live, mapper: mapper, clock: c}
}

// readConfig is one object as it was read, or the error of reading it.
type readConfig struct {
	// version is UID and resource version; "": the object was not found or not read.
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

// read returns the references with their objects as the hub has them now. before are the objects of the rollout's
// last turn.
func (s *configStore) read(ctx context.Context, of client.ObjectKey, references map[render.ConfigReference]bool, before map[render.ConfigReference]readConfig) map[render.ConfigReference]readConfig {
	wanted := make([]namedConfig, 0, len(references))
	for reference := range references {
		wanted = append(wanted, s.locate(reference))
	}
	s.watch.use(ctx, of, wanted)
	found := make([]readConfig, len(wanted))
	var g errgroup.Group
	g.SetLimit(configReads)
	for i := range wanted {
		g.Go(func() error {
			found[i] = s.one(ctx, of.Name, wanted[i], before[wanted[i].ConfigReference])
			return nil
		})
	}
	_ = g.Wait() // each error is stored with its object
	read := make(map[render.ConfigReference]readConfig, len(wanted))
	for i := range wanted {
		read[wanted[i].ConfigReference] = found[i]
	}
	return read
}

// locate finds the kind and scope of a reference's resource. OCM's own kinds are read in the version
// that OCM hashes.
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

// one returns the current state of one object. before is the result of the last read.
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

// versionOf identifies a version of an object; it differs after the object was recreated.
func versionOf(o client.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// joinConfigs sets the configurations that the ManagedClusterAddOn of each member names, or the
// reason why they cannot be used. It returns the objects it read. Clusters that name the same
// object share it.
func (r *Reconciler) joinConfigs(ctx context.Context, o *plan.Observation, before map[render.ConfigReference]readConfig) map[render.ConfigReference]readConfig {
	target := o.Revisions[o.Target.Digest].Renderer // nil: the plan reports it
	references := map[render.ConfigReference]bool{}
	for _, m := range o.Members {
		m.Configs, m.Hindered = nil, unsupported(m, target)
		if m.Hindered == nil && m.AddOn != nil {
			for _, c := range m.AddOn.Spec.Configs {
				references[configReference(c)] = true
			}
		}
	}
	read := r.configs.read(ctx, client.ObjectKeyFromObject(o.Rollout), references, before)
	for _, m := range o.Members {
		if m.AddOn == nil || m.Hindered != nil {
			continue
		}
		for _, c := range m.AddOn.Spec.Configs {
			take(m, configReference(c), read[configReference(c)])
		}
	}
	return read
}

// take adds a configuration to those of the member. A configuration that is named twice counts
// once.
func take(m *plan.Member, reference render.ConfigReference, read readConfig) {
	switch {
	case m.Hindered != nil:
	case errors.Is(read.err, errConfigMissing):
		m.Hindered = &plan.Hindrance{Message: reference.String() + " does not exist"}
	case read.err != nil:
		m.Hindered = &plan.Hindrance{
			Message: fmt.Sprintf("cannot read %s: %v", reference, read.err), Retry: !errors.Is(read.err, load.ErrUnusableConfig),
		}
	default:
		m.Configs = append(m.Configs, read.config)
	}
}

// unsupported returns the hindrance of a member whose ManagedClusterAddOn names a kind that the add-on does not list.
// The text is OCM's.
func unsupported(m *plan.Member, target *render.Renderer) *plan.Hindrance {
	if m.AddOn == nil || target == nil {
		return nil
	}
	for _, c := range m.AddOn.Spec.Configs {
		if !target.Supports(c.Group, c.Resource) {
			return &plan.Hindrance{Unsupported: true, Message: render.UnsupportedMessage(c.Group, c.Resource)}
		}
	}
	return nil
}

func configReference(c addonv1alpha1.AddOnConfig) render.ConfigReference {
	return render.ConfigReference{Group: c.Group, Resource: c.Resource, Namespace: c.Namespace, Name: c.Name}
}
