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

// marksShown is how much of the sum stands on a work: what is told apart are the few
// versions of one operator.
const marksShown = 10

// marksOf sums up what AddOnFlow adds to the objects of a rendering: which of them carry
// the digest, and what is asked of them. It is no part of the digest: content is what the
// user declared. There is no number that somebody would have to raise.
func marksOf(objects []object) (string, error) {
	sum := sha256.New()
	for i := range objects {
		o := &objects[i]
		if o.workload == nil {
			continue
		}
		text, err := json.Marshal([]any{len(o.delivered.holes) - len(o.plain.holes), o.workload.ask.FeedbackRules})
		if err != nil {
			return "", fmt.Errorf("feedback rules cannot be encoded: %w", err)
		}
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:marksShown], nil
}

// compareMarked compares with a work of ours that carries other marks: another version
// of the operator wrote it. Its content alone counts; the marks come with the next
// content. Every version names its marks, so that one without a name was tampered with.
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
	a, b := unmarked(desired), unmarked(existing)
	return a != nil && b != nil && equality.Semantic.DeepEqual(a, b)
}

// verifiable reports whether the work as it is asks of every object that is to echo the
// digest, and lets it: without that a cluster would count as verified for being available.
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

// markedIn counts the objects of a work that carry its digest. Each is to be asked for
// it: were it not, the work would count as verified for being available.
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

// ownAnnotation reports whether an annotation is one of AddOnFlow's, of whatever version.
func ownAnnotation(key string) bool { return strings.HasPrefix(key, "addonflow.io/") }
