package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// marksShown is how many characters of the sum are written on a work. They only have to distinguish the few versions
// of one operator.
const marksShown = 10

// marksOf returns a sum of AddonFlow's additions to the objects of a rendering: which objects have the digest, and
// their feedback rules. The sum is not part of the digest, because content is what the user declared. It replaces a
// version number that a developer would have to increase.
func marksOf(objects []object) (string, error) {
	sum := sha256.New()
	for i := range objects {
		o := &objects[i]
		if o.workload == nil {
			continue
		}
		marks := 0
		if o.marked {
			marks = 1
		}
		text, err := json.Marshal([]any{marks, o.workload.ask.FeedbackRules})
		if err != nil {
			return "", fmt.Errorf("feedback rules cannot be encoded: %w", err)
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:marksShown], nil
}

// compareMarked compares a rendering with a work of AddonFlow that has other marks, written by another version of the
// operator. Only the content is compared; new marks are written with the next content. Every version writes the sum
// of its marks, so a work without the sum was changed by another client.
func compareMarked(desired, existing *workv1.ManifestWork) Difference {
	if existing.Annotations[MarksAnnotation] == "" {
		return Different
	}
	for _, key := range []string{v1alpha1.DigestAnnotation, v1alpha1.RevisionAnnotation, v1alpha1.SourceAnnotation, PartsAnnotation} {
		if existing.Annotations[key] != desired.Annotations[key] {
			return Different
		}
	}
	if existing.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByValue ||
		!sameManifests(desired, existing, sameContent) || !sameEffect(desired, existing) {
		return Different
	}
	if !verifiable(desired, existing) {
		return MarksMissing
	}
	return MarksOutdated
}

// sameContent compares JSON without the marks of any version.
func sameContent(desired, existing []byte) bool {
	a, b := unmarked(inFormOf(existing, desired)), unmarked(existing)
	return a != nil && b != nil && equality.Semantic.DeepEqual(a, b)
}

// verifiable reports whether the existing work has the digest in every object that must echo it, and a feedback rule
// for it. Otherwise a cluster would count as verified as soon as it is available.
func verifiable(desired, existing *workv1.ManifestWork) bool {
	for i := range desired.Spec.ManifestConfigs {
		wanted, ok := askedOf(&desired.Spec.ManifestConfigs[i])
		if !ok || !wanted.asks(valueDigest) {
			continue
		}
		if !slices.ContainsFunc(existing.Spec.ManifestConfigs, func(o workv1.ManifestConfigOption) bool {
			a, ok := askedOf(&o)
			return ok && a.id == wanted.id && a.asks(valueDigest)
		}) {
			return false
		}
	}
	digest := []byte(desired.Annotations[v1alpha1.DigestAnnotation])
	for i := range desired.Spec.Workload.Manifests {
		if bytes.Contains(desired.Spec.Workload.Manifests[i].Raw, digest) && !bytes.Contains(existing.Spec.Workload.Manifests[i].Raw, digest) {
			return false
		}
	}
	return true
}

// markedIn counts the objects of a work that have its digest. Each needs a feedback rule for it; otherwise the work
// would count as verified as soon as it is available.
func markedIn(work *workv1.ManifestWork) int {
	mark := []byte(`"` + v1alpha1.DigestAnnotation + `":"` + work.Annotations[v1alpha1.DigestAnnotation] + `"`)
	n := 0
	for i := range work.Spec.Workload.Manifests {
		if bytes.Contains(work.Spec.Workload.Manifests[i].Raw, mark) {
			n++
		}
	}
	return n
}

// Marked reports whether an object of a work carries the digest in the annotation of the work.
func Marked(work *workv1.ManifestWork) bool { return markedIn(work) > 0 }

// ownAnnotation reports whether an annotation is one of AddonFlow's, of any version.
func ownAnnotation(key string) bool { return strings.HasPrefix(key, "addonflow.io/") }
