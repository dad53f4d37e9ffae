package render

import (
	"slices"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
)

// What a boolean is as text, in variables and annotations.
const (
	trueText  = "true"
	falseText = "false"
)

// MergeConfigsAnnotation on a ClusterManagementAddOn, with the value "true", merges
// all AddOnDeploymentConfigs of one level, in order, where OCM reads the first of
// them. Lists are joined, of a variable, label or field that two set the later counts.
const MergeConfigsAnnotation = "addonflow.io/merge-configs"

// ConfigVariablesAnnotation on an AddOnTemplate takes variables from configurations of
// any kind; see ParseConfigVariables.
const ConfigVariablesAnnotation = "addonflow.io/config-variables"

// declaredKey is a label or annotation of AddonFlow's that a commit may declare.
type declaredKey struct {
	key string
	on  role
	// kind says in a message where it belongs.
	kind string
}

// declaredKeys are all of them. Every other key of AddonFlow's is its own to write.
func declaredKeys() []declaredKey {
	return []declaredKey{
		{TypedVariablesAnnotation, roleTemplate, "an AddOnTemplate"},
		{ConfigVariablesAnnotation, roleTemplate, "an AddOnTemplate"},
		{hubconfigv1alpha1.VersionLabel, roleTemplate, "an AddOnTemplate"},
		{MergeConfigsAnnotation, roleAddOn, "a ClusterManagementAddOn"},
	}
}

// declarable reports whether a commit may declare a key of AddonFlow's somewhere.
func declarable(key string) bool {
	return slices.ContainsFunc(declaredKeys(), func(d declaredKey) bool { return d.key == key })
}

// misplacedKeys finds keys of AddonFlow's on an object of another kind than theirs.
func misplacedKeys(labels, annotations map[string]string, r role) []flaw {
	var flaws []flaw
	for _, d := range declaredKeys() {
		for at, entries := range map[fieldPath]map[string]string{"metadata.labels": labels, "metadata.annotations": annotations} {
			if _, present := entries[d.key]; present && (d.on != r || (d.key == hubconfigv1alpha1.VersionLabel) != (at == "metadata.labels")) {
				flaws = append(flaws, flaw{field: at.child(d.key), reason: ReasonInvalidManifest, message: "is for " + d.kind, hint: removeIt})
			}
		}
	}
	return flaws
}
