package agents

import "testing"

// TestEmptyLabelWakesNoAddOn: a request without a name would fail and be repeated for ever.
func TestEmptyLabelWakesNoAddOn(t *testing.T) {
	if got := append(ofName(""), ofAddOn(Key{Cluster: "c1"})...); len(got) != 0 {
		t.Errorf("woke %v", got)
	}
	if got := append(ofName("hello"), ofAddOn(Key{Cluster: "c1", AddOn: "hello"})...); len(got) != 2 || got[0].String() != "/hello" || got[1].String() != "c1/hello" {
		t.Errorf("woke %v", got)
	}
}
