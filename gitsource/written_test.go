package gitsource

import "testing"

// TestWritten: the text of a scalar is the text in the file, as long as the object has the same
// value.
func TestWritten(t *testing.T) {
	const text = "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\nspec: {octal: 025, list: [1.0, '2'], same: &x 1e1, again: *x}\n"
	objects, problems := tree{"a.yaml": text}.local(t).Build(t.Context(), BuildOptions{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for field, want := range map[string]string{
		"spec.octal": "025", "spec.list[0]": "1.0", "spec.list[1]": "2", "spec.again": "1e1",
		"spec.list": "", "spec.list[2]": "", "spec.nothing": "", "metadata.name": "a",
	} {
		if got := objects[0].Written(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	objects[0].Object["spec"] = map[string]any{"octal": int64(22)}
	if got := objects[0].Written("spec.octal"); got != "" {
		t.Errorf("a value that was changed is %q", got)
	}
}
