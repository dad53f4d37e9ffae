package load

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

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// imageText matches what a registry, repository or image name may contain: no scheme, no
// blanks. A source is a prefix of such a name, so it may be incomplete.
var imageText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/-]*$`)

func configFlaws(object *unstructured.Unstructured) []flaw.Flaw {
	body := render.HashedFields(object.Object)
	var flaws []flaw.Flaw
	for _, f := range render.CheckConfig(render.Config{
		ConfigReference: render.ConfigReference{Namespace: object.GetNamespace(), Name: object.GetName()}, Body: body,
	}) {
		flaws = append(flaws, flawOfFinding(f))
	}
	var typed struct {
		Spec addonv1alpha1.AddOnDeploymentConfigSpec `json:"spec"`
	}
	if err := strict.Convert(body, &typed); err != nil {
		return append(flaws, flaw.Flaw{Field: specKey, Reason: flaw.ReasonInvalidConfig, Message: err.Error()})
	}
	flaws = append(flaws, caBundleFlaws(typed.Spec.ProxyConfig.CABundle)...)
	flaws = append(flaws, registryFlaws(typed.Spec.Registries)...)
	if typed.Spec.NodePlacement != nil {
		flaws = append(flaws, nodeSelectorFlaws(typed.Spec.NodePlacement.NodeSelector)...)
		for i, toleration := range typed.Spec.NodePlacement.Tolerations {
			flaws = append(flaws, tolerationFlaws(i, toleration)...)
		}
	}
	return flaw.FirstPerField(flaws)
}

func flawOfFinding(f render.Finding) flaw.Flaw {
	return flaw.Flaw{Field: flaw.Path(f.Field), Reason: f.Reason, Message: f.Message, Hint: f.Hint}
}

func invalidConfig(at flaw.Path, message, hint string) flaw.Flaw {
	return flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidConfig, Message: message, Hint: hint}
}

// caBundleFlaws accepts only certificates in PEM. With any other text, an agent would fail on the cluster, where the
// author of the commit does not see it.
func caBundleFlaws(bundle []byte) []flaw.Flaw {
	const at flaw.Path = "spec.proxyConfig.caBundle"
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
			return []flaw.Flaw{invalidConfig(at, fmt.Sprintf("holds a PEM block of type %q", block.Type), "keep the certificates only")}
		}
		rest = after
	}
	if len(rest) == len(bundle) || strings.Contains(string(rest), "-----BEGIN") {
		return []flaw.Flaw{invalidConfig(at, "is not a bundle of PEM certificates", "encode the PEM text as base64")}
	}
	return nil
}

// registryFlaws checks the image mirrors. Only the last match of an image counts, and it is applied once, so in a
// cycle the result would depend on the order.
func registryFlaws(registries []addonv1alpha1.ImageMirror) []flaw.Flaw {
	const list flaw.Path = "spec.registries"
	var flaws []flaw.Flaw
	mirrors := map[string]string{}
	for i, r := range registries {
		for name, text := range map[string]string{"mirror": r.Mirror, "source": r.Source} {
			if text != "" && (!imageText.MatchString(text) || strings.Contains(text, "//")) {
				flaws = append(flaws, invalidConfig(list.Index(i).Child(name), flaw.Shown(text)+" is not part of an image name", "write it as in quay.io/org, without a scheme"))
			}
		}
		if r.Source != "" && r.Mirror != "" && r.Source != r.Mirror {
			mirrors[r.Source] = r.Mirror
		}
	}
	for i, r := range registries {
		if cycle := mirrorCycle(mirrors, r.Source); cycle != "" {
			flaws = append(flaws, invalidConfig(list.Index(i), "the mirrors form a cycle: "+cycle, "remove one of them"))
			break
		}
	}
	slices.SortStableFunc(flaws, func(a, b flaw.Flaw) int { return strings.Compare(string(a.Field), string(b.Field)) })
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
			return "" // start leads into a cycle but is not part of it; the cycle is reported from one of its members
		}
	}
	return ""
}

func nodeSelectorFlaws(selector map[string]string) []flaw.Flaw {
	const at flaw.Path = "spec.nodePlacement.nodeSelector"
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		messages := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(selector[key])...)
		if len(messages) > 0 {
			flaws = append(flaws, invalidConfig(at.Child(key), "is not a label of a node", messages[0]))
		}
	}
	return flaws
}

// tolerationFlaws finds values that the managed cluster would refuse in every pod.
func tolerationFlaws(i int, t corev1.Toleration) []flaw.Flaw {
	at := flaw.Path("spec.nodePlacement.tolerations").Index(i)
	var flaws []flaw.Flaw
	invalid := func(field, message, hint string) {
		flaws = append(flaws, invalidConfig(at.Child(field), message, hint))
	}
	if messages := validation.IsQualifiedName(t.Key); t.Key != "" && len(messages) > 0 {
		invalid("key", "is not a key of a taint", messages[0])
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
			invalid("value", "is not a value of a taint", messages[0])
		}
	default:
		invalid("operator", fmt.Sprintf("%q is neither Exists nor Equal", flaw.Shown(t.Operator)), "")
	}
	switch t.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		invalid("effect", fmt.Sprintf("%q is none of NoSchedule, PreferNoSchedule, NoExecute", flaw.Shown(t.Effect)), "")
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		invalid("tolerationSeconds", "needs effect NoExecute", "")
	}
	return flaws
}

// declaredVariableFlaws checks the variables of a declared AddOnDeploymentConfig before it is decoded, because a
// missing value then still differs from an empty one. An explicit empty value is allowed; a missing one is a mistake.
func declaredVariableFlaws(object map[string]any) []flaw.Flaw {
	const list flaw.Path = "spec.customizedVariables"
	declared, _ := valueAt(object, specKey, "customizedVariables").([]any)
	seen := map[string]bool{}
	var flaws []flaw.Flaw
	for i, item := range declared {
		fields, isObject := item.(map[string]any)
		name, isString := fields[nameKey].(string)
		if !isObject || !isString {
			continue // the schema reports it
		}
		value, present := fields["value"]
		at := list.Index(i)
		switch {
		case seen[name]:
			flaws = append(flaws, flaw.Flaw{Field: at, Reason: flaw.ReasonDuplicateVariable, Message: fmt.Sprintf("variable %q is set twice", flaw.Shown(name)), Hint: "keep one of them"})
		case !present && len(fields) == 1: // otherwise the value may be present under an unknown name
			flaws = append(flaws, flaw.Flaw{Field: at.Child("value"), Reason: flaw.ReasonInvalidVariable, Message: fmt.Sprintf("variable %q has no value", flaw.Shown(name)), Hint: emptyValueHint})
		case present && value == nil:
			flaws = append(flaws, flaw.Flaw{Field: at.Child("value"), Reason: flaw.ReasonInvalidType, Message: "must be a string", Hint: "quote it; " + emptyValueHint})
		}
		seen[name] = true
	}
	return flaws
}

// emptyValueHint says how to write an empty value.
const emptyValueHint = `write "" for an empty one`
