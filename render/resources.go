package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render/flaw"
)

// maxContainerID bounds the pattern of a containerID, which is compiled.
const maxContainerID = 256

// requirement has the resources that the containers that match a pattern require.
type requirement struct {
	container *regexp.Regexp
	resources map[string]any
}

// parseRequirements compiles "<resource>:<name>:<container>". Each part is a pattern, or * for any text. A pattern
// that does not compile is an error; OCM skips it. Each part is compiled separately; OCM reads a|b as an alternative
// of the whole text, which makes no sense.
func parseRequirements(list []addonv1alpha1.ContainerResourceRequirements) ([]requirement, []flaw.Flaw) {
	var out []requirement
	var flaws []flaw.Flaw
	for i, item := range list {
		at := flaw.Path("spec.resourceRequirements").Index(i)
		pattern, err := containerPattern(item.ContainerID)
		if err != nil {
			flaws = append(flaws, flaw.Flaw{
				Field: at.Child("containerID"), Reason: flaw.ReasonInvalidConfig, Message: err.Error(),
				Hint: "use <resource>:<name>:<container>, * for any",
			})
			continue
		}
		// Converted through the typed form, as OCM does, so that quantities are canonical.
		resources, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&item.Resources)
		if err != nil {
			flaws = append(flaws, flaw.Flaw{Field: at.Child("resources"), Reason: flaw.ReasonInvalidConfig, Message: err.Error()})
			continue
		}
		out = append(out, requirement{container: pattern, resources: resources})
	}
	return out, flaws
}

func containerPattern(id string) (*regexp.Regexp, error) {
	parts := strings.Split(id, ":")
	if len(parts) != 3 || len(id) > maxContainerID {
		return nil, fmt.Errorf("%.80q is not a container", id)
	}
	for i, part := range parts {
		if part == "*" {
			parts[i] = ".+"
		}
	}
	pattern, err := regexp.Compile(fmt.Sprintf("^(?:%s):(?:%s):(?:%s)$", parts[0], parts[1], parts[2]))
	if err != nil {
		return nil, fmt.Errorf("%.80q is not a pattern: %w", id, err)
	}
	return pattern, nil
}

// require sets the resources of every container that a requirement matches. If several match, the last one counts.
func (p *pod) require(requirements []requirement) {
	for _, c := range p.containers {
		name, _ := c.fields["name"].(string)
		id := p.resource + ":" + p.name + ":" + name
		for _, r := range slices.Backward(requirements) {
			if r.container.MatchString(id) {
				c.fields["resources"] = runtime.DeepCopyJSON(r.resources)
				break
			}
		}
	}
}
