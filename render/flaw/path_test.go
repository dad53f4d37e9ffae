package flaw

import "testing"

func TestFieldPath(t *testing.T) {
	p := Path("").Child("metadata").Child("labels").Child("example.com/team")
	if p != "metadata.labels[example.com/team]" {
		t.Errorf("a key with a dot is %s", p)
	}
	if p := Path("spec").Child("list").Index(3).Child("x"); p != "spec.list[3].x" || p.Last() != "x" || p.Position() != -1 {
		t.Errorf("a nested field is %s, last %s, position %d", p, p.Last(), p.Position())
	}
	if got := Path("spec.list[12]").Position(); got != 12 {
		t.Errorf("position is %d", got)
	}
	for child, want := range map[Path]bool{"spec.a": true, "spec.a.b": true, "spec.a[0]": true, "spec.ab": false, "spec": false} {
		if got := child.Under("spec.a"); got != want {
			t.Errorf("%s under spec.a: %v, want %v", child, got, want)
		}
	}
}
