package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// maxWords is the most characters of a managed cluster's text in a reason.
const maxWords = 200

// maxFailures is the most failures that a work records.
const maxFailures = 20

// ask is AddonFlow's feedback rules for one workload.
type ask struct {
	id    workv1.ResourceIdentifier
	names []string
}

// askedOf returns AddonFlow's rules in an entry of manifestConfigs, if it has any.
func askedOf(option *workv1.ManifestConfigOption) (ask, bool) {
	for _, rule := range option.FeedbackRules {
		if len(rule.JsonPaths) == 0 || !reservedValue(rule.JsonPaths[0].Name) {
			continue
		}
		a := ask{id: option.ResourceIdentifier}
		for _, path := range rule.JsonPaths {
			a.names = append(a.names, path.Name)
		}
		return a, true
	}
	return ask{}, false
}

func (a ask) asks(name string) bool {
	return slices.Contains(a.names, name)
}

// askHealth reads the values that the agent returned for the workload.
func (p Prober) askHealth(a ask, work *workv1.ManifestWork) health {
	v, ok := valuesOf(work, a.id)
	if !ok {
		return a.waiting("has not been reported")
	}
	if h, ok := a.echoed(v, work); !ok {
		return h
	}
	h := health{current: true, verified: true}
	if !p.hears(a) {
		return h
	}
	if h, ok := a.observed(v); !ok {
		return h
	}
	// Without the digest, the failure may be about other content. A Job is an exception, because it is never changed.
	if words := a.gaveUp(v); words != "" && !a.disregarded(v, work.Annotations[DisregardAnnotation]) {
		return health{current: true, failed: a.asks(valueDigest) || a.kind().name == jobKind, reason: a.name() + ": " + words}
	}
	if !p.probes(a) {
		return h
	}
	if missing := a.missing(v); missing != "" {
		h.verified, h.reason = false, a.name()+": "+missing
	}
	return h
}

// echoed reports whether the live object has the present content of the work: the feedback has the digest of
// the work. It is always true if the rules do not include the digest.
func (a ask) echoed(v values, work *workv1.ManifestWork) (health, bool) {
	if !a.asks(valueDigest) {
		return health{}, true
	}
	switch v.echo(work) {
	case work.Annotations[v1alpha1.DigestAnnotation]:
		return health{}, true
	case "":
		return a.waiting("has not been reported with its content"), false
	default:
		return a.waiting("has not got the new content"), false
	}
}

func (a ask) name() string {
	return cmp.Or(a.kind().name, a.id.Resource) + " " + a.id.Name
}

// kind returns the workload type of the object; zero: the kind runs no pods.
func (a ask) kind() workloadType {
	i := slices.IndexFunc(workloadKinds, func(k workloadType) bool { return k.group == a.id.Group && k.resource == a.id.Resource })
	if i < 0 {
		return workloadType{}
	}
	return workloadKinds[i]
}

// workload reports whether the object creates pods, or objects that create pods. Every API server reports the
// generation of such objects; only newer ones report that of a pod.
func (a ask) workload() bool {
	name := a.kind().name
	return name != "" && name != podKind
}

func (a ask) waiting(reason string) health {
	return health{reason: a.name() + " " + reason}
}

// observed reports whether the workload's controller has observed the current generation. An earlier status is about
// an older generation.
func (a ask) observed(v values) (health, bool) {
	generation, known := v.number(valueGeneration)
	if !known && !a.workload() {
		return health{}, true // many kinds report no generation
	}
	if !known {
		return a.waiting("has not been reported"), false
	}
	if a.asks(valueObservedGeneration) {
		observed, reported := v.number(valueObservedGeneration)
		if observed < generation && (reported || a.workload()) {
			return a.waiting("has not been seen by its controller"), false
		}
	}
	return health{}, true
}

// gaveUp returns the workload's own message about its failure; "": it has not failed.
func (a ask) gaveUp(v values) string {
	failed := false
	switch a.kind().name {
	case deploymentKind:
		failed = v.text(valueReason) == "ProgressDeadlineExceeded"
	case jobKind:
		failed = v.text(valueFailed) == "True"
	case podKind:
		failed = v.text(valuePhase) == podFailed
	}
	if !failed {
		return ""
	}
	return words(strings.TrimSuffix(cmp.Or(v.text(valueReason), podFailed)+": "+v.text(valueMessage), ": "))
}

// failure is the text that identifies a failure of a Deployment in an annotation.
func (a ask) failure(v values) string {
	since := v.text(valueSince)
	if since == "" || a.gaveUp(v) == "" || len(since) > len(metav1.RFC3339Micro) || strings.ContainsAny(since, ",=") {
		return ""
	}
	return a.id.Namespace + "/" + a.id.Name + "=" + since
}

// disregarded reports whether the failure is older than the current content.
func (a ask) disregarded(v values, known string) bool {
	failure := a.failure(v)
	return failure != "" && slices.Contains(strings.Split(known, ","), failure)
}

// reportedFailures returns the failures that Deployments of the works report.
func reportedFailures(parts []workPart) string {
	var out []string
	for _, part := range parts {
		if part.existing == nil {
			continue
		}
		for i := range part.existing.Spec.ManifestConfigs {
			a, ok := askedOf(&part.existing.Spec.ManifestConfigs[i])
			if !ok {
				continue
			}
			v, _ := valuesOf(part.existing, a.id)
			if failure := a.failure(v); failure != "" && len(out) < maxFailures {
				out = append(out, failure)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// missing says which part of the workload does not run yet; "": all parts run. An omitted count is 0, except the
// number of wanted replicas.
func (a ask) missing(v values) string {
	switch a.kind().name {
	case "":
		return "" // it was echoed; its own rules and the prober CEL decide the rest
	case cronJobKind:
		return "" // such an object only has to exist
	case jobKind:
		if v.text(valueComplete) != "True" {
			return "not complete"
		}
		return ""
	case podKind:
		if v.text(valueReady) != "True" && v.text(valuePhase) != "Succeeded" {
			return "not ready"
		}
		return ""
	}
	desired, known := v.number(valueDesired)
	if !known {
		return "replicas have not been reported"
	}
	for _, c := range []struct{ name, words string }{
		{valueUpdated, "updated"}, {valueTotal, "there"}, {valueReady, "ready"}, {valueAvailable, "available"},
	} {
		if count, _ := v.number(c.name); a.asks(c.name) && count != desired {
			return fmt.Sprintf("%d of %d replicas %s", count, desired, c.words)
		}
	}
	if a.asks(valueUpdateRevision) && v.text(valueCurrentRevision) != v.text(valueUpdateRevision) {
		return "its revisions differ"
	}
	return ""
}

// values are the feedback values that the agent returned for one workload.
type values []workv1.FeedbackValue

func valuesOf(work *workv1.ManifestWork, id workv1.ResourceIdentifier) (values, bool) {
	for i := range work.Status.ResourceStatus.Manifests {
		m := &work.Status.ResourceStatus.Manifests[i]
		r := m.ResourceMeta
		if r.Group == id.Group && r.Resource == id.Resource && r.Namespace == id.Namespace && r.Name == id.Name {
			return m.StatusFeedbacks.Values, true
		}
	}
	return nil, false
}

func (v values) find(name string) workv1.FieldValue {
	for i := range v {
		if v[i].Name == name {
			return v[i].Value
		}
	}
	return workv1.FieldValue{}
}

// text returns a value that is a string; "": any other value.
func (v values) text(name string) string {
	value := v.find(name)
	if value.Type != workv1.String || value.String == nil {
		return ""
	}
	return *value.String
}

// echo returns the digest that a workload of the work reports; "": none.
func (v values) echo(work *workv1.ManifestWork) string {
	if text := v.text(valueDigest); text != ownDigest {
		return text
	}
	return work.Annotations[v1alpha1.DigestAnnotation]
}

// number returns a value that is an integer; ok is false for any other value.
func (v values) number(name string) (n int64, ok bool) {
	value := v.find(name)
	if value.Type != workv1.Integer || value.Integer == nil {
		return 0, false
	}
	return *value.Integer, true
}

// words makes text that a managed cluster wrote safe to show: one line, no control or invisible
// characters, bounded.
func words(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text[:min(len(text), 8*maxWords)])
	clean = strings.Join(strings.Fields(clean), " ")
	if runes := []rune(clean); len(runes) > maxWords {
		return strings.TrimRight(string(runes[:maxWords-1]), " ") + "…"
	}
	return clean
}
