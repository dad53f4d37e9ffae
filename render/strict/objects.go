package strict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// selectorRule wants a selector that selects the pods of its own template. Without a
// selector or labels there is nothing to compare.
func selectorRule(at flaw.Path, value any) []flaw.Flaw {
	spec, _ := value.(map[string]any)
	selector, selects := spec["selector"].(map[string]any)
	if !selects {
		return nil
	}
	at = at.Child("selector")
	var typed metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed) != nil {
		return nil // what has another type is told by itself
	}
	if len(typed.MatchLabels)+len(typed.MatchExpressions) == 0 {
		return refused(at, "give matchLabels what the pods' labels say", "is empty: a workload must select its own pods only")
	}
	declared, labelled := flaw.Path("template.metadata.labels").In(spec).(map[string]any)
	parsed, err := metav1.LabelSelectorAsSelector(&typed)
	if !labelled || err != nil || variable.In(selector) || variable.In(declared) {
		return nil
	}
	if have := labels.Set(textsOf(declared)); !parsed.Matches(have) {
		return refused(at, "change one of the two", "selects %s, and the pods have %s", flaw.Shown(parsed.String()), flaw.Shown(have.String()))
	}
	return nil
}

// readyBeforeDeadline wants a deadline that a pod can meet. Left out, a pod need not stay
// ready.
func readyBeforeDeadline(at flaw.Path, value any) []flaw.Flaw {
	spec, _ := value.(map[string]any)
	deadline, limited := spec["progressDeadlineSeconds"].(int64)
	ready, _ := spec["minReadySeconds"].(int64)
	if limited && deadline >= 0 && deadline <= ready {
		return refused(at.Child("progressDeadlineSeconds"), "", "%d: must be greater than minReadySeconds, which is %d", deadline, ready)
	}
	return nil
}

// podsRestart wants a restart policy that the kind of workload can have, where its pods
// have one. Left out it is Always.
func podsRestart(policies ...string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		spec, _ := value.(map[string]any)
		policy, judged := fixed(flaw.Path("template.spec.restartPolicy").In(spec))
		if !judged || slices.Contains(policies, policy) || !slices.Contains([]string{"Always", "OnFailure", "Never"}, policy) {
			return nil
		}
		hint := "write " + policies[0]
		if len(policies) > 1 {
			hint += " or " + policies[1]
		}
		return refused(at.Child(templateKey).Child(specKey).Child("restartPolicy"), hint, "%s is not for pods of this kind", policy)
	}
}

// noRollingUpdateWith refuses the settings of a rolling update beside another strategy.
func noRollingUpdateWith(other string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		strategy, _ := value.(map[string]any)
		if strategy["type"] == other && strategy["rollingUpdate"] != nil {
			return refused(at.Child("rollingUpdate"), flaw.RemoveIt, "type is %s", other)
		}
		return nil
	}
}

// movesSomething wants a rolling update that may add or remove a pod.
func movesSomething(at flaw.Path, value any) []flaw.Flaw {
	update, _ := value.(map[string]any)
	none := func(amount any) bool { return amount == int64(0) || amount == "0%" }
	if none(update["maxSurge"]) && none(update["maxUnavailable"]) {
		return refused(at.Child("maxUnavailable"), "let one of them be at least 1", "is 0, and maxSurge too: no pod could ever be replaced")
	}
	return nil
}

// distinct wants another value of a field in every entry of a list that has one.
func distinct(key string) valueRule {
	return func(at flaw.Path, value any) []flaw.Flaw {
		items, _ := value.([]any)
		return duplicates(map[string]flaw.Path{}, at, key, items)
	}
}

// uniqueContainers: a container's name is that of no other one of the pod.
func uniqueContainers(at flaw.Path, value any) []flaw.Flaw {
	spec, _ := value.(map[string]any)
	seen := map[string]flaw.Path{}
	var flaws []flaw.Flaw
	for _, list := range []string{"initContainers", "containers"} {
		items, _ := spec[list].([]any)
		flaws = append(flaws, duplicates(seen, at.Child(list), nameKey, items)...)
	}
	return flaws
}

// duplicates finds values that stand twice, and notes those seen by where they stand.
func duplicates(seen map[string]flaw.Path, at flaw.Path, key string, items []any) []flaw.Flaw {
	var flaws []flaw.Flaw
	for i, item := range items {
		entry, _ := item.(map[string]any)
		text, judged := fixed(entry[key])
		if !judged {
			continue
		}
		here := at.Index(i)
		if first, twice := seen[text]; twice {
			flaws = append(flaws, refused(here.Child(key), "", "%q stands in %s already", flaw.Shown(text), entryOf(first))...)
			continue
		}
		seen[text] = here
	}
	return flaws
}

// entryOf is the end of a path: the list and the index in it.
func entryOf(p flaw.Path) string {
	return fmt.Sprintf("%s[%d]", p.Parent().Last(), p.Position())
}

// oneSource: a volume has one source.
func oneSource(at flaw.Path, value any) []flaw.Flaw {
	return atMostOne(at, value, func(key string) bool { return key != nameKey })
}

// oneAction: a probe does one thing.
func oneAction(at flaw.Path, value any) []flaw.Flaw {
	return atMostOne(at, value, func(key string) bool {
		return slices.Contains([]string{"exec", "grpc", "httpGet", "tcpSocket"}, key)
	})
}

func atMostOne(at flaw.Path, value any, counts func(key string) bool) []flaw.Flaw {
	object, _ := value.(map[string]any)
	first := ""
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch {
		case !counts(key) || object[key] == nil:
		case first == "":
			first = key
		default:
			return refused(at.Child(key), "keep one of the two", "%s stands there already", first)
		}
	}
	return nil
}

// oneOrigin: a variable of a container has a value or is taken from somewhere.
func oneOrigin(at flaw.Path, value any) []flaw.Flaw {
	object, _ := value.(map[string]any)
	if text, isString := object["value"].(string); isString && text != "" && object["valueFrom"] != nil {
		return refused(at.Child("valueFrom"), "keep one of the two", "there is a value already")
	}
	return nil
}

// amounts are quantities of resources.
func amounts(at flaw.Path, value any) []flaw.Flaw {
	entries, _ := value.(map[string]any)
	var flaws []flaw.Flaw
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if q, known := quantityOf(entries[name]); known && q.Sign() < 0 {
			flaws = append(flaws, refused(at.Child(name), "", "%s: must not be negative", flaw.Shown(entries[name]))...)
		}
	}
	return flaws
}

// requestsWithinLimits: nobody may request more than the limit.
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

// textsOf are the entries of a map that are texts.
func textsOf(entries map[string]any) map[string]string {
	texts := make(map[string]string, len(entries))
	for key, value := range entries {
		texts[key], _ = value.(string)
	}
	return texts
}
