package spoke

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

const fieldSpec = "spec"

// Cluster is one managed cluster: its objects and which works own them.
type Cluster struct {
	world   *World
	objects map[identity]*object
}

// identity identifies an object. The version is not part of it.
type identity struct{ Group, Resource, Namespace, Name string }

func identityOf(m workv1.ManifestResourceMeta) identity {
	return identity{Group: m.Group, Resource: m.Resource, Namespace: m.Namespace, Name: m.Name}
}

// object is one live object. Its workload is nil if no modelled controller acts on it.
type object struct {
	// live is the object now, and created what the agent created it from.
	live, created *unstructured.Unstructured
	// works that applied it. The value says whether the object is deleted with the last of them; false: its
	// deleteOption keeps it.
	works      map[string]bool
	generation int64
	workload   workload
}

// workload models what a controller does with a spec over time.
type workload interface {
	// want sets a spec, as an update of the object does. Nothing else changes before the next
	// step.
	want(live *unstructured.Unstructured, generation int64) error
	// step lets the controller act once and reports whether anything changed.
	step() bool
	// complete reports whether the rollout ended well.
	complete() bool
	// giveUp lets the progress deadline pass.
	giveUp()
	// dropUnready deletes the pods that are not ready, as a person would.
	dropUnready()
	// status is the object's status field; nil while there is none.
	status() (map[string]any, error)
	// summary is the real state, whether reported or not.
	summary() Workload
}

// Workload is what runs of one Deployment, DaemonSet, StatefulSet, Job or Pod.
type Workload struct {
	// Images are those the spec wants, init containers last.
	Images []string
	// ReadyImages are those of the pods that are ready, sorted.
	ReadyImages []string
	// Digest is the live object's addonflow.io/digest annotation.
	Digest string
	// Generation is the live object's.
	Generation int64
	// Desired, Pods, Updated and Ready are counts of pods.
	Desired, Pods, Updated, Ready int
}

// Result is the result of applying one manifest.
type Result struct {
	Meta workv1.ManifestResourceMeta
	Err  error
}

// Apply makes the cluster's objects what the work says, in the agent's order, and deletes those
// the work no longer lists; as with the agent, none while the cluster does not know the kind of
// a manifest. It returns one result per manifest, in the work's order.
func (c *Cluster) Apply(work *workv1.ManifestWork) []Result {
	manifests := work.Spec.Workload.Manifests
	parsed := make([]*unstructured.Unstructured, len(manifests))
	results := make([]Result, len(manifests))
	order := make([]int, len(manifests))
	for i, manifest := range manifests {
		order[i] = i
		parsed[i] = &unstructured.Unstructured{}
		if err := parsed[i].UnmarshalJSON(manifest.Raw); err != nil {
			results[i] = Result{Meta: workv1.ManifestResourceMeta{Ordinal: shown(i)}, Err: err}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(parsed[a].GetKind()) - rank(parsed[b].GetKind()) })
	listed, known := map[identity]bool{}, true
	for _, i := range order {
		if results[i].Err == nil {
			results[i].Meta, results[i].Err = c.identify(i, parsed[i])
		}
		if results[i].Err != nil {
			known = false
			continue
		}
		listed[identityOf(results[i].Meta)] = true
		results[i].Err = c.applyOne(work, results[i].Meta, parsed[i])
	}
	if known {
		c.disown(work.Name, listed)
	}
	return results
}

// Delete deletes a work's objects, except those that another work owns and those that its
// deleteOption leaves.
func (c *Cluster) Delete(work string) { c.disown(work, nil) }

func (c *Cluster) disown(work string, keep map[identity]bool) {
	for id, o := range c.objects {
		owned, applied := o.works[work]
		if !applied || keep[id] {
			continue
		}
		delete(o.works, work)
		if owned && !slices.Contains(slices.Collect(maps.Values(o.works)), true) {
			delete(c.objects, id)
		}
	}
}

// owns reports whether an object goes with its work.
func owns(option *workv1.DeleteOption, m workv1.ManifestResourceMeta) bool {
	switch {
	case option == nil:
		return true
	case option.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan:
		return false
	case option.PropagationPolicy == workv1.DeletePropagationPolicyTypeForeground || option.SelectivelyOrphan == nil:
		return true
	}
	return !slices.Contains(option.SelectivelyOrphan.OrphaningRules,
		workv1.OrphaningRule{Group: m.Group, Resource: m.Resource, Namespace: m.Namespace, Name: m.Name})
}

// updateType is the work's strategy for one object, OCM's default otherwise.
func updateType(work *workv1.ManifestWork, m workv1.ManifestResourceMeta) workv1.UpdateStrategyType {
	option := configOf(m, work.Spec.ManifestConfigs)
	if option.UpdateStrategy == nil || option.UpdateStrategy.Type == "" {
		return workv1.UpdateStrategyTypeUpdate
	}
	return option.UpdateStrategy.Type
}

func (c *Cluster) applyOne(work *workv1.ManifestWork, m workv1.ManifestResourceMeta, required *unstructured.Unstructured) error {
	id := identityOf(m)
	strategy := updateType(work, m)
	existing := c.objects[id]
	if strategy == workv1.UpdateStrategyTypeReadOnly {
		return nil
	}
	switch {
	case existing == nil:
		created, err := c.create(id, required)
		if err != nil {
			return err
		}
		existing = created
	case strategy == workv1.UpdateStrategyTypeCreateOnly:
	default:
		if strategy == workv1.UpdateStrategyTypeUpdate {
			if err := existing.replace(required); err != nil {
				return err
			}
			required.SetLabels(merged(existing.live.GetLabels(), required.GetLabels()))
			required.SetAnnotations(merged(existing.live.GetAnnotations(), required.GetAnnotations()))
		}
		if err := existing.update(required); err != nil {
			return err
		}
	}
	existing.works[work.Name] = owns(work.Spec.DeleteOption, m)
	return nil
}

func (c *Cluster) create(id identity, required *unstructured.Unstructured) (*object, error) {
	if err := c.checkNamespace(id.Namespace); err != nil {
		return nil, err
	}
	o := &object{works: map[string]bool{}, workload: c.world.workloadFor(required), created: required.DeepCopy()}
	required.SetLabels(merged(nil, required.GetLabels()))
	required.SetAnnotations(merged(nil, required.GetAnnotations()))
	if err := o.update(required); err != nil {
		return nil, err
	}
	c.objects[id] = o
	return o, nil
}

func (c *Cluster) checkNamespace(name string) error {
	if name == "" || c.world.hasNamespace(name) {
		return nil
	}
	if _, found := c.objects[identity{Resource: "namespaces", Name: name}]; found {
		return nil
	}
	return fmt.Errorf("namespaces %q not found", name)
}

// merged lays b over a, as the agent does with labels and annotations: a key that is no longer
// in b stays, unless b has the key with a trailing dash.
func merged(a, b map[string]string) map[string]string {
	result := maps.Clone(a)
	if result == nil {
		result = map[string]string{}
	}
	for key, value := range b {
		if removed, found := strings.CutSuffix(key, "-"); found {
			delete(result, removed)
			continue
		}
		result[key] = value
	}
	if len(result) == 0 {
		return nil
	}
	return result
}

// errImmutable is wrapped by every refusal of a change to a fixed field.
var errImmutable = errors.New("field is immutable")

// update replaces the live object. The generation rises only if the spec changes.
func (o *object) update(required *unstructured.Unstructured) error {
	next := required.DeepCopy()
	unstructured.RemoveNestedField(next.Object, "status")
	setDefaults(next)
	generation := o.generation
	if o.live == nil {
		generation = 1
	} else {
		if err := immutable(o.live, next); err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(counted(o.live), counted(next)) {
			generation++
		}
	}
	if o.workload != nil && (o.live == nil || generation != o.generation) {
		if err := o.workload.want(next, generation); err != nil {
			return err
		}
	}
	if _, hasSpec := next.Object[fieldSpec]; !builtIn(next.GroupVersionKind()) || hasSpec && next.GroupVersionKind().Group != "" {
		next.SetGeneration(generation)
	}
	o.live, o.generation = next, generation
	return nil
}

// counted are the fields of an object whose changes its generation counts: the spec of a
// built-in kind, everything but metadata of a custom one.
func counted(live *unstructured.Unstructured) any {
	if builtIn(live.GroupVersionKind()) {
		return live.Object[fieldSpec]
	}
	fields := maps.Clone(live.Object)
	delete(fields, "metadata")
	return fields
}

// setDefaults sets the defaults of an API server that feedback rules read.
func setDefaults(object *unstructured.Unstructured) {
	switch object.GetKind() {
	case "Deployment", "StatefulSet":
		if spec, ok := object.Object[fieldSpec].(map[string]any); ok && spec["replicas"] == nil {
			spec["replicas"] = int64(1)
		}
	}
}

// immutable checks the few immutable fields that an add-on is likely to change.
func immutable(before, after *unstructured.Unstructured) error {
	var fields [][]string
	switch after.GetKind() {
	case "Deployment", "DaemonSet":
		fields = [][]string{{fieldSpec, "selector"}}
	case "StatefulSet":
		fields = [][]string{{fieldSpec, "selector"}, {fieldSpec, "serviceName"}, {fieldSpec, "volumeClaimTemplates"}}
	case "Job":
		fields = [][]string{{fieldSpec, "selector"}, {fieldSpec, "template"}, {fieldSpec, "completions"}}
	}
	for _, path := range fields {
		old, _, _ := unstructured.NestedFieldNoCopy(before.Object, path...)
		now, _, _ := unstructured.NestedFieldNoCopy(after.Object, path...)
		if !equality.Semantic.DeepEqual(old, now) {
			return fixed(after, path)
		}
	}
	return nil
}

// replace refuses to replace a Job, as API servers do: they put labels into its template, which
// the object that the agent sends does not have. An agent sends an object again that did not change
// only when it looks at everything again, every few minutes.
func (o *object) replace(required *unstructured.Unstructured) error {
	if manual, _, _ := unstructured.NestedBool(required.Object, fieldSpec, "manualSelector"); required.GetKind() != "Job" || manual {
		return nil
	}
	if equality.Semantic.DeepEqual(o.created.Object, required.Object) {
		return nil
	}
	return fixed(required, []string{fieldSpec, "template"})
}

// fixed is the refusal of a change to a fixed field.
func fixed(object *unstructured.Unstructured, path []string) error {
	now, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	value, err := json.Marshal(now)
	if err != nil {
		return err
	}
	gvk := object.GroupVersionKind()
	return fmt.Errorf("%s.%s %q is invalid: %s: Invalid value: %s: %w",
		gvk.Kind, gvk.Group, object.GetName(), strings.Join(path, "."), value, errImmutable)
}

// snapshot is the live object with its current status, for feedback.
func (o *object) snapshot() (*unstructured.Unstructured, error) {
	live := o.live.DeepCopy()
	if o.workload == nil {
		return live, nil
	}
	status, err := o.workload.status()
	if err != nil || status == nil {
		return live, err
	}
	live.Object["status"] = status
	return live, nil
}
