package spoke

import (
	"regexp"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"
)

// configOf is the agent's effective manifestConfigs for one manifest: feedback rules from the
// first matching entry that has any, and the update strategy from the first matching entry that
// has one.
func configOf(m workv1.ManifestResourceMeta, configs []workv1.ManifestConfigOption) workv1.ManifestConfigOption {
	var found workv1.ManifestConfigOption
	for _, entry := range configs {
		if !matches(m, entry.ResourceIdentifier) {
			continue
		}
		if len(found.FeedbackRules) == 0 {
			found.FeedbackRules = entry.FeedbackRules
		}
		if found.UpdateStrategy == nil {
			found.UpdateStrategy = entry.UpdateStrategy
		}
	}
	return found
}

func matches(m workv1.ManifestResourceMeta, id workv1.ResourceIdentifier) bool {
	return m.Group == id.Group && m.Resource == id.Resource && wildcard(id.Namespace, m.Namespace) && wildcard(id.Name, m.Name)
}

// wildcard matches a pattern in which * matches any text.
func wildcard(pattern, text string) bool {
	if pattern == text || pattern == "*" {
		return true
	}
	if !strings.Contains(pattern, "*") {
		return false
	}
	expression, err := regexp.Compile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
	return err == nil && expression.MatchString(text)
}
