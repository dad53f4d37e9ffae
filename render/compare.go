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

// Difference is how an existing work differs from the desired one.
type Difference int

const (
	// Same: there is nothing to write.
	Same Difference = iota
	// MarksMissing: the content is the same, but OCM or another writer wrote the work, without AddonFlow's marks and
	// feedback rules. When an add-on is taken over, such a work is not written; the marks are written with the next
	// content. If the cluster is in flight, they are written earlier, because the operator cannot verify the content
	// without them.
	MarksMissing
	// MarksOutdated: the content is the same and can be verified, but the marks and feedback rules are of another
	// version of AddonFlow. The work is not written, because otherwise an upgrade of the operator would rewrite every
	// fleet at once.
	MarksOutdated
	// Different: the work must be written.
	Different
)

// Compare reports how existing, a work as read from the hub, differs from desired, the work of its name that Works
// returned. It ignores labels, annotations and owners of others, defaults that the hub fills in, and fields that the
// hub does not know.
//
// A work with AddonFlow's digest was written by AddonFlow. If its marks are of this version, it is compared as text.
// A work without the digest is compared by meaning, because OCM passes Deployments and DaemonSets through their Go
// types, which adds empty structs and rewrites quantities.
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

// SameSpec reports whether existing, a work as read from the hub, has the spec of desired. Labels and annotations are
// ignored. Without an existing work it is false.
func SameSpec(desired, existing *workv1.ManifestWork) bool {
	return existing != nil && sameSettings(desired, existing) && sameManifests(desired, existing, sameObject) && sameOptions(desired, existing)
}

// writtenFor returns the annotations that a work must have, except the hashes of its configurations. These hashes are
// of the configurations at the time of the write. If a changed hash changes no digest, the old hash stays until the
// next write.
func writtenFor(desired *workv1.ManifestWork) map[string]string {
	out := maps.Clone(desired.Annotations)
	delete(out, workv1.ManifestConfigSpecHashAnnotationKey)
	return out
}

// holds reports whether have contains every entry of want.
func holds(have, want map[string]string) bool {
	for key, value := range want {
		if found, ok := have[key]; !ok || found != value {
			return false
		}
	}
	return true
}

// sameSettings compares everything except the marks.
func sameSettings(desired, existing *workv1.ManifestWork) bool {
	for _, owner := range desired.OwnerReferences {
		if !slices.ContainsFunc(existing.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			return false
		}
	}
	return equality.Semantic.DeepEqual(foreground(desired.Spec.DeleteOption), foreground(existing.Spec.DeleteOption)) &&
		equality.Semantic.DeepEqual(desired.Spec.Executor, existing.Spec.Executor)
}

// foreground returns the delete option, with the default made explicit.
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

// sameObject compares JSON, ignoring spacing and null timestamps.
func sameObject(desired, existing []byte) bool {
	a, b := decoded(inFormOf(existing, desired)), decoded(existing)
	return a != nil && b != nil && equality.Semantic.DeepEqual(a, b)
}

// sameMeaning compares without AddonFlow's marks, and compares Deployments and DaemonSets as
// OCM writes them.
func sameMeaning(desired, existing []byte) bool {
	a, b := unmarked(inFormOf(existing, desired)), unmarked(existing)
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

// decoded returns an object without null timestamps; nil if it cannot be decoded.
func decoded(raw []byte) map[string]any {
	var fields map[string]any
	if err := utiljson.Unmarshal(objectIn(raw), &fields); err != nil || fields == nil {
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

// unmarked is decoded without AddonFlow's marks.
func unmarked(raw []byte) map[string]any { return withoutMarks(decoded(raw)) }

// withoutMarks removes AddonFlow's marks from an object.
func withoutMarks(fields map[string]any) map[string]any {
	metadata, _ := fields[metadataKey].(map[string]any)
	annotations, _ := metadata[annotationsKey].(map[string]any)
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return ownAnnotation(key) })
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, annotationsKey)
	}
	return fields
}

func sameOptions(desired, existing *workv1.ManifestWork) bool {
	return slices.EqualFunc(desired.Spec.ManifestConfigs, existing.Spec.ManifestConfigs,
		func(a, b workv1.ManifestConfigOption) bool {
			return equality.Semantic.DeepEqual(polled(a), polled(b))
		})
}

// polled makes the default scrape type explicit; older hubs do not have the field.
func polled(o workv1.ManifestConfigOption) workv1.ManifestConfigOption {
	if o.FeedbackScrapeType == "" {
		o.FeedbackScrapeType = workv1.FeedbackPollType
	}
	return o
}

// sameEffect compares what manifestConfigs make the agent do to each object. It ignores
// feedback rules, which AddonFlow adds with the next content.
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

// updated makes the default update strategy explicit.
func updated(s *workv1.UpdateStrategy) workv1.UpdateStrategy {
	if s == nil {
		return workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}
	}
	return *s
}
