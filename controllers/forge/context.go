package forge

import (
	"path"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// ContextName returns the commit status context of a source, of one of its add-ons,
// or of a stage of an add-on: <prefix>[/<add-on>[/<stage>]]. The prefix is
// spec.commitStatus.context, else addonflow/<source>.
func ContextName(source *v1alpha1.AddOnSource, parts ...string) string {
	prefix := "addonflow/" + source.Name
	if spec := source.Spec.CommitStatus; spec != nil && spec.Context != "" {
		prefix = spec.Context
	}
	return commitstatus.ContextName(append([]string{prefix}, parts...)...)
}

// PlanContextName returns the context of the plans of a source: its own context with -plan behind the
// first part, addonflow-plan/<source>. So two sources whose contexts differ have different contexts for plans,
// too.
func PlanContextName(source *v1alpha1.AddOnSource) string {
	first, rest, _ := strings.Cut(ContextName(source), "/")
	return commitstatus.ContextName(first+"-plan", rest)
}

// NamespacePrefix begins the contexts that only sources of one namespace may have.
func NamespacePrefix(source *v1alpha1.AddOnSource) string {
	return "addonflow/" + source.Namespace + "/"
}

// OfNamespace reports whether no source of another namespace may have the contexts of a source. Segments such as ..
// would let a context read as one of another namespace.
func OfNamespace(source *v1alpha1.AddOnSource) bool {
	name := ContextName(source)
	return strings.HasPrefix(name, NamespacePrefix(source)) && path.Clean(name) == name
}

// destination is a digest of where the statuses of a source are posted.
func destination(source *v1alpha1.AddOnSource) string {
	spec := source.Spec.CommitStatus
	repository, err := commitstatus.Repository(spec.Provider, spec.Address)
	if err != nil {
		repository = spec.Address
	}
	return digestOf(spec.Provider, repository, ContextName(source))[:10]
}
