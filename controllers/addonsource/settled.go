package addonsource

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// settled tells whether applying desired would change nothing, so that at rest
// nothing is written, not even a patch without effect: the object is as our last
// write left it, or it has every field of desired and we own no other.
//
// A server-side dry-run would answer the same, but is a write request; and what the
// API server or a webhook made of our last write is known from its answer.
func settled(live, desired *unstructured.Unstructured, last written) bool {
	if live == nil {
		return false
	}
	if last.digest != "" && last.resourceVersion == live.GetResourceVersion() && last.digest == digestOf(desired) {
		return true
	}
	return contains(live.Object, desired.Object) && ownsNothingElse(live, desired)
}

// digestOf identifies what is applied.
func digestOf(u *unstructured.Unstructured) string {
	encoded, err := json.Marshal(u.Object)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:16])
}

// contains tells whether live has everything that desired says: every field of a
// map, every element of a list in its place, equal scalars.
func contains(live, desired any) bool {
	switch want := desired.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for field, value := range want {
			if !contains(have[field], value) {
				return false
			}
		}
		return true
	case []any:
		have, ok := live.([]any)
		return ok && slices.EqualFunc(have, want, contains)
	default:
		return sameScalar(live, desired)
	}
}

// sameScalar compares numbers by value: YAML and JSON do not agree on integers.
func sameScalar(a, b any) bool {
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return x == y
	}
	return a == b
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	default:
		return 0, false
	}
}

// ownsNothingElse tells whether every field that live records as applied by us is
// still in desired: applying removes the ones that are not.
func ownsNothingElse(live, desired *unstructured.Unstructured) bool {
	for _, entry := range ownEntries(live) {
		owned := &fieldpath.Set{}
		if entry.FieldsV1 == nil || owned.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
			return false
		}
		if !hasPaths(desired, owned) {
			return false
		}
	}
	return true
}

// ownEntries are what an API server recorded as applied by us; none of no object.
func ownEntries(live *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	if live == nil {
		return nil
	}
	return slices.DeleteFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != v1alpha1.FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != ""
	})
}

// hasPaths tells whether an object has every field of a set. The set's iterator
// (All) panics when it is left early, so it is walked to the end.
func hasPaths(u *unstructured.Unstructured, set *fieldpath.Set) bool {
	all := true
	set.Iterate(func(path fieldpath.Path) {
		all = all && hasPath(u.Object, path)
	})
	return all
}

// hasPath tells whether an object has the field at a path of managed fields.
func hasPath(value any, path fieldpath.Path) bool {
	for _, element := range path {
		next, ok := descend(value, element)
		if !ok {
			return false
		}
		value = next
	}
	return true
}

// descend takes one step of a path.
func descend(value any, element fieldpath.PathElement) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		if element.FieldName == nil {
			return nil, false
		}
		next, ok := v[*element.FieldName]
		return next, ok
	case []any:
		return elementOf(v, element)
	default:
		return nil, false
	}
}

// elementOf returns the element of a list that a path means: by its keys, its value
// or its index.
func elementOf(list []any, element fieldpath.PathElement) (any, bool) {
	if element.Index != nil {
		if i := *element.Index; i >= 0 && i < len(list) {
			return list[i], true
		}
		return nil, false
	}
	for _, candidate := range list {
		if element.Value != nil && sameScalar(candidate, (*element.Value).Unstructured()) {
			return candidate, true
		}
		if element.Key != nil && hasKeys(candidate, element) {
			return candidate, true
		}
	}
	return nil, false
}

// hasKeys tells whether a list element has the keys of an associative list.
func hasKeys(candidate any, element fieldpath.PathElement) bool {
	fields, ok := candidate.(map[string]any)
	if !ok {
		return false
	}
	for _, key := range *element.Key {
		if !sameScalar(fields[key.Name], key.Value.Unstructured()) {
			return false
		}
	}
	return true
}
