package render

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// A CustomResourceDefinition is found in every work, also in works of other writers, and compared by meaning.
func TestDisplaces_ReadsTheWorks(t *testing.T) {
	definition := func(name, group string) string {
		return fmt.Sprintf(`{"spec": {"group": %q, "scope": "Cluster"}, "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": %q}}`, group, name)
	}
	work := func(name string, manifests ...string) *workv1.ManifestWork {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}}
		for _, m := range manifests {
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(m)}})
		}
		return w
	}
	leaving := work("addon-hello-deploy-1", definition("b", "example.com"))
	leaving.DeletionTimestamp = &metav1.Time{}
	leaving.DeletionTimestamp.Time = metav1.Now().Time
	r := newRenderer(t, contentOf(t, `{"addonName": "hello", "agentSpec": {"workload": {"manifests": [`+definition("a", "example.com")+`]}}}`, ""))
	for name, c := range map[string]struct {
		works         []*workv1.ManifestWork
		gone, changed []string
	}{
		"none":             {},
		"no definition":    {works: []*workv1.ManifestWork{work("x", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "CustomResourceDefinition"}}`)}},
		"equal":            {works: []*workv1.ManifestWork{work("x", definition("a", "example.com"))}},
		"removed":          {works: []*workv1.ManifestWork{work("x", definition("a", "example.com")), work("y", definition("b", "example.com"))}, gone: []string{"b"}},
		"changed":          {works: []*workv1.ManifestWork{work("x", definition("a", "example.org"))}, changed: []string{"a"}},
		"moves, in both":   {works: []*workv1.ManifestWork{work("x", definition("a", "example.com")), work("y", definition("a", "example.org"))}, changed: []string{"a"}},
		"removed and more": {works: []*workv1.ManifestWork{work("x", definition("c", "x"), definition("a", "x")), work("y", definition("b", "x"), definition("c", "x"))}, gone: []string{"b", "c"}, changed: []string{"a"}},
		"work is leaving":  {works: []*workv1.ManifestWork{leaving}},
	} {
		gone, changed, err := r.Displaces(Cluster{Name: "c1"}, c.works)
		if err != nil || !slices.Equal(gone, c.gone) || !slices.Equal(changed, c.changed) {
			t.Errorf("%s: gone %v, changed %v, %v", name, gone, changed, err)
		}
		for _, w := range c.works {
			w.Annotations = map[string]string{v1alpha1.DigestAnnotation: "d"}
			NewAbridger().Abridge(w)
		}
		gone, changed, err = r.Displaces(Cluster{Name: "c1"}, c.works)
		if err != nil || !slices.Equal(gone, c.gone) || !slices.Equal(changed, c.changed) {
			t.Errorf("abridged, %s: gone %v, changed %v, %v", name, gone, changed, err)
		}
	}
}
