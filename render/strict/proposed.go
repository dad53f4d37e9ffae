package strict

import (
	"regexp"
	"slices"

	"github.com/addonflow/addonflow/render/flaw"
)

// proposedField is a field of OCM's proposals that is not in OCM's API. Teams write add-ons from the proposals, so
// lint names the field that replaces it.
type proposedField struct {
	// field is its path, with [] for every index. beside is a field of OCM's API in the same object: an
	// object without it is of another kind that has a field of this path.
	field, beside string
	hint          string
}

// proposedFields are those of the lifecycle, install strategy and template proposals.
func proposedFields() []proposedField {
	const (
		placement = "spec.installStrategy.placements[]."
		specHint  = "put its configs here; its installNamespace is agentInstallNamespace of an AddOnDeploymentConfig among them, " +
			"its desiredVersion an AddOnHubConfig among them"
	)
	return []proposedField{
		{"spec.configuration", "installStrategy", "its configs are the defaults of supportedConfigs (v1beta1: defaultConfigs), its rolloutStrategy is the strategy of an AddOnRollout"},
		{"spec.installStrategy.labelSelector", "placements", "leave type Manual here, and select clusters with clusterLabelSelector of an AddOnRollout"},
		{placement + "addonSpec", "rolloutStrategy", specHint},
		{placement + "addonTemplate", "rolloutStrategy", specHint},
		{placement + "space", "rolloutStrategy", "did you mean namespace?"},
		{placement + "rolloutStrategy.rollingUpdateWithPlacement", "progressivePerGroup", "it is a strategy of an AddOnRollout"},
		{"spec.registration[].kubeClient.hubPermissions[].roleRef", "singleNamespace", "write it as currentCluster.clusterRoleName, or in singleNamespace"},
	}
}

var anyIndex = regexp.MustCompile(`\[[0-9]+\]`)

// ProposedHint is the hint for a field of a proposal, "" for any other.
func ProposedHint(field flaw.Path, known []string) string {
	path := anyIndex.ReplaceAllString(string(field), "[]")
	for _, p := range proposedFields() {
		if p.field == path && slices.Contains(known, p.beside) {
			return p.hint
		}
	}
	return ""
}
