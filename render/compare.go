package render

import (
	"bytes"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/strict"
)

// Difference is how a work differs from what it is to be.
type Difference int

const (
	// Same: there is nothing to write.
	Same Difference = iota
	// MarksMissing: OCM, or somebody else, wrote the same content; only
	// AddOnFlow's marks and feedback rules are not there. Taking an add-on over
	// writes no such work; they come with the next content. Where they are needed to
	// tell whether the content runs, in a cluster in flight, they are written.
	MarksMissing
	// MarksOutdated: the content is the same and can be verified; the marks and feedback
	// rules are those of another version of AddOnFlow. Nothing is written for them, or an
	// upgrade of the operator would rewrite every fleet at once.
	MarksOutdated
	// Different: the work must be written.
	Different
)

// Compare tells how existing, a work as read from the hub, differs from desired,
// the work of its name that Works returned. Foreign labels, annotations and owners
// do not count, nor do defaults that the hub fills in or fields it does not know.
//
// A work that carries our digest was written by us and is compared as text, if its
// marks are of this version. One that carries none is compared by meaning: OCM passes Deployments and DaemonSets
// through their Go types, which adds empty structs and rewrites quantities.
func Compare(desired, existing *workv1.ManifestWork) Difference {
	if existing == nil || !sameSettings(desired, existing) {
		return Different
	}
	if existing.Annotations[v1alpha1.DigestAnnotation] != "" {
		if existing.Annotations[MarksAnnotation] != desired.Annotations[MarksAnnotation] {
			return compareMarked(desired, existing)
		}
		if !holds(existing.Annotations, writtenFor(desired)) || !holds(existing.Labels, desired.Labels) ||
			!sameManifests(desired, existing, sameObject) || !sameOptions(desired, existing) {
			return Different
		}
		return Same
	}
	key := workv1.ManifestConfigSpecHashAnnotationKey
	if existing.Annotations[key] != desired.Annotations[key] || !sameManifests(desired, existing, sameMeaning) || !sameEffect(desired, existing) {
		return Different
	}
	return MarksMissing
}

// writtenFor returns the annotations that a work of ours is to have, but for the hashes of
// its configurations. They name what the work was rendered from when it was written. The
// digest says whether that makes a difference; if not, they stay until the next write.
func writtenFor(desired *workv1.ManifestWork) map[string]string {
	out := maps.Clone(desired.Annotations)
	delete(out, workv1.ManifestConfigSpecHashAnnotationKey)
	return out
}

// holds reports whether have has everything want has.
func holds(have, want map[string]string) bool {
	for key, value := range want {
		if found, ok := have[key]; !ok || found != value {
			return false
		}
	}
	return true
}

// sameSettings compares what marks have no part in.
func sameSettings(desired, existing *workv1.ManifestWork) bool {
	for _, owner := range desired.OwnerReferences {
		if !slices.ContainsFunc(existing.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			return false
		}
	}
	return equality.Semantic.DeepEqual(foreground(desired.Spec.DeleteOption), foreground(existing.Spec.DeleteOption)) &&
		equality.Semantic.DeepEqual(desired.Spec.Executor, existing.Spec.Executor)
}

// foreground makes the default delete option explicit.
func foreground(o *workv1.DeleteOption) workv1.DeleteOption {
	if o == nil {
		return workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	}
	out := *o
	if out.PropagationPolicy == "" {
		out.PropagationPolicy = workv1.DeletePropagationPolicyTypeForeground
	}
	return out
}

func sameManifests(desired, existing *workv1.ManifestWork, same func(desired, existing []byte) bool) bool {
	return slices.EqualFunc(desired.Spec.Workload.Manifests, existing.Spec.Workload.Manifests,
		func(a, b workv1.Manifest) bool { return bytes.Equal(a.Raw, b.Raw) || same(a.Raw, b.Raw) })
}

// sameObject compares JSON, whatever its spacing, without timestamps that are null.
func sameObject(desired, existing []byte) bool {
	a, b := decoded(desired), decoded(existing)
	return a != nil && b != nil && equality.Semantic.DeepEqual(a, b)
}

// sameMeaning compares without our marks, and Deployments and DaemonSets the way
// OCM writes them.
func sameMeaning(desired, existing []byte) bool {
	a, b := unmarked(desired), unmarked(existing)
	if a == nil || b == nil {
		return false
	}
	if equality.Semantic.DeepEqual(a, b) {
		return true
	}
	id := IdentityOf(a)
	if id != IdentityOf(b) || id.groupKind().Group != appsGroup {
		return false
	}
	switch id.Kind {
	case deploymentKind:
		return sameTyped(a, b, &appsv1.Deployment{}, &appsv1.Deployment{})
	case daemonSetKind:
		return sameTyped(a, b, &appsv1.DaemonSet{}, &appsv1.DaemonSet{})
	}
	return false
}

func sameTyped(a, b map[string]any, typedA, typedB any) bool {
	return strict.Convert(a, typedA) == nil && strict.Convert(b, typedB) == nil && equality.Semantic.DeepEqual(typedA, typedB)
}

// decoded is an object without timestamps that are null; nil where it is none.
func decoded(raw []byte) map[string]any {
	var fields map[string]any
	if err := utiljson.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil
	}
	for _, path := range [][]string{{metadataKey}, {specKey, templateKey, metadataKey}} {
		at := fields
		for _, name := range path {
			at, _ = at[name].(map[string]any)
		}
		if value, ok := at["creationTimestamp"]; ok && value == nil {
			delete(at, "creationTimestamp")
		}
	}
	return fields
}

// unmarked is decoded without our marks.
func unmarked(raw []byte) map[string]any {
	fields := decoded(raw)
	metadata, _ := fields[metadataKey].(map[string]any)
	annotations, _ := metadata[annotationsKey].(map[string]any)
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return ownAnnotation(key) })
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, annotationsKey)
	}
	return fields
}

// sameOptions compares manifestConfigs entry by entry.
func sameOptions(desired, existing *workv1.ManifestWork) bool {
	return slices.EqualFunc(desired.Spec.ManifestConfigs, existing.Spec.ManifestConfigs,
		func(a, b workv1.ManifestConfigOption) bool {
			return equality.Semantic.DeepEqual(polled(a), polled(b))
		})
}

// polled makes the default scrape type explicit, which older hubs do not know.
func polled(o workv1.ManifestConfigOption) workv1.ManifestConfigOption {
	if o.FeedbackScrapeType == "" {
		o.FeedbackScrapeType = workv1.FeedbackPollType
	}
	return o
}

// sameEffect compares what manifestConfigs make the agent do to each object;
// which feedback it returns is ours to add later.
func sameEffect(desired, existing *workv1.ManifestWork) bool {
	for _, id := range identitiesOf(desired) {
		a := effectOn(id.resource(), desired.Spec.ManifestConfigs)
		b := effectOn(id.resource(), existing.Spec.ManifestConfigs)
		if !equality.Semantic.DeepEqual(updated(a.UpdateStrategy), updated(b.UpdateStrategy)) ||
			!equality.Semantic.DeepEqual(a.ConditionRules, b.ConditionRules) {
			return false
		}
	}
	return true
}

func effectOn(id workv1.ResourceIdentifier, options []workv1.ManifestConfigOption) workv1.ManifestConfigOption {
	var matching []workv1.ManifestConfigOption
	for _, o := range options {
		if matchesResource(o.ResourceIdentifier, id) {
			matching = append(matching, o)
		}
	}
	return firstOf(matching)
}

// updated makes the default update strategy explicit.
func updated(s *workv1.UpdateStrategy) workv1.UpdateStrategy {
	if s == nil {
		return workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}
	}
	return *s
}
