package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// writtenWork is a work that AddonFlow wrote, whose Deployment has arguments of a size.
func writtenWork(t *testing.T, size int) *workv1.ManifestWork {
	t.Helper()
	works, _ := worksFor(t, contentOf(t, helloTemplate, helloAgent))
	m := &works[0].Spec.Workload.Manifests[0]
	edited := strings.Replace(string(m.Raw), "--v=4", strings.Repeat("x", size), 1)
	if edited == string(m.Raw) {
		t.Fatalf("no argument to replace in %s", m.Raw)
	}
	m.Raw = []byte(edited)
	return works[0]
}

func TestAbridgedWorkHasIdentitiesAndMarksAndNoContent(t *testing.T) {
	small, large := writtenWork(t, 1), writtenWork(t, 10_000)
	was := identitiesOf(large)
	marks := markedIn(large)
	for _, w := range []*workv1.ManifestWork{small, large} {
		NewAbridger().Abridge(w)
	}
	if got := identitiesOf(large); fmt.Sprint(got) != fmt.Sprint(was) {
		t.Errorf("got %v, want %v", got, was)
	}
	if got := markedIn(large); got != marks || marks == 0 {
		t.Errorf("%d objects carry the digest, want %d", got, marks)
	}
	for i := range large.Spec.Workload.Manifests {
		if a, b := small.Spec.Workload.Manifests[i].Raw, large.Spec.Workload.Manifests[i].Raw; len(a) != len(b) {
			t.Errorf("the size depends on that of the content: %d and %d bytes", len(a), len(b))
		}
	}
	once := large.DeepCopy()
	NewAbridger().Abridge(large)
	for i := range large.Spec.Workload.Manifests {
		if !bytes.Equal(large.Spec.Workload.Manifests[i].Raw, once.Spec.Workload.Manifests[i].Raw) {
			t.Errorf("abridged twice: %s", large.Spec.Workload.Manifests[i].Raw)
		}
	}
}

// TestAbridgedWorkCannotBeWritten: a write of a cached work would replace the objects on the cluster.
func TestAbridgedWorkCannotBeWritten(t *testing.T) {
	w := writtenWork(t, 1)
	NewAbridger().Abridge(w)
	if text, err := json.Marshal(w); err == nil {
		t.Errorf("encoded: %s", text)
	}
}

func TestWorkOfAnotherWriterIsNotAbridged(t *testing.T) {
	w := writtenWork(t, 1)
	delete(w.Annotations, v1alpha1.DigestAnnotation)
	was := w.DeepCopy()
	NewAbridger().Abridge(w)
	if !bytes.Equal(w.Spec.Workload.Manifests[0].Raw, was.Spec.Workload.Manifests[0].Raw) {
		t.Errorf("got %s", w.Spec.Workload.Manifests[0].Raw)
	}
}
