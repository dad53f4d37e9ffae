package render

import (
	"slices"
	"strings"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
	"github.com/addonflow/addonflow/api/v1alpha1"
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

// mergeConfigsAt is where MergeConfigsAnnotation stands.
const mergeConfigsAt = "metadata.annotations[" + MergeConfigsAnnotation + "]"

// declaredKey is a label or annotation of AddonFlow's that a commit may declare.
type declaredKey struct {
	key string
	on  []role
	// kind says in a message where it belongs.
	kind string
}

// declaredKeys are all of them. Every other key of AddonFlow's is its own to write.
func declaredKeys() []declaredKey {
	return []declaredKey{
		{TypedVariablesAnnotation, []role{roleTemplate}, "an AddOnTemplate"},
		{ConfigVariablesAnnotation, []role{roleTemplate, rolePackage}, "an AddOnTemplate or AddOnPackage"},
		{hubconfigv1alpha1.VersionLabel, []role{roleTemplate}, "an AddOnTemplate"},
		{MergeConfigsAnnotation, []role{roleAddOn}, "a ClusterManagementAddOn"},
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
			if _, present := entries[d.key]; present && (!slices.Contains(d.on, r) || (d.key == hubconfigv1alpha1.VersionLabel) != (at == "metadata.labels")) {
				flaws = append(flaws, flaw{field: at.child(d.key), reason: ReasonInvalidManifest, message: "is for " + d.kind, hint: removeIt})
			}
		}
	}
	return flaws
}

// writtenKeys are the keys that AddonFlow writes or that are set on the hub.
func writtenKeys() []string {
	return []string{
		v1alpha1.ManagedByLabel, v1alpha1.AddOnLabel, v1alpha1.SourceAnnotation, v1alpha1.RevisionAnnotation,
		v1alpha1.DigestAnnotation, v1alpha1.SucceededAtAnnotation, v1alpha1.ApproveRemovalAnnotation,
		v1alpha1.SuspendAnnotation, v1alpha1.SkipPreDeleteAnnotation, PartsAnnotation, MarksAnnotation, DisregardAnnotation,
	}
}

// ownKeyFlaw is the flaw of a key of AddonFlow's that a commit may not declare.
func ownKeyFlaw(at fieldPath, key string) flaw {
	f := flaw{field: at.child(key), reason: ReasonInvalidManifest, message: "is written by AddonFlow or set on the hub", hint: removeIt}
	if slices.Contains(writtenKeys(), key) {
		return f
	}
	f.reason, f.message, f.hint = ReasonUnknownField, "AddonFlow knows no such key", removeIt
	if meant := meantKey(key); meant != "" {
		f.hint, f.meant = "did you mean "+meant+"?", at.child(meant)
	}
	return f
}

// meantKey returns the declarable key that a misspelt one of AddonFlow's was probably
// meant to be, "" for none.
func meantKey(key string) string {
	var names []string
	for _, d := range declaredKeys() {
		names = append(names, strings.TrimPrefix(d.key, ownKeys))
	}
	if match := closest(strings.TrimPrefix(key, ownKeys), names); match != "" {
		return ownKeys + match
	}
	return ""
}
