package strict

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// selectsOwnPods requires a selector that selects the pods of its own template. Without a selector,
// the manifest may be only a part of a workload, whose selector another owner sets.
func selectsOwnPods(at flaw.Path, value any) []flaw.Flaw {
	spec, _ := value.(map[string]any)
	selector, given := spec[selectorKey].(map[string]any)
	if !given {
		return nil
	}
	at = at.Child(selectorKey)
	var typed metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed) != nil {
		return nil // a variable stands where a text or list must
	}
	if len(typed.MatchLabels)+len(typed.MatchExpressions) == 0 {
		return refused(at, "give matchLabels what the pods' labels say", "is empty: a workload must select its own pods only")
	}
	declared, labelled := flaw.Path("template.metadata.labels").In(spec).(map[string]any)
	parsed, err := metav1.LabelSelectorAsSelector(&typed)
	if !labelled || err != nil || variable.In(selector) || variable.In(declared) {
		return nil
	}
	have := labels.Set{}
	for key, value := range declared {
		have[key], _ = value.(string)
	}
	if !parsed.Matches(have) {
		return refused(at, "change one of the two", "selects %s, and the pods have %s", flaw.Shown(parsed.String()), flaw.Shown(have.String()))
	}
	return nil
}

// distinct wants another text in a field of every entry of a list that has one.
func distinct(field string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		items, _ := value.([]any)
		seen := map[string]int{}
		var flaws []flaw.Flaw
		for i, item := range items {
			entry, _ := item.(map[string]any)
			text, judged := fixed(entry[field])
			if first, twice := seen[text]; twice && judged {
				flaws = append(flaws, refused(at.Index(i).Child(field), "", "%q stands in %s[%d] already", flaw.Shown(text), at.Last(), first)...)
			} else {
				seen[text] = i
			}
		}
		return flaws
	}
}

// oneOf requires at most one of several fields.
func oneOf(fields ...string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		object, _ := value.(map[string]any)
		given := slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return object[name] == nil || object[name] == "" })
		if len(given) > 1 {
			return refused(at.Child(given[1]), "keep one of the two", "%s stands there already", given[0])
		}
		return nil
	}
}

// fieldsOf are the JSON names of a struct's fields.
func fieldsOf[T any]() []string {
	return slices.Sorted(maps.Keys(jsonFields(reflect.TypeFor[T]())))
}

// requestsWithinLimits wants no container to request more than its limit.
func requestsWithinLimits(at flaw.Path, value any) []flaw.Flaw {
	object, _ := value.(map[string]any)
	limits, _ := object["limits"].(map[string]any)
	requests, _ := object["requests"].(map[string]any)
	var flaws []flaw.Flaw
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		request, requested := quantityOf(requests[name])
		limit, limited := quantityOf(limits[name])
		if requested && limited && request.Cmp(limit) > 0 {
			flaws = append(flaws, refused(at.Child("requests").Child(name), "", "%s: is more than the limit, which is %s", flaw.Shown(requests[name]), flaw.Shown(limits[name]))...)
		}
	}
	return flaws
}

// quantityOf reads a quantity without variables.
func quantityOf(value any) (resource.Quantity, bool) {
	if value == nil {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(strings.TrimSpace(fmt.Sprint(value)))
	return q, err == nil
}
