package addonsource

import (
	"cmp"
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
)

// observation is the state of the hub that a pass read.
type observation struct {
	// rollouts of the namespace, by add-on.
	rollouts map[string]*v1alpha1.AddOnRollout
	// live is the stored form of every relevant object; nil: it does not exist.
	live map[objectKey]*unstructured.Unstructured
	// unserved are applied objects whose kind the hub does not serve now.
	unserved map[objectKey]bool
	// introduced has, by the name of each existing revision, the commits that introduced its content.
	introduced map[string][]string
	// sources says which of the other sources that objects name exist.
	sources map[string]bool
	// installed are the ManagedClusterAddOns of the add-ons that are taken over or removed.
	installed map[string]installation
}

// installation is the state of the ManagedClusterAddOns of one add-on.
type installation struct {
	total int
	// handMade names the clusters whose object does not have AddonFlow's label.
	handMade []string
	// hashed are the objects on which OCM's template manager would still act.
	hashed []addonv1alpha1.ManagedClusterAddOn
}

func newObservation() *observation {
	return &observation{
		rollouts:   map[string]*v1alpha1.AddOnRollout{},
		live:       map[objectKey]*unstructured.Unstructured{},
		unserved:   map[objectKey]bool{},
		introduced: map[string][]string{},
		sources:    map[string]bool{},
		installed:  map[string]installation{},
	}
}

// observe reads everything that the plan for a compiled commit depends on.
func (p *pass) observe(ctx context.Context, a *attempt) (*observation, error) {
	seen := newObservation()
	if err := p.seeDefined(ctx, seen); err != nil {
		return nil, err
	}
	if err := p.seeDeclared(ctx, seen, a); err != nil {
		return nil, err
	}
	if err := p.seeInventory(ctx, seen); err != nil {
		return nil, err
	}
	if err := p.seeLeaving(ctx, seen, names(a.commit.AddOns)); err != nil {
		return nil, err
	}
	for _, addOn := range a.commit.AddOns {
		if err := p.seeAddOn(ctx, seen, addOn); err != nil {
			return nil, err
		}
	}
	return seen, p.seeSources(ctx, seen)
}

func names(addOns []load.AddOn) map[string]bool {
	set := make(map[string]bool, len(addOns))
	for _, addOn := range addOns {
		set[addOn.Name] = true
	}
	return set
}

// seeDefined calls seeRollouts, and halts if the definition of the rollouts is missing or is being deleted, because
// the rollouts are then deleted, too.
func (p *pass) seeDefined(ctx context.Context, seen *observation) error {
	if err := p.seeRollouts(ctx, seen); err != nil {
		return cmp.Or(p.defined(ctx), err)
	}
	for _, addOn := range p.source.Status.AddOns {
		if r := seen.rollouts[addOn.Name]; r == nil || r.DeletionTimestamp != nil {
			return p.defined(ctx)
		}
	}
	return nil
}

// defined halts while a CustomResourceDefinition that the source needs is missing or is being deleted. It is called
// when an object is missing or is being deleted, because this may be the cause.
func (p *pass) defined(ctx context.Context) error {
	for _, plural := range []string{"addonrevisions", "addonrollouts"} {
		name := plural + "." + v1alpha1.GroupVersion.Group
		definition := metadataOf(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		err := p.Live.Get(ctx, client.ObjectKey{Name: name}, definition)
		switch {
		case apierrors.IsNotFound(err):
			return wait(v1alpha1.DefinitionMissingReason, p.backoff(), "CustomResourceDefinition/%s is missing: apply the CRDs of AddonFlow again", name)
		case err != nil:
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot read CustomResourceDefinition %s: %w", name, err))
		case definition.DeletionTimestamp != nil:
			return wait(v1alpha1.DefinitionMissingReason, p.backoff(), "CustomResourceDefinition/%s is being deleted; %s", name, v1alpha1.UninstallAdvice)
		}
	}
	return nil
}

// seeRollouts reads the AddOnRollouts of the source's namespace.
func (p *pass) seeRollouts(ctx context.Context, seen *observation) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRolloutKind + "List"))
	if err := p.Live.List(ctx, list, client.InNamespace(p.source.Namespace)); err != nil {
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot list rollouts: %w", err))
	}
	for i := range list.Items {
		live := &list.Items[i]
		r := &v1alpha1.AddOnRollout{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, r); err != nil {
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot read rollout %s: %w", live.GetName(), err))
		}
		seen.rollouts[r.Name], seen.live[rolloutKey(r.Namespace, r.Name)] = r, live
	}
	return nil
}

// see reads the stored form of an object, once. If the hub does not serve a kind, its objects count as missing, and
// the pass waits for them, because a CRD may be installed together with its operator.
func (p *pass) see(ctx context.Context, seen *observation, u *unstructured.Unstructured) error {
	key := keyOf(u)
	if _, done := seen.live[key]; done {
		return nil
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	err := p.reader(key).Get(ctx, client.ObjectKeyFromObject(u), live)
	switch {
	case apierrors.IsNotFound(err):
		seen.live[key] = nil
		return nil
	case meta.IsNoMatchError(err):
		return wait(v1alpha1.ReferenceNotFoundReason, p.backoff(), "waiting for the hub to serve %s %s", u.GetAPIVersion(), u.GetKind())
	case err != nil:
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot read %s: %w", key, err))
	}
	seen.live[key] = live
	return nil
}

// seeInventory reads the objects that were applied before. If the hub does not serve a kind, it is unknown whether
// its objects are deleted or return with the next discovery.
func (p *pass) seeInventory(ctx context.Context, seen *observation) error {
	for _, reference := range p.source.Status.Inventory {
		object := emptyOf(reference)
		_, err := p.Client.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind())
		if meta.IsNoMatchError(err) {
			seen.unserved[keyOf(object)] = true
			continue
		}
		if err != nil {
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot find the resource of %s: %w", keyOf(object), err))
		}
		if err := p.see(ctx, seen, object); err != nil {
			return err
		}
	}
	return nil
}

// seeAddOn reads the revision, if it exists. If this source does not own the add-on yet, it also reads the fields
// that OCM's addon-manager left on the clusters' objects.
func (p *pass) seeAddOn(ctx context.Context, seen *observation, addOn load.AddOn) error {
	name := render.RevisionName(addOn.Name, addOn.Digest)
	revision, err := p.revision(ctx, name)
	if err != nil {
		return err
	}
	if revision != nil {
		seen.introduced[name] = v1alpha1.Commits(revision.Annotations)
	}
	if p.AddonManager == Replace || claimed(seen.live[addOnKey(addOn.Name)], p.name()) && !p.forced {
		return nil
	}
	return p.seeInstalled(ctx, seen, addOn.Name)
}

// revision reads an AddOnRevision without its body; nil: it does not exist.
func (p *pass) revision(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	revision := &metav1.PartialObjectMetadata{}
	revision.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.source.Namespace, Name: name}, revision)
	switch {
	case apierrors.IsNotFound(err):
		return nil, p.defined(ctx)
	case err != nil:
		return nil, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot read revision %s: %w", name, err))
	case revision.DeletionTimestamp != nil:
		return revision, p.defined(ctx)
	}
	return revision, nil
}

// seeLeaving reads the existing objects of the add-ons that this source no longer declares.
func (p *pass) seeLeaving(ctx context.Context, seen *observation, declared map[string]bool) error {
	for name := range leavingNames(seen, p.source.Status.Inventory, declared, p.name()) {
		cma := &unstructured.Unstructured{}
		cma.SetGroupVersionKind(addOnGVK())
		cma.SetName(name)
		if err := p.see(ctx, seen, cma); err != nil {
			return err
		}
		if seen.live[keyOf(cma)] == nil {
			continue
		}
		if err := p.seeInstalled(ctx, seen, name); err != nil {
			return err
		}
	}
	return nil
}

// pageSize bounds one page of ManagedClusterAddOns.
const pageSize = 500

// seeInstalled reads the ManagedClusterAddOns of one add-on, page by page.
func (p *pass) seeInstalled(ctx context.Context, seen *observation, addOn string) error {
	found := installation{}
	for next := ""; ; {
		list := &addonv1alpha1.ManagedClusterAddOnList{}
		err := p.Live.List(ctx, list, client.MatchingFields{"metadata.name": addOn}, client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", addOn, err))
		}
		for i := range list.Items {
			found.add(list.Items[i])
		}
		if next = list.Continue; next == "" {
			seen.installed[addOn] = found
			return nil
		}
	}
}

func (i *installation) add(mca addonv1alpha1.ManagedClusterAddOn) {
	i.total++
	if !v1alpha1.Installed(&mca) {
		i.handMade = append(i.handMade, mca.Namespace)
	}
	if _, changed := withoutTemplateHash(&mca); changed {
		i.hashed = append(i.hashed, mca)
	}
}

// seeSources reads which of the other sources that own an object exist. An object of a deleted source has no owner.
func (p *pass) seeSources(ctx context.Context, seen *observation) error {
	for _, live := range seen.live {
		owner := ownerOf(live)
		if _, done := seen.sources[owner]; done || owner == "" || owner == p.name() {
			continue
		}
		key, ok := namespacedName(owner)
		if !ok {
			continue
		}
		other := &metav1.PartialObjectMetadata{}
		other.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnSourceKind))
		err := p.Live.Get(ctx, key, other)
		if client.IgnoreNotFound(err) != nil {
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot read source %s: %w", owner, err))
		}
		seen.sources[owner] = err == nil
	}
	return nil
}
