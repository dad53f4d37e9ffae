package oracle

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// compared are the kinds whose objects a run leaves behind.
var compared = []string{
	registry + "addonflow.io/", registry + "work.open-cluster-management.io/",
	registry + "addon.open-cluster-management.io/", registry + "cluster.open-cluster-management.io/",
	bindingKeys,
}

// EndState is what a hub has, without orders and approvals, which a fault may make necessary again, and without what
// differs from run to run: times, UIDs, versions, and the names that the replacer knows. It maps each field of each
// object to its value.
func EndState(objects map[string]Object, names *strings.Replacer) map[string]string {
	state := map[string]string{}
	for key, o := range objects {
		if o.Content == nil || strings.HasPrefix(key, orderKeys) || strings.HasPrefix(key, approvals) || !slices.ContainsFunc(compared, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			continue
		}
		if strings.HasPrefix(key, rolloutKeys) {
			records, err := ledger(o.Content)
			for cluster, r := range records {
				state[key+" record of "+cluster] = fmt.Sprintf("{%s %s %s}", r.revision, r.stage, r.state)
			}
			if err != nil {
				state[key+" ledger"] = err.Error()
			}
		}
		flatten(state, names, key, o.Content)
	}
	return state
}

// passing are fields that only say when, how often or by which request something was written,
// and digests of addresses, which have other ports in each run. The journal tells how it came
// to the state, which faults may change.
var passing = []string{
	"uid", "rolloutUID", "revisionUID", "resourceVersion", "creationTimestamp", "managedFields", "generation", "observedGeneration", "ledger",
	"lastHandledReconcileAt", "reconcile.fluxcd.io/requestedAt", "journal", "acceptedAt", "progressPosts", "addonflow.io/fenced-at",
	"to", "lastAppliedFields", "lastAttemptedSpec", "policy", "addonflow.io/policy",
}

// flatten writes every leaf below a path.
func flatten(state map[string]string, names *strings.Replacer, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			if !slices.Contains(passing, name) {
				flatten(state, names, path+" "+name, below)
			}
		}
	case []any:
		for i, below := range v {
			at := place(i, below, names)
			if !slices.Contains(passingFeedback, at) {
				flatten(state, names, path+" ["+at+"]", below)
			}
		}
	case string:
		state[path] = plain(v, names)
	default:
		written, _ := json.Marshal(v) // it was read from JSON
		state[path] = string(written)
	}
}

// passingFeedback are values of feedback that say how often an object was written on its cluster.
var passingFeedback = []string{"feedback addonflow.generation", "feedback addonflow.observedGeneration"}

// place of an element of a list: what it is named after, if it came in whatever order, else its index.
func place(i int, element any, names *strings.Replacer) string {
	fields, _ := element.(map[string]any)
	_, isCondition := fields["lastTransitionTime"]
	_, isFeedback := fields["fieldValue"]
	switch {
	case text(element, "context") != "": // a commit status
		return names.Replace(text(element, "sha")) + " " + text(element, "context")
	case isCondition:
		return text(element, "type")
	case isFeedback:
		return "feedback " + text(element, "name")
	}
	return fmt.Sprint(i)
}

// times are those of a day, as texts have them.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|(\d{4}-\d\d-\d\d )?\d\d:\d\d UTC`)

// plain is a text without what differs from run to run.
func plain(text string, names *strings.Replacer) string {
	return times.ReplaceAllString(names.Replace(text), "<time>")
}

// Differences between two states, sorted.
func Differences(expected, got map[string]string) []string {
	var all []string
	for path, want := range expected {
		if have, ok := got[path]; !ok {
			all = append(all, fmt.Sprintf("%s: missing, want %q", path, want))
		} else if have != want {
			all = append(all, fmt.Sprintf("%s: %q, want %q", path, have, want))
		}
	}
	for path, have := range got {
		if _, ok := expected[path]; !ok {
			all = append(all, fmt.Sprintf("%s: %q, want nothing", path, have))
		}
	}
	slices.Sort(all)
	return all
}
