package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

// ReasonTenantDenied: a tenant may not declare or deploy it.
const ReasonTenantDenied problem.Reason = "TenantDenied"

// Bounds limit the objects of an add-on on managed clusters and hosting clusters. A Renderer with bounds renders no
// object outside of them, whatever a cluster's configurations, annotations and labels contain. So no work with such
// an object can be written.
type Bounds struct {
	// Namespaces of objects and of the agent's credentials, and the names of Namespaces. In them, * stands for any
	// characters.
	Namespaces []string
	// Kinds of objects in no namespace, other than Namespace, as Kind or Kind.group.
	Kinds []string
}

// key distinguishes bounds; "": none.
func (b *Bounds) key() string {
	if b == nil {
		return ""
	}
	text, _ := json.Marshal(b) // strings only
	return string(text)
}

// mayUse reports whether a namespace of a managed cluster may be used.
func (b *Bounds) mayUse(namespace string) bool {
	return slices.ContainsFunc(b.Namespaces, func(pattern string) bool { return MatchesWildcard(pattern, namespace) })
}

// refuse returns why an object is out of bounds, and the field with the error. An API server ignores the namespace of
// an object whose kind has none. An object without a namespace counts as an object of such a kind, because an API
// server refuses any other object without a namespace.
func (b *Bounds) refuse(id Identity) (f flaw.Flaw, refused bool) {
	kind := id.groupKind()
	switch {
	case kind.Group == "" && kind.Kind == "Namespace":
		return b.namespaceFlaw(flaw.Path(metadataKey).Child(nameKey), id.Name), !b.mayUse(id.Name)
	case id.Namespace != "" && !chart.ClusterScoped(kind.Group, kind.Kind):
		return b.namespaceFlaw(flaw.Path(metadataKey).Child(namespaceKey), id.Namespace), !b.mayUse(id.Namespace)
	}
	return flaw.Flaw{
		Field: kindKey, Reason: ReasonTenantDenied,
		Message: fmt.Sprintf("the tenant may not deploy objects of kind %s without a namespace to managed clusters", kind),
		Hint:    "allowed: " + brief.Listed(b.Kinds),
	}, !slices.Contains(b.Kinds, kind.String())
}

func (b *Bounds) namespaceFlaw(at flaw.Path, namespace string) flaw.Flaw {
	return flaw.Flaw{
		Field: at, Reason: ReasonTenantDenied,
		Message: fmt.Sprintf("the tenant may not use namespace %q of managed clusters", namespace),
		Hint:    "allowed: " + brief.Listed(b.Namespaces),
	}
}

// bounded refuses objects that are out of bounds. A namespace from a configuration is reported there, once.
func (b *builder) bounded(p *rendering) *rendering {
	bounds := b.assignment.bounds
	if bounds == nil {
		return p
	}
	configured := func(namespace string) bool {
		if namespace != b.agent.namespace || namespace == "" {
			return false
		}
		b.found.addAll(Finding{Config: b.agent.origin}, bounds.namespaceFlaw("spec.agentInstallNamespace", namespace))
		return true
	}
	for i := range p.objects {
		id, m := p.objects[i].id, &b.manifests[i]
		f, refused := bounds.refuse(id)
		if !refused || f.Field != kindKey && configured(cmp.Or(id.Namespace, id.Name)) {
			continue
		}
		if m.at == "" { // an injected manifest
			f.Field = ""
		} else {
			f.Field = m.at + "." + f.Field
		}
		b.report(m, f)
	}
	if len(p.registration) > 0 && !bounds.mayUse(p.namespace) && !configured(p.namespace) {
		b.found.addAll(Finding{Template: b.template.name}, bounds.namespaceFlaw("spec.registration", p.namespace))
	}
	return p
}
