package addonsource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// owning returns the object with fields recorded as applied by a manager.
func owning(u *unstructured.Unstructured, manager, fields string) *unstructured.Unstructured {
	u.SetManagedFields(append(u.GetManagedFields(), metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}))
	return u
}

// TestUnchanged_OnlyAsLongAsNeitherSideChanged: no request is needed for an object that this
// process applied or compared, as long as neither side changes.
func TestUnchanged_OnlyAsLongAsNeitherSideChanged(t *testing.T) {
	const desired = `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {cpu: 1000m}}`
	stored := func(t *testing.T) *unstructured.Unstructured {
		t.Helper()
		live := parse(t, `{apiVersion: v1, kind: X, metadata: {name: a, resourceVersion: "5"}, spec: {cpu: "1", list: [{k: a}]}, status: {phase: old}}`)
		return owning(live, v1alpha1.FieldManager, `{"f:spec":{"f:cpu":{}}}`)
	}
	cases := map[string]struct {
		reason  string
		live    func(*unstructured.Unstructured) *unstructured.Unstructured
		desired string
		want    bool
	}{
		"Same":     {"nothing changed", func(u *unstructured.Unstructured) *unstructured.Unstructured { return u }, desired, true},
		"Gone":     {"the object is gone", func(*unstructured.Unstructured) *unstructured.Unstructured { return nil }, desired, false},
		"Declared": {"the commit declares something else", func(u *unstructured.Unstructured) *unstructured.Unstructured { return u }, `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {}}`, false},
		"Status": {"a status is nothing that a commit declares", func(u *unstructured.Unstructured) *unstructured.Unstructured {
			u.Object["status"] = "new"
			u.SetResourceVersion("6")
			return u
		}, desired, true},
		"Annotation": {"an annotation of another writer is its own", func(u *unstructured.Unstructured) *unstructured.Unstructured {
			u.SetAnnotations(map[string]string{"a": "b"})
			return u
		}, desired, true},
		"InList": {"an element of a list changed", func(u *unstructured.Unstructured) *unstructured.Unstructured {
			u.Object["spec"] = map[string]any{"cpu": "1", "list": []any{map[string]any{"k": "a", "v": "b"}}}
			return u
		}, desired, false},
		"TakenFromUs": {"a field is no longer AddonFlow's", func(u *unstructured.Unstructured) *unstructured.Unstructured { u.SetManagedFields(nil); return u }, desired, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			memory := &writes{}
			key := objectKey{Kind: "X", Name: "a"}
			memory.record(key, parse(t, desired), stored(t), time.Now())
			if got := unchanged(c.live(stored(t)), parse(t, c.desired), memory.of(key)); got != c.want {
				t.Errorf("%s: got %t, want %t", c.reason, got, c.want)
			}
			if unchanged(c.live(stored(t)), parse(t, c.desired), written{}) {
				t.Error("settled without a memory")
			}
		})
	}
}
