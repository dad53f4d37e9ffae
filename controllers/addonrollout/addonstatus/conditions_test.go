package addonstatus

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
)

// located is an add-on with one ConfigMap per location, for a hosted cluster or, without hosting, for
// the default mode.
func located(t *testing.T, hosting string, locations ...string) render.Rendered {
	t.Helper()
	var text strings.Builder
	for i, location := range locations {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: ConfigMap
metadata: {name: m%d, namespace: ns, annotations: {addon.open-cluster-management.io/hosted-manifest-location: %s}}
`, i, location)
	}
	r, err := render.NewRenderer(render.Content{AddOn: "hello", Package: &render.Package{
		Name: "hello", Engine: chart.ManifestsFolder, Files: []render.PackageFile{{Path: "maps.yaml", Text: text.String()}},
	}}, chart.InProcess{})
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := r.Render(render.Cluster{Name: "c1", Hosting: hosting})
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// TestNothingToApply: OCM's text for an agent without deploy works is "no manifest need to apply". In
// the default mode a deploy work always exists, because content that deploys nothing is refused. In
// hosted mode all works may belong to the other agent.
func TestNothingToApply(t *testing.T) {
	const (
		applied = "True AddonManifestApplied: manifests of addon are applied successfully"
		nothing = "True AddonManifestApplied: no manifest need to apply"
		failed  = "False AddonManifestAppliedFailed: failed to apply the manifests of addon"
	)
	cases := map[string]struct {
		hosting    string
		locations  []string
		refused    bool
		own, there string
	}{
		"DefaultMode":        {"", []string{"hosting"}, false, applied, ""},
		"BothSides":          {"h", []string{"hosting", "managed"}, false, applied, applied},
		"AllOnHosting":       {"h", []string{"hosting", "none"}, false, nothing, applied},
		"AllOnManaged":       {"h", []string{"managed", "none"}, false, applied, ""},
		"RefusedBeforeMoved": {"h", []string{"hosting"}, true, failed, applied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := Move{Rendered: located(t, tc.hosting, tc.locations...), Refused: tc.refused}
			m.Hosting = Hosting{Hosted: tc.hosting != "", Name: tc.hosting}
			next, _ := Next(&addonv1alpha1.ManagedClusterAddOn{}, m, metav1.Time{})
			for kind, want := range map[string]string{
				addonv1alpha1.ManagedClusterAddOnManifestApplied: tc.own, addonv1alpha1.ManagedClusterAddOnHostingManifestApplied: tc.there,
			} {
				got := ""
				if c := meta.FindStatusCondition(next.Conditions, kind); c != nil {
					got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
				}
				if got != want {
					t.Errorf("%s: %q, want %q", kind, got, want)
				}
			}
		})
	}
}
