package addonsource

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/load"
)

// attempt is the work on one commit under one fingerprint. The objects of a commit never change. The compiled result
// may change with the objects on the hub to which the commit refers.
type attempt struct {
	revision string
	spec     string
	// requestedAt is the user's request for which the commit was read.
	requestedAt string
	// author and subject are those of the commit; "" for an artifact of a registry.
	author, subject string
	objects         []gitsource.Object
	// unread is why a part of the commit could not be read.
	unread problem.List
	// hub are the referenced objects that exist only on the hub, as last read.
	hub    load.Lookup
	commit load.Commit
	// accepted is set if the API server accepted every object.
	accepted bool
	// refusedByHub: the API server refused to change an existing object.
	refusedByHub bool
}

// dependent reports whether the verdict on the commit depends on the hub: on objects that exist only there, or on a
// webhook. Then a change on the hub may lift the refusal.
func (a *attempt) dependent() bool {
	if a.refusedByHub {
		return true
	}
	for reference := range a.hub {
		if !reference.Definition() {
			return true
		}
	}
	return false
}

// lookups is how often a commit is compiled in one pass, because an object that is read from the hub may refer to
// another one.
const lookups = 4

func (p *pass) remembered() *attempt {
	a := p.memories.attempt(p.key().NamespacedName)
	if a == nil || a.revision != p.head.String() || a.spec != p.spec {
		return nil
	}
	return a
}

// attempt returns the attempt of the head: from memory, or from the objects of the repository. A forced reconcile
// reads them again, because a key may have expired meanwhile.
func (p *pass) attempt(ctx context.Context) (*attempt, error) {
	a := p.remembered()
	if a == nil || p.forced && p.requested && a.requestedAt != p.requestedAt() {
		b, err := p.fetch(ctx)
		if err != nil {
			return nil, err
		}
		a = &attempt{revision: p.head.String(), spec: p.spec, requestedAt: p.requestedAt(), author: b.author, subject: b.subject, objects: b.objects, unread: b.unread, hub: load.Lookup{}}
		p.memories.attempts.Add(p.key().NamespacedName, a)
	}
	if p.requested || p.forced {
		a.accepted = false
	}
	return a, nil
}

// compile compiles the attempt with the present objects of the hub to which it refers.
func (p *pass) compile(ctx context.Context, a *attempt) error {
	hub, err := p.reread(ctx, a.hub)
	if err != nil {
		return err
	}
	a.hub = hub
	commit, problems, err := p.compileObjects(ctx, a.objects, a.unread, hub, p.chartOwner(), p.lookUp)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return refuse(verdict(a.unread), problems)
	}
	if commit.Interrupted != nil {
		return retry(v1alpha1.RenderInterruptedReason, fmt.Errorf("cannot check the packages of the commit now: %w", commit.Interrupted))
	}
	if i := slices.IndexFunc(commit.AddOns, func(addOn load.AddOn) bool { return addOn.Unfetched != "" }); i >= 0 {
		return wait(v1alpha1.FetchFailedReason, p.backoff(), "the chart %s was not fetched with this commit; to fetch it again, run addonflow reconcile source %s -n %s --force",
			commit.AddOns[i].Unfetched, p.source.Name, p.source.Namespace)
	}
	a.commit = commit
	if len(commit.Missing) > 0 {
		return wait(v1alpha1.ReferenceNotFoundReason, p.backoff(), "waiting for %s on the hub", referenceNames(commit.Missing))
	}
	return nil
}

// lookUp reads an object of the hub to which a commit refers; nil: the hub does not have it.
type lookUp func(context.Context, load.Reference) (*unstructured.Unstructured, error)

// chartOwner is the owner of the charts of the source. It begins with the namespace, because namespaces take turns in
// rendering. It differs from the owner of any rollout.
func (p *pass) chartOwner() string { return chartOwnerOf(client.ObjectKeyFromObject(p.source)) }

func chartOwnerOf(source client.ObjectKey) string {
	return source.Namespace + "/" + v1alpha1.AddOnSourceKind + "/" + source.Name
}

// compileObjects compiles objects. Then it reads the objects to which they refer into hub, and compiles again. If
// read is nil, nothing is read.
func (p *pass) compileObjects(ctx context.Context, objects []gitsource.Object, unread problem.List, hub load.Lookup, charts string, read lookUp) (load.Commit, problem.List, error) {
	options := CompileOptions{Tenant: p.tenant, Unread: unread, Now: p.now, Options: load.Options{
		AllowedAddOns: p.source.Spec.AddOns, Namespace: p.source.Namespace, HubKinds: p.account != nil, AsksDefinitions: read != nil,
		Charts: chart.EngineFor(p.Charts, charts),
	}}
	for left := lookups; ; left-- {
		commit, problems := Compile(objects, hub, options)
		found := 0
		if read != nil && left > 1 {
			for _, reference := range commit.Missing {
				object, err := read(ctx, reference)
				if err != nil {
					return commit, problems, err
				}
				if object != nil || reference.Definition() {
					hub[reference] = object // without a definition, objects of the kind are taken as declared
					found++
				}
			}
		}
		if found == 0 {
			return commit, problems, nil
		}
	}
}

// reread reads the references of an earlier pass again. From then on a deleted object is missing, and a changed one
// changes the content.
func (p *pass) reread(ctx context.Context, before load.Lookup) (load.Lookup, error) {
	hub := make(load.Lookup, len(before))
	for reference := range before {
		object, err := p.lookUp(ctx, reference)
		if err != nil {
			return nil, err
		}
		if object != nil {
			hub[reference] = object
		}
	}
	return hub, nil
}

// lookUp reads one referenced object; nil if the hub does not have it or does not serve its
// kind (yet).
func (p *pass) lookUp(ctx context.Context, r load.Reference) (*unstructured.Unstructured, error) {
	kind, err := p.Client.RESTMapper().KindFor(resourceOf(r))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, retry(v1alpha1.ReferenceNotFoundReason, fmt.Errorf("cannot find the kind of %s: %w", r.Resource, err))
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	hub := p.reader(objectKey{Group: kind.Group, Kind: kind.Kind})
	if r.Definition() {
		hub = p.Live // a schema belongs to no tenant
	}
	err = hub.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if p.denied(err) {
		return nil, wait(v1alpha1.ReferenceNotFoundReason, p.backoff(), "ServiceAccount %s may not read %s", p.accountKey(), r)
	}
	if err != nil {
		return nil, retry(v1alpha1.ReferenceNotFoundReason, fmt.Errorf("cannot read %s: %w", r, err))
	}
	return object, nil
}

// resourceOf returns the resource of a reference. Resources of OCM are read in the version to which the content is
// normalised, others in the hub's preferred version.
func resourceOf(r load.Reference) schema.GroupVersionResource {
	resource := schema.GroupVersionResource{Group: r.Group, Resource: r.Resource}
	if r.Group == addonv1alpha1.GroupName {
		resource.Version = addonv1alpha1.GroupVersion.Version
	}
	return resource
}

// referenceNames lists the first references by name.
func referenceNames(references []load.Reference) string {
	names := make([]string, 0, len(references))
	for _, r := range references {
		names = append(names, r.String())
	}
	return brief.Names(names)
}
