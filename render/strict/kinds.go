package strict

import (
	"maps"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// kindsByVersion are the kinds of objects in the stable versions of Kubernetes' own groups, by
// apiVersion. Kubernetes removes no kind from a stable version, and no other project can add one.
// Alpha and beta versions change, and other groups belong to other projects: they are not listed.
type kindsByVersion map[string][]string

// judge returns a flaw if the apiVersion does not have the kind. It also returns the apiVersion and
// kind that were probably meant; without a flaw these are the given ones.
func (k kindsByVersion) judge(at flaw.Path, apiVersion, kind string, newer []string) (meantVersion, meantKind string, flaws []flaw.Flaw) {
	known, closed := k[apiVersion]
	if !closed || kind == "List" || slices.Contains(known, kind) || slices.Contains(newer, kind) || len(variable.References(kind)) > 0 {
		return apiVersion, kind, nil
	}
	at = at.Child(kindKey)
	if item, isList := strings.CutSuffix(kind, "List"); isList && slices.Contains(known, item) {
		return apiVersion, kind, refused(at, "write its items as manifests of their own", "a %s cannot be deployed", kind)
	}
	meantVersion, meantKind, hint := apiVersion, kind, newerHint(kind)
	if version := k.versionOf(kind); version != "" {
		meantVersion, hint = version, "write apiVersion: "+version
	} else if match := flaw.Closest(kind, known); match != "" {
		meantKind, hint = match, "did you mean "+match+"?"
	}
	return meantVersion, meantKind, refused(at, hint, "%s has no kind %q", apiVersion, flaw.Shown(kind))
}

// versionOf is the first apiVersion, by name, that has a kind.
func (k kindsByVersion) versionOf(kind string) string {
	for _, version := range slices.Sorted(maps.Keys(k)) {
		if slices.Contains(k[version], kind) {
			return version
		}
	}
	return ""
}
