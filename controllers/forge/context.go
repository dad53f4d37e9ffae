package forge

import (
	"path"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// ContextName returns the commit status context of a source, of one of its add-ons, or of a stage of an add-on:
// <prefix>[/<add-on>[/<stage>]]. The prefix is spec.commitStatus.context; if absent, addonflow/<source>.
func ContextName(source *v1alpha1.AddOnSource, parts ...string) string {
	prefix := "addonflow/" + source.Name
	if spec := source.Spec.CommitStatus; spec != nil && spec.Context != "" {
		prefix = spec.Context
	}
	return commitstatus.ContextName(append([]string{prefix}, parts...)...)
}

// PlanContextName returns the context of the plans of a source: the context of the source with -plan after its first
// part, such as addonflow-plan/<source>. So two sources with different contexts also have different contexts for
// plans.
func PlanContextName(source *v1alpha1.AddOnSource) string {
	first, rest, _ := strings.Cut(ContextName(source), "/")
	return commitstatus.ContextName(first+"-plan", rest)
}

// NamespacePrefix begins the contexts that are reserved for sources of one namespace.
func NamespacePrefix(source *v1alpha1.AddOnSource) string {
	return "addonflow/" + source.Namespace + "/"
}

// OfNamespace reports whether the contexts of a source are reserved for its namespace. A segment such as .. would
// make a context look like one of another namespace.
func OfNamespace(source *v1alpha1.AddOnSource) bool {
	name := ContextName(source)
	return strings.HasPrefix(name, NamespacePrefix(source)) && path.Clean(name) == name
}

// destination is a digest of the repository and context of the statuses of a source.
func destination(source *v1alpha1.AddOnSource) string {
	spec := source.Spec.CommitStatus
	repository, err := commitstatus.Repository(spec.Provider, spec.Address)
	if err != nil {
		repository = spec.Address
	}
	return digestOf(spec.Provider, repository, ContextName(source))[:10]
}
