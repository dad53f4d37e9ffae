package render

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// healthFlaws judges the health policy of an add-on and holds it against its
// content: an entry that finds no object in one of the templates would hold the
// clusters of that template up for ever.
func healthFlaws(h *v1alpha1.Health, content Content) []flaw {
	p, flaws := newProber(h)
	if len(flaws) > 0 {
		return flaws
	}
	for i := range p.checks {
		for _, t := range content.Templates {
			if p.checks[i].finds(t) {
				continue
			}
			flaws = append(flaws, flaw{
				field: fieldPath("spec.health.healthCheckExprs").index(i), reason: ReasonInvalidHealth,
				message: fmt.Sprintf("AddOnTemplate %s has no %s that it could judge", t.Name, h.HealthCheckExprs[i].Kind),
				hint:    "compare apiVersion, kind, namespace and name with its manifests",
			})
		}
	}
	return flaws
}

// finds reports whether a manifest of a template may be one that the check judges.
// Names and namespaces may depend on variables or on agentInstallNamespace; those
// that do are left to the cluster.
func (c *check) finds(t Template) bool {
	manifests, _ := valueAt(t.Spec, "agentSpec", "workload", "manifests").([]any)
	for _, manifest := range manifests {
		fields, ok := manifest.(map[string]any)
		if !ok {
			continue
		}
		id := identityOf(fields)
		name := id.Name
		if strings.Contains(name, "{{") {
			name = c.name
		}
		if c.matches(schema.FromAPIVersionAndKind(id.APIVersion, id.Kind).GroupKind(), c.namespace, name) {
			return true
		}
	}
	return false
}
