package load

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

// Located is an object of a commit with its position.
type Located interface {
	// GetUnstructured returns the object as declared; Load does not change it.
	GetUnstructured() *unstructured.Unstructured
	// Position returns the file and the 1-based line of a field such as spec.customizedVariables[0].value or
	// metadata.labels[example.com/team]; "" stands for the object itself. Line 0: unknown.
	Position(field string) (path string, line int)
}

// Reference names an object of the hub that a commit refers to.
type Reference render.ConfigReference

// String returns Kind namespace/name, or the resource if render does not know the kind.
func (r Reference) String() string {
	resource, name := schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return cmp.Or(knownKind(resource), resource.String()) + " " + name
}

// Lookup has objects that exist only on the hub, as they were read there. A nil value means that the hub has no such
// object.
type Lookup map[Reference]*unstructured.Unstructured

// Options say what a source may declare, and how it is checked.
type Options struct {
	// AllowedAddOns are the names of the add-ons it may declare; empty: any.
	AllowedAddOns []string
	// Namespace of the AddOnSource. An AddOnRollout must be in the same one. Empty, as offline:
	// not checked.
	Namespace string
	// HubKinds accepts objects of further kinds, which are applied to the hub with the rights of an account. Without
	// it, such objects are a problem.
	HubKinds bool
	// Bounds limit the objects of add-ons on managed clusters; nil: no limit.
	Bounds *render.Bounds
	// AsksDefinitions: the caller reads CustomResourceDefinitions. A definition that is needed and not in the Lookup
	// is then in Missing. Without it, as offline, the definition is in Commit.Undefined, and the objects are taken as
	// declared.
	AsksDefinitions bool
	// KubeVersions are the Kubernetes versions with which packages are checked; empty: one that
	// the chart allows.
	KubeVersions []string
	// Charts renders the packages of the commit. It may be nil if there are none.
	Charts chart.Engine
}

// Commit has the add-ons and the other objects that one commit declares.
type Commit struct {
	// AddOns sorted by name.
	AddOns []AddOn
	// Objects to apply to the hub, normalised to the storage version and sorted: Namespaces first;
	// ClusterManagementAddOns, as declared, last. AddOnRollouts are in AddOn.Rollout instead. If there is a problem,
	// the list is empty.
	Objects []*unstructured.Unstructured
	// Missing are the references, sorted, that are not in the commit and not in the Lookup, or that the hub does not
	// have. The caller reads them from the hub and loads again. If some are still missing, the caller waits for them
	// (Reconciling); this is not an error.
	Missing []Reference
	// Undefined are the CustomResourceDefinitions, sorted, of configurations that were taken as declared. The hashes
	// of these configurations do not include the changes that the hub makes on a write.
	Undefined []Reference
	// Warnings are about accepted input that is probably a mistake: a variable with spaces in its braces, braces that
	// are never closed, a name that the commit does not declare. If there is a problem, the list is empty.
	Warnings problem.List

	// Interrupted is why a package could not be checked now; it wraps render.ErrInterrupted. If
	// there is no problem, the commit is not judged yet, and the caller loads it again later.
	Interrupted error
}

// AddOn is one add-on as a commit declares it.
type AddOn struct {
	Name string
	// Content and Digest are zero while the add-on has Missing references.
	Content render.Content
	Digest  string
	// Declared is the digest of the content as far as the commit has it. It includes the digest of an Unfetched chart
	// instead of its files, and the names of Missing objects. On one hub, two commits with equal Declared have equal
	// content. "": there is a Digest, or the content is not known that far.
	Declared string
	// Missing are the references of this add-on in Commit.Missing.
	Missing []Reference
	// Refused has the flaws for which the API server would refuse the AddOnRollout. Other checks find the same
	// mistakes and explain them better. So callers use Refused only for mistakes that other checks accept.
	Refused []flaw.Flaw
	// Unfetched is the chart in a registry that was not fetched, as offline; "" otherwise.
	// Content and Digest are zero then, too.
	Unfetched string
	// Install is the declared installStrategy. It is policy and not in the Digest. Its numbers and durations have the
	// right type; rollout.Validate judges them.
	Install v1alpha1.Install
	// Paced: the ClusterManagementAddOn declares a pace. Install alone does not show this, because it also has the
	// defaults.
	Paced bool
	// Rollout is the spec of the commit's AddOnRollout for this add-on, nil if none.
	Rollout *v1alpha1.AddOnRolloutSpec
	// ClusterManagementAddOn is normalised and otherwise as declared.
	ClusterManagementAddOn *addonv1alpha1.ClusterManagementAddOn
	// Position returns the position of a field of the add-on's ClusterManagementAddOn or
	// AddOnRollout (the kind); "" and 0 for another kind.
	Position func(kind, field string) (path string, line int)
	// Place returns the findings of an *InvalidError with their positions in the commit; for another error, none.
	Place func(err error) problem.List
}

// Policy returns the policy that an add-on declares: its AddOnRollout, if the commit has one, and
// its installStrategy.
func (a AddOn) Policy() v1alpha1.AddOnRolloutSpec {
	spec := v1alpha1.AddOnRolloutSpec{}
	if a.Rollout != nil {
		spec = *a.Rollout.DeepCopy()
	}
	spec.Install = a.Install.DeepCopy()
	return spec
}

// Load checks the objects of a commit as one unit and returns what they declare. If there is a problem, the commit
// must not be applied. The AddOns are then built without the wrong fields, and may be used to look for more problems.
//
// All problems are returned, in the order of the steps that find them: the form of each object, its missing fields,
// its values, its references, its rendering. Problems of a later step may follow from earlier ones. Within a step
// they are sorted. Checks that need a Missing object run when it is available. The order of objects does not matter.
//
// Standard OCM objects are accepted in the versions that OCM serves. These are problems: an unknown field, a value of
// another type, and metadata that only the API server may set. Load drops the fields that the API server itself drops
// on a write: status, null fields, metadata.creationTimestamp, generation and selfLink, and the namespace of a
// cluster-scoped object.
//
// If the pace in rolloutStrategy, strategy and stages has the right type, Load leaves its check to rollout.Validate.
func Load(objects []Located, hub Lookup, o Options) (Commit, problem.List) {
	l := loader{options: o, hub: hub}
	schemas, err := compiledSchemas()
	if err != nil {
		return Commit{}, problem.List{{Reason: flaw.ReasonInvalidManifest, Message: err.Error()}}
	}
	if l.schemas, err = schemas.defined(l.hub); err != nil {
		return Commit{}, problem.List{{Reason: flaw.ReasonUnsupportedKind, Message: err.Error()}}
	}
	for _, step := range []func(){func() { l.read(objects) }, l.reportMissing, l.checkPackages, l.judge, l.buildAddOns, l.checkAddOns} {
		earlier := l.problems
		l.problems = nil
		step()
		l.problems = earlier.Then(slices.Compact(l.problems.Sorted()))
	}
	commit := l.commit()
	commit.Interrupted = l.interrupted
	return commit, l.problems
}
