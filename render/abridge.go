package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"k8s.io/utils/lru"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// abridgedMark begins an abridged manifest and makes it invalid JSON. The hub has no such manifest, and a work with
// one cannot be encoded, so it is never written.
const abridgedMark = '#'

// ownDigest replaces the digest of the work's annotation in the status of an abridged work. Workloads that echo their
// digest then have equal values on all clusters, so their works can share the values. No agent can report ownDigest,
// because it is not UTF-8: JSON decodes to other characters.
const ownDigest = "\xff#"

// remembered is how many manifests an Abridger stores: those that are equal on all clusters, and those of the works
// that agents report on now.
const remembered = 128

// Abridger shortens the works of a cache. It stores the latest manifests, because most are equal on all clusters, and
// most events of a work change only its status. It is safe for concurrent use.
type Abridger struct{ seen *lru.Cache }

// NewAbridger returns an Abridger without stored manifests.
func NewAbridger() *Abridger { return &Abridger{seen: lru.New(remembered)} }

// Abridge replaces the manifests of a work that AddonFlow wrote, in place. Only the parts stay that this package
// reads of existing works: the identity of each object, AddonFlow's marks, and a sum of the rest. Many such works
// differ between clusters only in a name in a manifest; abridged, they take much less memory. They can be compared,
// but not written. In the feedback, it abridges the digest of the work itself, and the message of a complete
// Deployment about its ReplicaSet.
//
// A work without AddonFlow's digest stays unchanged, because OCM's works are compared by meaning.
func (a *Abridger) Abridge(work *workv1.ManifestWork) {
	if work.Annotations[v1alpha1.DigestAnnotation] == "" {
		return
	}
	for i := range work.Spec.Workload.Manifests {
		m := &work.Spec.Workload.Manifests[i]
		sum := sha256.Sum256(m.Raw)
		known, _ := a.seen.Get(sum)
		text, ok := known.([]byte)
		if !ok {
			text = abridged(m.Raw)
			a.seen.Add(sum, text)
		}
		m.Raw = text
	}
	for i := range work.Status.ResourceStatus.Manifests {
		abridgeFeedback(work.Status.ResourceStatus.Manifests[i].StatusFeedbacks.Values, work.Annotations[v1alpha1.DigestAnnotation])
	}
}

func abridgeFeedback(reported values, digest string) {
	complete := reported.text(valueReason) == "NewReplicaSetAvailable"
	for i := range reported {
		text := reported[i].Value.String
		switch name := reported[i].Name; {
		case text == nil:
		case name == valueDigest && *text == digest:
			*text = ownDigest
		case complete && (name == valueMessage || name == valueSince):
			*text = "" // it names a ReplicaSet of one cluster, and is only read after a failure
		}
	}
}

// StatusOf returns a copy of the status of an existing work for a work with other content. The digest in its feedback
// is that of the existing work, abridged or not.
func StatusOf(existing *workv1.ManifestWork) workv1.ManifestWorkStatus {
	status := existing.Status.DeepCopy()
	for i := range status.ResourceStatus.Manifests {
		reported := values(status.ResourceStatus.Manifests[i].StatusFeedbacks.Values)
		if text := reported.find(valueDigest).String; text != nil {
			*text = reported.echo(existing)
		}
	}
	return *status
}

// abridged returns a manifest abridged. A text that is not an object stays unchanged.
func abridged(raw []byte) []byte {
	fields := decoded(raw)
	if fields == nil || isAbridged(raw) {
		return raw
	}
	metadata, _ := fields[metadataKey].(map[string]any)
	kept := map[string]any{}
	for _, key := range []string{"namespace", "name"} {
		if value, ok := metadata[key]; ok {
			kept[key] = value
		}
	}
	annotations, _ := metadata[annotationsKey].(map[string]any)
	marks := maps.Clone(annotations)
	maps.DeleteFunc(marks, func(key string, _ any) bool { return !ownAnnotation(key) })
	if len(marks) > 0 {
		kept[annotationsKey] = marks
	}
	head := map[string]any{apiVersionKey: fields[apiVersionKey], kindKey: fields[kindKey], metadataKey: kept}
	rest, err := json.Marshal(withoutMarks(fields))
	if err != nil {
		return raw
	}
	sum := sha256.Sum256(rest)
	head["sum"] = hex.EncodeToString(sum[:])
	text, err := json.Marshal(head)
	if err != nil {
		return raw
	}
	return append([]byte{abridgedMark}, text...)
}

func isAbridged(raw []byte) bool { return len(raw) > 0 && raw[0] == abridgedMark }

// inFormOf returns a desired manifest abridged if the existing one is, so that the two can be compared.
func inFormOf(existing, desired []byte) []byte {
	if isAbridged(existing) {
		return abridged(desired)
	}
	return desired
}

// objectIn returns the JSON of a manifest, abridged or not.
func objectIn(raw []byte) []byte {
	if isAbridged(raw) {
		return raw[1:]
	}
	return raw
}
