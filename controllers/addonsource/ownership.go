package addonsource

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
)

// conflict is an object that has another owner. The first owner keeps it.
type conflict struct {
	object objectKey
	// owner is a source, a field manager, or AddonFlow itself.
	owner string
	// fix says how to resolve the conflict. hint has further facts, for which a forge has no room.
	fix, hint string
}

// contested is the halt of a commit that declares objects of other owners. It names file and
// line.
func contested(objects []gitsource.Object, conflicts []conflict) *halt {
	var problems problem.List
	for _, c := range conflicts {
		one := problem.Problem{Kind: c.object.Kind, Name: c.object.Name, Message: "belongs to " + c.owner + c.fix, Hint: c.hint}
		problems = append(problems, asWritten(objects, c.object, problem.List{one})...)
	}
	// One file of an add-on may become two objects on the hub.
	problems = slices.Compact(problems.Sorted())
	return &halt{kind: stalled, reason: v1alpha1.OwnershipConflictReason, text: problems.Error(), problems: problems}
}

// conflictWith returns the conflict about one object that the commit declares; false: there is none. No commit may
// change AddonFlow itself, whatever rights the account of its source has.
func conflictWith(key objectKey, desired *unstructured.Unstructured, in planInput) (conflict, bool) {
	live := in.seen.live[key]
	if installs(live) || installs(desired) {
		return conflict{object: key, owner: "the installation of AddonFlow", fix: ", which no commit changes"}, true
	}
	owner := ownerOf(live)
	if owner != "" && owner != in.source && in.seen.sources[owner] && !released(key, in.seen) {
		return conflict{
			object: key,
			owner:  "source " + owner,
			fix:    "; declare it in one source only",
			hint:   "a source that no longer declares it keeps it until it is pruned or released there",
		}, true
	}
	if in.mode == Coexist && key.isAddOn() && !in.forced && claimed(live, in.source) && listsTemplates(live) {
		return conflict{
			object: key,
			owner:  "field manager " + v1alpha1.TemplateWriter(live),
			fix:    ", which lists addontemplates again: stop that writer; addonflow reconcile source " + strings.TrimPrefix(in.source, in.namespace+"/") + " -n " + in.namespace + " --force",
			hint:   "addontemplates start OCM's template manager",
		}, true
	}
	return conflict{}, false
}

// contests returns the conflicts with clients that undo each write of an object. A client that leaves all values as
// the commit declares them is no conflict. If the user requests a reconcile, each object is written once more.
func (p *pass) contests(changes []change) []conflict {
	found := map[objectKey]bool{}
	var conflicts []conflict
	for _, c := range changes {
		key := keyOf(c.desired)
		last := p.writes.of(key)
		applies := last.applies
		if c.live != nil && c.live.GetResourceVersion() == last.resourceVersion {
			continue // no client removed the fence
		}
		if p.requested || c.sameValues || !applies.Full(digestOf(c.desired)) || applies.Quiet(p.now) && !p.memory.contested[key] {
			continue
		}
		found[key] = true
		writer := "another client"
		if c.live != nil {
			writer = "field manager " + lastWriter(c.live)
		}
		conflicts = append(conflicts, conflict{
			object: key, owner: writer, fix: ", which undoes every write: stop that writer; addonflow reconcile source " + p.source.Name + " -n " + p.source.Namespace,
		})
	}
	p.memory.contested = found
	return conflicts
}

// released reports whether the owner of an AddOnRollout no longer needs it: its add-on was
// removed from the whole fleet.
func released(key objectKey, seen *observation) bool {
	if !key.isRollout() {
		return false
	}
	r := seen.rollouts[key.Name]
	return r != nil && r.Spec.Removal != nil && r.Status.Phase == v1alpha1.PhaseRemoved
}

// claimed reports whether this source applied a ClusterManagementAddOn before. Then any take-over is complete.
func claimed(live *unstructured.Unstructured, source string) bool {
	return live != nil && ownerOf(live) == source &&
		live.GetAnnotations()[v1alpha1.LifecycleAnnotation] == v1alpha1.LifecycleValue
}

// namespacedName parses the value of a source annotation.
func namespacedName(s string) (client.ObjectKey, bool) {
	namespace, name, ok := strings.Cut(s, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}, ok && namespace != "" && name != ""
}
