package addonsource

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// history returns revisions r0 (the oldest), r1, ...
func history(n int) []metav1.PartialObjectMetadata {
	out := make([]metav1.PartialObjectMetadata, n)
	for i := range out {
		out[i].Name = fmt.Sprintf("r%d", i)
		out[i].CreationTimestamp = metav1.Unix(int64(i), 0)
	}
	return out
}

func TestRevisionsBeyondTheHistoryLimit_AreDeletedOldestFirst(t *testing.T) {
	cases := map[string]struct {
		reason string
		used   map[string]bool
		limit  int
		want   []string
	}{
		"Within":  {"a history within its limit stays", nil, 5, nil},
		"Oldest":  {"the oldest go", nil, 3, []string{"r1", "r0"}},
		"Used":    {"what is used does not count", map[string]bool{"r0": true, "r4": true}, 2, []string{"r1"}},
		"Nothing": {"without history only what is used stays", map[string]bool{"r4": true}, 0, []string{"r3", "r2", "r1", "r0"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range superfluous(history(5), c.used, c.limit) {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestUsedByRollout(t *testing.T) {
	r := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	r.Spec.Target = &v1alpha1.Target{Revision: "target"}
	r.Status.Stable = &v1alpha1.Target{Revision: "stable"}
	r.Status.Ledger.Records = []v1alpha1.RecordGroup{{RecordKey: v1alpha1.RecordKey{Revision: oldDigest}}, {RecordKey: v1alpha1.RecordKey{Revision: newDigest}}}
	r.Spec.Blocked = []v1alpha1.BlockedContent{{Commit: "0123abc"}}
	revisions := history(4)
	for i := range revisions[:3] {
		at := time.Unix(int64(i), 0).UTC().Format(time.RFC3339)
		revisions[i].Annotations = map[string]string{v1alpha1.SucceededAtAnnotation: at}
	}
	revisions[2].Annotations[v1alpha1.CommitsAnnotation] = "main@sha1:feedabc main@sha1:0123abcdef"
	want := map[string]bool{
		"target": true, "stable": true, "r1": true, "r2": true,
		render.RevisionName("hello", oldDigest): true, render.RevisionName("hello", newDigest): true,
	}
	if diff := cmp.Diff(want, usedByRollout(r, revisions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
