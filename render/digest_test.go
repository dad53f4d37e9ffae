package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDigestIsInjective changes one leaf of a content anywhere.
func TestDigestIsInjective(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	before, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	leaves := countLeaves(parsedJSON(t, text))
	rapid.Check(t, func(r *rapid.T) {
		value := parsedJSON(t, text)
		at := rapid.IntRange(0, leaves-1).Draw(r, "leaf")
		changeLeaf(value, &at)
		changed, err := json.Marshal(value)
		if err != nil {
			r.Fatal(err)
		}
		var other Content
		if err := json.Unmarshal(changed, &other); err != nil {
			return // a number became a string, which is not valid content
		}
		if after, err := other.Digest(); err != nil || after == before {
			r.Fatalf("digest stays %s (%v) for\n%s", after, err, changed)
		}
	})
}

func parsedJSON(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func countLeaves(value any) int {
	leaves := 0
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			leaves += countLeaves(v)
		}
	case []any:
		for _, v := range value {
			leaves += countLeaves(v)
		}
	default:
		leaves = 1
	}
	return leaves
}

// changeLeaf changes the at-th leaf in the order of sorted keys.
func changeLeaf(value any, at *int) any {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			value[key] = changeLeaf(value[key], at)
		}
		return value
	case []any:
		for i := range value {
			value[i] = changeLeaf(value[i], at)
		}
		return value
	}
	*at--
	if *at != -1 {
		return value
	}
	switch value := value.(type) {
	case string:
		return value + "x"
	case float64:
		return value + 1
	case bool:
		return !value
	default:
		return "x"
	}
}

func TestRevisionName(t *testing.T) {
	digest := "v1:sha256:" + strings.Repeat("0123456789abcdef", 4)
	cases := map[string]string{
		"hello":                         "hello-0123456789",
		strings.Repeat("a", 63):         strings.Repeat("a", 63) + "-0123456789",
		strings.Repeat("a", 300):        strings.Repeat("a", 242) + "-0123456789",
		strings.Repeat("a", 241) + ".b": strings.Repeat("a", 241) + "-0123456789",
	}
	for addOn, want := range cases {
		if got := RevisionName(addOn, digest); got != want || len(got) > maxNameLength {
			t.Errorf("RevisionName(%q) = %q, want %q", addOn, got, want)
		}
	}
}
