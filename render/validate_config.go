package render

import (
	"encoding/pem"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// imageText is what can stand in a registry, repository or image name: no scheme,
// no blanks. A source is a prefix of such a name, so it need not be complete.
var imageText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]*$`)

// configFlaws judges the values of a normalised AddOnDeploymentConfig.
func configFlaws(object *unstructured.Unstructured) []flaw {
	body := hashedFields(object.Object)
	var flaws []flaw
	for _, f := range checkConfig(Config{
		ConfigReference: ConfigReference{Namespace: object.GetNamespace(), Name: object.GetName()}, Body: body,
	}) {
		flaws = append(flaws, flawOfFinding(f))
	}
	var typed struct {
		Spec addonv1alpha1.AddOnDeploymentConfigSpec `json:"spec"`
	}
	if err := convert(body, &typed); err != nil {
		return append(flaws, flaw{field: specKey, reason: ReasonInvalidConfig, message: err.Error()})
	}
	flaws = append(flaws, caBundleFlaws(typed.Spec.ProxyConfig.CABundle)...)
	flaws = append(flaws, registryFlaws(typed.Spec.Registries)...)
	if typed.Spec.NodePlacement != nil {
		flaws = append(flaws, nodeSelectorFlaws(typed.Spec.NodePlacement.NodeSelector)...)
		for i, toleration := range typed.Spec.NodePlacement.Tolerations {
			flaws = append(flaws, tolerationFlaws(i, toleration)...)
		}
	}
	return firstPerField(flaws)
}

func flawOfFinding(f Finding) flaw {
	return flaw{field: fieldPath(f.Field), reason: f.Reason, message: f.Message, hint: f.Hint}
}

func invalidConfig(at fieldPath, message, hint string) flaw {
	return flaw{field: at, reason: ReasonInvalidConfig, message: message, hint: hint}
}

// caBundleFlaws wants certificates in PEM and nothing else: an agent that is given
// anything else fails on the cluster, far from whoever wrote it.
func caBundleFlaws(bundle []byte) []flaw {
	const at fieldPath = "spec.proxyConfig.caBundle"
	if len(bundle) == 0 {
		return nil
	}
	rest := bundle
	for {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return []flaw{invalidConfig(at, fmt.Sprintf("holds a PEM block of type %q", block.Type), "keep the certificates only")}
		}
		rest = after
	}
	if len(rest) == len(bundle) || strings.Contains(string(rest), "-----BEGIN") {
		return []flaw{invalidConfig(at, "is not a bundle of PEM certificates", "encode the PEM text as base64")}
	}
	return nil
}

// registryFlaws checks the image mirrors; the last that matches an image counts,
// once, so a cycle would leave it to the order which one wins.
func registryFlaws(registries []addonv1alpha1.ImageMirror) []flaw {
	const list fieldPath = "spec.registries"
	var flaws []flaw
	mirrors := map[string]string{}
	for i, r := range registries {
		for name, text := range map[string]string{"mirror": r.Mirror, "source": r.Source} {
			if text != "" && (!imageText.MatchString(text) || strings.Contains(text, "//")) {
				flaws = append(flaws, invalidConfig(list.index(i).child(name), shown(text)+" is no part of an image name", "write it as in quay.io/org, without a scheme"))
			}
		}
		if r.Source != "" && r.Mirror != "" && r.Source != r.Mirror {
			mirrors[r.Source] = r.Mirror
		}
	}
	for i, r := range registries {
		if cycle := mirrorCycle(mirrors, r.Source); cycle != "" {
			flaws = append(flaws, invalidConfig(list.index(i), "the mirrors form a cycle: "+cycle, "remove one of them"))
			break
		}
	}
	slices.SortStableFunc(flaws, func(a, b flaw) int { return strings.Compare(string(a.field), string(b.field)) })
	return flaws
}

// mirrorCycle follows mirrors from a source and returns a -> b -> a, or "".
func mirrorCycle(mirrors map[string]string, start string) string {
	steps := []string{start}
	for at := mirrors[start]; at != ""; at = mirrors[at] {
		steps = append(steps, at)
		if at == start {
			return strings.Join(steps, " -> ")
		}
		if len(steps) > len(mirrors)+1 {
			return "" // a cycle that start leads into; it is found from one of its own
		}
	}
	return ""
}

func nodeSelectorFlaws(selector map[string]string) []flaw {
	const at fieldPath = "spec.nodePlacement.nodeSelector"
	var flaws []flaw
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		messages := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(selector[key])...)
		if len(messages) > 0 {
			flaws = append(flaws, invalidConfig(at.child(key), "is no label of a node", messages[0]))
		}
	}
	return flaws
}

// tolerationFlaws checks what the managed cluster would refuse in every pod.
func tolerationFlaws(i int, t corev1.Toleration) []flaw {
	at := fieldPath("spec.nodePlacement.tolerations").index(i)
	var flaws []flaw
	invalid := func(field, message, hint string) {
		flaws = append(flaws, invalidConfig(at.child(field), message, hint))
	}
	if messages := validation.IsQualifiedName(t.Key); t.Key != "" && len(messages) > 0 {
		invalid("key", "is no key of a taint", messages[0])
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		if t.Value != "" {
			invalid("value", "must be empty with operator Exists", "remove it, or use operator Equal")
		}
	case corev1.TolerationOpEqual, "":
		if t.Key == "" {
			invalid("operator", "must be Exists when there is no key", "")
		}
		if messages := validation.IsValidLabelValue(t.Value); len(messages) > 0 {
			invalid("value", "is no value of a taint", messages[0])
		}
	default:
		invalid("operator", fmt.Sprintf("%q is neither Exists nor Equal", shown(t.Operator)), "")
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		invalid("effect", fmt.Sprintf("%q is none of NoSchedule, PreferNoSchedule, NoExecute", shown(t.Effect)), "")
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		invalid("tolerationSeconds", "needs effect NoExecute", "")
	}
	return flaws
}

// declaredVariableFlaws judges the variables of a declared AddOnDeploymentConfig
// before it is decoded, when a value that is missing can still be told from an
// empty one. An empty value that was written is a value; one that was not is
// never what was meant.
func declaredVariableFlaws(object map[string]any) []flaw {
	const list fieldPath = "spec.customizedVariables"
	declared, _ := valueAt(object, specKey, "customizedVariables").([]any)
	seen := map[string]bool{}
	var flaws []flaw
	for i, item := range declared {
		fields, isObject := item.(map[string]any)
		name, isString := fields[nameKey].(string)
		if !isObject || !isString {
			continue // the schema has the words
		}
		value, present := fields["value"]
		at := list.index(i)
		switch {
		case seen[name]:
			flaws = append(flaws, flaw{field: at, reason: ReasonDuplicateVariable, message: fmt.Sprintf("variable %q is set twice", shown(name)), hint: "keep one of them"})
		case !present && len(fields) == 1: // else the field is there, under a name nobody knows
			flaws = append(flaws, flaw{field: at.child("value"), reason: ReasonInvalidVariable, message: fmt.Sprintf("variable %q has no value", shown(name)), hint: emptyValueHint})
		case present && value == nil:
			flaws = append(flaws, flaw{field: at.child("value"), reason: ReasonInvalidType, message: "must be a string", hint: "quote it; " + emptyValueHint})
		}
		seen[name] = true
	}
	return flaws
}

// emptyValueHint is how to ask for an empty value.
const emptyValueHint = `write "" for an empty one`
