package strict

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestStrictFlaws(t *testing.T) {
	rollout := reflect.TypeFor[v1alpha1.AddOnRolloutSpec]()
	cases := map[string]struct {
		reason string
		value  map[string]any
		want   []string
	}{
		"Good": {
			reason: "every kind of field the spec has",
			value: map[string]any{
				"suspend": true, "revisionHistoryLimit": int64(3),
				"strategy": map[string]any{"type": "Progressive", "progressive": map[string]any{"maxConcurrency": "10%", "mandatoryDecisionGroups": []any{map[string]any{"groupName": "a"}}}},
				"stages":   []any{map[string]any{"name": "a", "placement": map[string]any{"namespace": "b", "name": "c"}, "minSuccessTime": "1h"}},
			},
		},
		"Null": {reason: "null is absent", value: map[string]any{"suspend": nil, "stages": nil}},
		"Many": {
			reason: "all flaws are found, with their index, in order",
			value: map[string]any{
				"suspend": "yes", "revisionHistoryLimit": 1.5,
				"stages":   []any{map[string]any{"Name": "a"}, map[string]any{"placement": "b"}, "c", nil},
				"strategy": []any{},
			},
			want: []string{
				"revisionHistoryLimit: must be an integer, not number",
				"stages[0].Name: unknown field",
				"stages[1].placement: must be an object, not string",
				"stages[2]: must be an object, not string",
				"stages[3]: must not be null",
				"strategy: must be an object, not array",
				"suspend: must be a boolean, not string",
			},
		},
		"Overflow": {
			reason: "a number beyond its field is not cut off",
			value:  map[string]any{"revisionHistoryLimit": int64(1) << 40},
			want:   []string{"revisionHistoryLimit: is too large for an int32"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range Flaws("", c.value, rollout) {
				got = append(got, string(f.Field)+": "+f.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestStrictBytes(t *testing.T) {
	configMap := reflect.TypeFor[corev1.ConfigMap]()
	for value, want := range map[any]string{"aGk=": "", "%%": "is not base64", int64(1): "must be a string"} {
		got := ""
		for _, f := range Flaws("", map[string]any{"binaryData": map[string]any{"a": value}}, configMap) {
			got = f.Message
		}
		if got != want {
			t.Errorf("binaryData %v: %q, want %q", value, got, want)
		}
	}
}

func FuzzParseNewerNames(f *testing.F) {
	f.Add("workloadRef,PodGroup")
	f.Add(" a , ,b")
	f.Fuzz(func(t *testing.T, value string) {
		names, err := ParseNewerNames(value)
		if again, other := ParseNewerNames(strings.Join(names, ",")); err == nil && (other != nil || !slices.Equal(names, again)) {
			t.Errorf("%q is read as %q, and that as %q, %v", value, names, again, other)
		}
	})
}
