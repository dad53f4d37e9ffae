package render

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

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
			for _, f := range strictFlaws("", c.value, rollout) {
				got = append(got, string(f.field)+": "+f.message)
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
		for _, f := range strictFlaws("", map[string]any{"binaryData": map[string]any{"a": value}}, configMap) {
			got = f.message
		}
		if got != want {
			t.Errorf("binaryData %v: %q, want %q", value, got, want)
		}
	}
}

func TestClosest(t *testing.T) {
	known := []string{"customizedVariables", "nodePlacement", "proxyConfig", "registries", "name"}
	cases := map[string]string{
		"customisedVariables": "customizedVariables",
		"CustomizedVariables": "customizedVariables",
		"nodePlacment":        "nodePlacement",
		"NAME":                "name",
		"nam":                 "name",
		"tolerations":         "",
		"x":                   "",
		"":                    "",
	}
	for word, want := range cases {
		if got := closest(word, known); got != want {
			t.Errorf("closest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestFieldPath(t *testing.T) {
	p := fieldPath("").child("metadata").child("labels").child("example.com/team")
	if p != "metadata.labels[example.com/team]" {
		t.Errorf("a key with a dot is %s", p)
	}
	if p := fieldPath("spec").child("list").index(3).child("x"); p != "spec.list[3].x" || p.last() != "x" || p.position() != -1 {
		t.Errorf("a nested field is %s, last %s, position %d", p, p.last(), p.position())
	}
	if got := fieldPath("spec.list[12]").position(); got != 12 {
		t.Errorf("position is %d", got)
	}
	for child, want := range map[fieldPath]bool{"spec.a": true, "spec.a.b": true, "spec.a[0]": true, "spec.ab": false, "spec": false} {
		if got := child.under("spec.a"); got != want {
			t.Errorf("%s under spec.a: %v, want %v", child, got, want)
		}
	}
}

// TestPaceSurvivesDecoding: whatever paceFlaws accepts can be decoded, so that a
// bad pace is always said in words and never by a decoder.
func TestPaceSurvivesDecoding(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.SampledFrom([]string{"10%", "x", "", "5m", "1h30m", "-3s", "5", "0"}), func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](map[string]any{}), rapid.Just[any]([]any{}), rapid.Just[any](nil),
	)
	rapid.Check(t, func(t *rapid.T) {
		progressive := map[string]any{}
		for _, name := range []string{maxConcurrencyField, maxFailuresField, minSuccessTimeField, progressDeadlineField} {
			progressive[name] = value.Draw(t, name)
		}
		strategy := map[string]any{"progressive": progressive}
		dropNulls(strategy)
		if len(paceFlaws("strategy", strategy)) > 0 {
			return
		}
		var spec v1alpha1.RolloutStrategy
		if err := convert(strategy, &spec); err != nil {
			t.Fatalf("no flaw is found in %v, but: %v", strategy, err)
		}
	})
}

func TestShown(t *testing.T) {
	if got := shown(strings.Repeat("é", 30)); got != strings.Repeat("é", 20)+"..." {
		t.Errorf("shown cuts to %q", got)
	}
}
