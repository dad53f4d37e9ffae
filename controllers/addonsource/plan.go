package addonsource

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
)

// planInput has everything on which a plan depends.
type planInput struct {
	// source is namespace/name; namespace is its namespace.
	source, namespace string
	// head is the revision string of the commit, applied that of the commit applied last.
	head, applied   string
	author, subject string
	// restoring: the head was applied before, so a change only restores an object.
	restoring bool
	// commitSHA is the commit of head.
	commitSHA string
	mode      Mode
	// defaultCanary gives a canary to the add-ons that declare no pace.
	defaultCanary bool
	forced        bool
	approved      approval
	// deleting names the object that is being deleted, such as AddOnSource/fleet; "": Git decides which objects
	// leave.
	deleting string
	commit   load.Commit
	// addOns and inventory are from the status.
	addOns    []v1alpha1.SourcedAddOn
	inventory []v1alpha1.ObjectReference
	seen      *observation
	// now is the time of the fence on the ClusterManagementAddOns that this pass fences off.
	now     time.Time
	written func(objectKey) written
}

// change is an object to apply, unless the hub already has it.
type change struct {
	desired, live *unstructured.Unstructured
	// sameSpec: according to the dry run, only metadata changes.
	sameSpec bool
	// sameValues: according to the dry run, no value changes; AddonFlow only becomes the manager of fields.
	sameValues bool
	// refused is why the API server refused the dry run.
	refused problem.List
}

// revision is the content of an add-on and the commit that introduces it.
type revision struct {
	load.AddOn
	commit string
}

// plan has all writes that apply one commit. If there are conflicts, none of them may be made. All lists are in the
// order of the writes.
type plan struct {
	conflicts  []conflict
	takeOvers  []takeOver
	namespaces []change
	// revisions to write: those that do not exist yet, do not name their commit, or were not written by this source.
	revisions []revision
	objects   []change
	// addOnObjects are the ClusterManagementAddOns.
	addOnObjects []change
	rollouts     []change
	// going are ClusterManagementAddOns that were deleted on the hub but still exist. They are applied again after
	// the deletion.
	going   []objectKey
	leaving []leaving
	// released stay on the hub without AddonFlow's marks.
	released []*unstructured.Unstructured
	// pruned are deleted. kept stay although they are no longer declared.
	pruned []*unstructured.Unstructured
	kept   []objectKey
	// unserved may be pruned when the hub serves their kinds again.
	unserved []objectKey

	// addOns and inventory are written to the status after all other writes.
	addOns    []v1alpha1.SourcedAddOn
	inventory []v1alpha1.ObjectReference
}

// planInput gathers the input of the plan for a compiled commit.
func (p *pass) planInput(a *attempt, seen *observation) planInput {
	return planInput{
		source:    p.name(),
		namespace: p.source.Namespace,
		head:      p.head.String(),
		applied:   p.source.Status.LastAppliedRevision,
		author:    a.author, subject: a.subject,
		restoring: p.restoring(),
		commitSHA: p.head.Commit,
		mode:      p.AddonManager, defaultCanary: p.DefaultCanary,
		forced:    p.forced,
		approved:  approvalOf(p.source),
		commit:    a.commit,
		addOns:    p.source.Status.AddOns,
		inventory: p.source.Status.Inventory,
		seen:      seen,
		now:       p.now,
		written:   p.writes.of,
	}
}

// newPlan compares a commit with the observed hub. It has no client and no clock: the same
// input gives the same plan.
func newPlan(in planInput) (plan, error) {
	todo := plan{}
	declared := map[objectKey]bool{}
	for _, object := range in.commit.Objects {
		desired := liveForm(object, in.source, in.mode)
		key := keyOf(desired)
		if in.mode == Coexist && key.isAddOn() {
			markFenced(desired, in.seen.live[key], in.source, in.now)
		}
		declared[key] = true
		todo.inventory = append(todo.inventory, referenceTo(desired))
		todo.add(in, key, desired)
	}
	for _, addOn := range in.commit.AddOns {
		if step, ok := takeOverOf(addOn.Name, in); ok {
			todo.takeOvers = append(todo.takeOvers, step)
		}
		if addOn.Digest == "" {
			continue // a commit waits for the rest of its content; a plan of a pull request does not
		}
		target := targetOf(addOn, in)
		spec := rolloutSpec(addOn, target)
		spec.Install.DefaultCanary = in.defaultCanary && !addOn.DeclaresPace()
		spec.PolicyCommit = policyCommitOf(addOn.Name, target, in)
		spec.PlacementDigest = placementDigest(in.commit.Objects, spec.Placements())
		policy, err := policyOf(spec)
		if err != nil {
			return plan{}, fmt.Errorf("cannot plan the rollout of %s: %w", addOn.Name, err)
		}
		sourced := v1alpha1.SourcedAddOn{
			Name: addOn.Name, Revision: target.Revision, Digest: target.Digest, Commit: target.Commit, PolicyCommit: spec.PolicyCommit, Policy: policy,
		}
		sourced.Author, sourced.Subject = saidOf(target.Commit, in)
		todo.addOns = append(todo.addOns, sourced)
		known := slices.ContainsFunc(in.addOns, func(before v1alpha1.SourcedAddOn) bool {
			before.Author, before.Subject = sourced.Author, sourced.Subject // not part of the content
			before.Policy = sourced.Policy                                  // not part of its revision
			return before == sourced
		})
		if !known || !slices.Contains(in.seen.introduced[target.Revision], target.Commit) {
			todo.revisions = append(todo.revisions, revision{addOn, target.Commit})
		}
		desired, err := rolloutObject(in.namespace, addOn.Name, in.source, spec)
		if err != nil {
			return plan{}, fmt.Errorf("cannot plan the rollout of %s: %w", addOn.Name, err)
		}
		annotations := with(desired.GetAnnotations(), v1alpha1.PolicyAnnotation, policy)
		if place, object := paceOf(addOn); place != "" {
			annotations[v1alpha1.PacePlaceAnnotation], annotations[v1alpha1.PaceObjectAnnotation] = place, object
		}
		if last := lastCommits(addOn, in); last != "" {
			annotations[v1alpha1.LastCommitsAnnotation] = last
		}
		desired.SetAnnotations(annotations)
		todo.add(in, keyOf(desired), desired)
	}
	todo.leaving = leavingAddOns(in, names(in.commit.AddOns))
	for _, l := range todo.leaving {
		if err := todo.addRemoval(in, l); err != nil {
			return plan{}, err
		}
	}
	todo.addPruning(in, declared)
	// An add-on gets its target after the add-ons on which it depends. Otherwise their earlier content would count.
	levels := levelsOf(in.commit.AddOns)
	slices.SortStableFunc(todo.rollouts, func(a, b change) int {
		return cmp.Compare(levels[a.desired.GetName()], levels[b.desired.GetName()])
	})
	slices.SortFunc(todo.inventory, compareReferences)
	return todo, nil
}

// levelsOf returns, by name, the length of the longest chain of dependencies below each add-on. A commit has no
// cycles.
func levelsOf(addOns []load.AddOn) map[string]int {
	levels := map[string]int{}
	for range addOns {
		for _, addOn := range addOns {
			for _, d := range dependenciesOf(addOn) {
				levels[addOn.Name] = max(levels[addOn.Name], levels[d.AddOn]+1)
			}
		}
	}
	return levels
}

// add plans one object: a conflict, a change, or nothing.
func (t *plan) add(in planInput, key objectKey, desired *unstructured.Unstructured) {
	if c, ok := conflictWith(key, desired, in); ok {
		t.conflicts = append(t.conflicts, c)
		return
	}
	live := in.seen.live[key]
	if live != nil && isGoing(live) {
		t.going = append(t.going, key)
		return
	}
	if !in.forced && guarded(live) && unchanged(live, desired, in.written(key)) {
		return
	}
	list := &t.objects
	switch {
	case key.isNamespace():
		list = &t.namespaces
	case key.isAddOn():
		list = &t.addOnObjects
	case key.isRollout():
		list = &t.rollouts
	}
	*list = append(*list, change{desired: desired, live: live})
}

// changes returns every object to apply, in order.
func (t *plan) changes() []change {
	return slices.Concat(t.namespaces, t.objects, t.addOnObjects, t.rollouts)
}

func (t *plan) writes() bool {
	return len(t.changes())+len(t.revisions)+len(t.takeOvers)+len(t.released)+len(t.pruned) > 0
}

// paceOf returns the place at which a commit declares the pace of an add-on; "": it declares none.
func paceOf(addOn load.AddOn) (place, object string) {
	kind, field := addOnKind, "spec.installStrategy.placements"
	switch {
	case !addOn.DeclaresPace():
		return "", ""
	case addOn.Rollout != nil && len(addOn.Rollout.Stages) > 0:
		kind, field = v1alpha1.AddOnRolloutKind, "spec.stages"
	case addOn.Rollout != nil && addOn.Rollout.Strategy != nil:
		kind, field = v1alpha1.AddOnRolloutKind, "spec.strategy"
	}
	path, line := addOn.Position(kind, field)
	at := problem.Problem{Path: path, Line: line}.String()
	return strings.TrimSuffix(at, ": "), strings.TrimSuffix(problem.Problem{Kind: kind, Name: addOn.Name, Field: field}.String(), ": ")
}

// policyCommitOf returns the commit that declared the current policy of an AddOnRollout; "": the target's commit. If
// the plan only restores an object, the commit is taken from the source's status, because the object may have been
// changed or deleted.
func policyCommitOf(name string, target v1alpha1.Target, in planInput) string {
	r := in.seen.rollouts[name]
	switch {
	case target.Commit == in.head:
	case in.restoring:
		for _, before := range in.addOns {
			if before.Name == name && before.Digest == target.Digest {
				return before.PolicyCommit
			}
		}
	case targetedBy(r, in.source):
		return r.Spec.PolicyCommit
	}
	return ""
}

// policyOf identifies the declarations in the spec of an AddOnRollout besides the content, whatever commit declared
// them. The spec on the hub cannot be used, because it also has defaults.
func policyOf(spec v1alpha1.AddOnRolloutSpec) (string, error) {
	spec.Target, spec.PolicyCommit = nil, ""
	text, err := json.Marshal(spec)
	return digestOfTexts(string(text)), err
}

// namePolicy enters the head, which is about to be applied, into the spec of every AddOnRollout that the plan
// changes. So a reader of the spec knows its commit before the status of the source names it. If the head also
// introduces the content, the target already names it. A spec that does not change keeps its commit. So a commit that
// does not change an add-on writes nothing, even if a newer operator writes other metadata.
func (t *plan) namePolicy(head string) error {
	for _, c := range t.rollouts {
		i := slices.IndexFunc(t.addOns, func(a v1alpha1.SourcedAddOn) bool { return a.Name == c.desired.GetName() })
		if i < 0 || t.addOns[i].Commit == head || c.sameSpec {
			continue // a removal names its own commit
		}
		t.addOns[i].PolicyCommit = head
		if err := unstructured.SetNestedField(c.desired.Object, head, "spec", "policyCommit"); err != nil {
			return fmt.Errorf("cannot name the commit of %s: %w", t.addOns[i].Name, err)
		}
	}
	return nil
}

// targetedBy reports whether a rollout belongs to a source because that source declared it last.
func targetedBy(r *v1alpha1.AddOnRollout, source string) bool {
	return r != nil && r.Annotations[v1alpha1.SourceAnnotation] == source && r.Spec.Removal == nil && r.Spec.Target != nil
}

// saidOf returns author and subject of a commit: of the head, or of a commit in the status.
func saidOf(commit string, in planInput) (author, subject string) {
	if commit == in.head {
		return in.author, in.subject
	}
	for _, before := range in.addOns {
		if before.Commit == commit {
			return before.Author, before.Subject
		}
	}
	return "", ""
}

// targetOf returns the content that an add-on's clusters are to run, with the commit that introduced it. As long as
// the content stays equal, the commit stays, too, whatever later commits change. An add-on that is declared again
// after a removal gets a new target. The rollout names the commit, because it is written before the source's status. If
// that commit did not introduce the content according to its revision, it was written by hand, and the newest one that
// did counts. If the plan only restores an object, the commit is taken from the source's status, because the rollout may
// have been changed or deleted.
func targetOf(addOn load.AddOn, in planInput) v1alpha1.Target {
	target := v1alpha1.Target{
		Source:   strings.TrimPrefix(in.source, in.namespace+"/"),
		Revision: render.RevisionName(addOn.Name, addOn.Digest),
		Digest:   addOn.Digest,
		Commit:   in.head,
	}
	if r := in.seen.rollouts[addOn.Name]; r != nil && r.Annotations[v1alpha1.SourceAnnotation] == in.source {
		if targetedBy(r, in.source) && r.Spec.Target.Digest == addOn.Digest {
			target.Commit = r.Spec.Target.Commit
			if by := in.seen.introduced[target.Revision]; len(by) > 0 && !slices.Contains(by, target.Commit) {
				target.Commit = by[0]
			}
		}
		if !in.restoring {
			return target
		}
	}
	for _, before := range in.addOns {
		if before.Name == addOn.Name && before.Digest == addOn.Digest {
			target.Commit = before.Commit
		}
	}
	return target
}

// lastCommits is the annotation with the last commits of the earlier content of an add-on in the source; "": there is
// none. The last commit with the content is the one applied last, if it declared the rollout's target. Otherwise, for
// example after a pass that ended between the target and its own status, it is the commit that introduced the target.
func lastCommits(addOn load.AddOn, in planInput) string {
	r := in.seen.rollouts[addOn.Name]
	if !targetedBy(r, in.source) {
		return ""
	}
	replaced := *r.Spec.Target
	if replaced.Digest == addOn.Digest {
		return r.Annotations[v1alpha1.LastCommitsAnnotation]
	}
	last := cmp.Or(replaced.Commit, in.applied)
	if slices.ContainsFunc(in.addOns, func(a v1alpha1.SourcedAddOn) bool {
		return a.Name == addOn.Name && a.Digest == replaced.Digest && a.Commit == replaced.Commit
	}) {
		last = in.applied
	}
	return v1alpha1.LastCommitsAfter(r.Annotations, replaced, last)
}

// addPruning plans the fate of objects that left the commit. Objects of an add-on that is being removed must stay
// until the removal is complete. An object does not say to which add-on it belongs, so all of them wait. For the same
// reason all of them are released together with a released add-on: a remaining object can be deleted by hand, but a
// deleted one may be missed.
func (t *plan) addPruning(in planInput, declared map[objectKey]bool) {
	removing := slices.ContainsFunc(t.leaving, func(l leaving) bool { return l.installed() || l.releaseRequested() })
	released := releasedNames(t.leaving)
	for _, reference := range in.inventory {
		key := keyOfReference(reference)
		live := in.seen.live[key]
		switch {
		case declared[key]:
		case in.seen.unserved[key]:
			t.unserved = append(t.unserved, key)
			t.inventory = append(t.inventory, reference)
		case !ours(live, in.source):
		case key.isReleased(released):
			t.released = append(t.released, live)
			t.inventory = append(t.inventory, reference)
		case key.isAddOn():
			t.inventory = append(t.inventory, reference)
		case in.approved == notApproved || key.isNamespace():
			t.kept = append(t.kept, key)
			t.inventory = append(t.inventory, reference)
		case removing:
			t.inventory = append(t.inventory, reference)
		default:
			t.pruned = append(t.pruned, live)
		}
	}
}

// notes describe the objects that an applied commit leaves behind, in texts that stay the same.
func (t *plan) notes() []string {
	var notes []string
	for _, l := range t.leaving {
		if note := l.note(); note != "" {
			notes = append(notes, note)
		}
	}
	if len(t.kept) > 0 {
		notes = append(notes, "no longer declared, but kept (Namespaces always; all objects without spec.prune, or while AddonFlow itself is being deleted): "+brief.Names(sortedTexts(t.kept)))
	}
	if len(t.unserved) > 0 {
		notes = append(notes, "left Git; checked again once the hub serves their kinds: "+brief.Names(sortedTexts(t.unserved)))
	}
	return notes
}

func sortedTexts(keys []objectKey) []string {
	texts := make([]string, 0, len(keys))
	for _, key := range keys {
		texts = append(texts, key.String())
	}
	slices.Sort(texts)
	return texts
}
