package load

import (
	"slices"
	"strings"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
	"github.com/addonflow/addonflow/render/variable"
)

// Booleans as text, in variables and annotations.
const (
	trueText  = "true"
	falseText = "false"
)

// mergeConfigsAnnotation on a ClusterManagementAddOn, with the value "true", merges all AddOnDeploymentConfigs of one
// level, in order, while OCM reads only the first. Lists are joined. If two configurations set a variable, label or
// field, the later one counts.
const mergeConfigsAnnotation = "addonflow.io/merge-configs"

// declaredKey is a label or annotation of AddonFlow that a commit may declare.
type declaredKey struct {
	key string
	on  []role
	// kind names the kind on which the key is allowed, in messages.
	kind string
}

// declaredKeys lists them. AddonFlow writes all of its other keys itself.
func declaredKeys() []declaredKey {
	return []declaredKey{
		{variable.TypedAnnotation, []role{roleTemplate}, "an AddOnTemplate"},
		{variable.FromConfigsAnnotation, []role{roleTemplate, rolePackage}, "an AddOnTemplate or AddOnPackage"},
		{strict.NewerNamesAnnotation, []role{roleTemplate, rolePackage}, "an AddOnTemplate or AddOnPackage"},
		{hubconfigv1alpha1.VersionLabel, []role{roleTemplate}, "an AddOnTemplate"},
		{mergeConfigsAnnotation, []role{roleAddOn}, "a ClusterManagementAddOn"},
	}
}

// declarable reports whether a commit may declare a key of AddonFlow on any kind.
func declarable(key string) bool {
	return slices.ContainsFunc(declaredKeys(), func(d declaredKey) bool { return d.key == key })
}

// misplacedKeys finds keys of AddonFlow on an object of a kind on which they are not allowed.
func misplacedKeys(labels, annotations map[string]string, r role) []flaw.Flaw {
	var flaws []flaw.Flaw
	for _, d := range declaredKeys() {
		for at, entries := range map[flaw.Path]map[string]string{"metadata.labels": labels, "metadata.annotations": annotations} {
			if _, present := entries[d.key]; present && (!slices.Contains(d.on, r) || (d.key == hubconfigv1alpha1.VersionLabel) != (at == "metadata.labels")) {
				flaws = append(flaws, flaw.Flaw{Field: at.Child(d.key), Reason: flaw.ReasonInvalidManifest, Message: "is for " + d.kind, Hint: flaw.RemoveIt})
			}
		}
	}
	return flaws
}

// writtenKeys are the keys that AddonFlow writes or that users set on the hub.
func writtenKeys() []string {
	return []string{
		v1alpha1.ManagedByLabel, v1alpha1.AddOnLabel, v1alpha1.SourceAnnotation, v1alpha1.RevisionAnnotation,
		v1alpha1.DigestAnnotation, v1alpha1.CommitsAnnotation, v1alpha1.QuarantinedAnnotation, v1alpha1.SucceededAtAnnotation, v1alpha1.ApproveRemovalAnnotation,
		v1alpha1.LastCommitsAnnotation,
		v1alpha1.SuspendAnnotation, v1alpha1.SkipPreDeleteAnnotation, render.PartsAnnotation, render.MarksAnnotation, render.DisregardAnnotation,
	}
}

// ownKeyFlaw is the flaw of a key of AddonFlow that a commit may not declare.
func ownKeyFlaw(at flaw.Path, key string) flaw.Flaw {
	f := flaw.Flaw{Field: at.Child(key), Reason: flaw.ReasonInvalidManifest, Message: "is written by AddonFlow or set on the hub", Hint: flaw.RemoveIt}
	if slices.Contains(writtenKeys(), key) {
		return f
	}
	f.Reason, f.Message, f.Hint = flaw.ReasonUnknownField, "AddonFlow knows no such key", flaw.RemoveIt
	if meant := meantKey(key); meant != "" {
		f.Hint = "did you mean " + meant + "?"
	}
	return f
}

// meantKey returns the declarable key that is most similar to a misspelt key of AddonFlow; "": none.
func meantKey(key string) string {
	var names []string
	for _, d := range declaredKeys() {
		names = append(names, strings.TrimPrefix(d.key, ownKeys))
	}
	if match := flaw.Closest(strings.TrimPrefix(key, ownKeys), names); match != "" {
		return ownKeys + match
	}
	return ""
}
