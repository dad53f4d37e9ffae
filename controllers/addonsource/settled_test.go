package addonsource

import (
	"testing"

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

func TestSettled(t *testing.T) {
	const desired = `{apiVersion: v1, kind: X, metadata: {name: a, labels: {l: "1"}}, spec: {count: 1, list: [{k: a, v: 1}, {k: b}], set: [p, q]}}`
	cases := map[string]struct {
		reason string
		live   string
		fields string
		last   written
		want   bool
	}{
		"Equal":        {"nothing differs", desired, "", written{}, true},
		"Defaulted":    {"fields of others and defaults are theirs", `{apiVersion: v1, kind: X, metadata: {name: a, labels: {l: "1", m: "2"}}, spec: {count: 1, d: 9, list: [{k: a, v: 1, d: 1}, {k: b}], set: [p, q]}, status: {}}`, "", written{}, true},
		"Float":        {"1 and 1.0 are one number", `{apiVersion: v1, kind: X, metadata: {name: a, labels: {l: "1"}}, spec: {count: 1.0, list: [{k: a, v: 1}, {k: b}], set: [p, q]}}`, "", written{}, true},
		"Changed":      {"a value differs", `{apiVersion: v1, kind: X, metadata: {name: a, labels: {l: "2"}}, spec: {count: 1, list: [{k: a, v: 1}, {k: b}], set: [p, q]}}`, "", written{}, false},
		"Gone":         {"a field is gone", `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {count: 1, list: [{k: a, v: 1}, {k: b}], set: [p, q]}}`, "", written{}, false},
		"LongerList":   {"a list has more", `{apiVersion: v1, kind: X, metadata: {name: a, labels: {l: "1"}}, spec: {count: 1, list: [{k: a, v: 1}, {k: b}, {k: c}], set: [p, q]}}`, "", written{}, false},
		"Owned":        {"we own only what is declared", desired, `{"f:metadata":{"f:labels":{"f:l":{}}},"f:spec":{"f:count":{},"f:list":{"k:{\"k\":\"a\"}":{".":{},"f:k":{},"f:v":{}}},"f:set":{"v:\"p\"":{}}}}`, written{}, true},
		"OwnedField":   {"we own a field that left", desired, `{"f:spec":{"f:old":{}}}`, written{}, false},
		"OwnedElement": {"we own an element that left", desired, `{"f:spec":{"f:list":{"k:{\"k\":\"z\"}":{".":{}}}}}`, written{}, false},
		"OwnedValue":   {"we own a value that left", desired, `{"f:spec":{"f:set":{"v:\"z\"":{}}}}`, written{}, false},
		"Unreadable":   {"what cannot be read is not trusted", desired, `{"f:spec":[]}`, written{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			live := parse(t, c.live)
			if c.fields != "" {
				live = owning(live, v1alpha1.FieldManager, c.fields)
			}
			if got := settled(live, parse(t, desired), c.last); got != c.want {
				t.Errorf("%s: got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}

// TestSettledByMemory accepts what the API server made of our last write, as long as
// neither side changed.
func TestSettledByMemory(t *testing.T) {
	desired := parse(t, `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {cpu: 1000m}}`)
	live := parse(t, `{apiVersion: v1, kind: X, metadata: {name: a, resourceVersion: "5"}, spec: {cpu: "1"}}`)
	last := written{resourceVersion: "5", digest: digestOf(desired)}
	if !settled(live, desired, last) {
		t.Error("the answer to our last write counts as different")
	}
	if settled(nil, desired, last) {
		t.Error("an object that is gone counts as settled")
	}
	live.SetResourceVersion("6")
	if settled(live, desired, last) {
		t.Error("a write of somebody else is not seen")
	}
	live.SetResourceVersion("5")
	desired.SetLabels(map[string]string{"new": "1"})
	if settled(live, desired, last) {
		t.Error("a new wish is not seen")
	}
}
