package render

import "testing"

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
