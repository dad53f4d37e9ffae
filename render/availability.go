package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Availability is the Available condition of a ManagedClusterAddOn, and whether the add-on is degraded. If Status is
// "", AddonFlow does not write Available: with Lease the klusterlet writes it, with None the user.
type Availability struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	// Degraded says what is missing while the add-on is available; "": nothing.
	Degraded string
}

// NotApplied is the availability of an add-on before its works are first applied.
func (p Prober) NotApplied() Availability {
	if !p.tellsAvailable() {
		return Availability{}
	}
	return Availability{
		Status: metav1.ConditionUnknown, Reason: addonv1alpha1.AddonAvailableReasonWorkNotApply,
		Message: "Addon manifestWork is not applied yet",
	}
}

// Available returns the result that OCM's prober of the same type would return, in its words. A Deployment is
// available with one ready replica or if it wants none, a DaemonSet with all replicas ready. Available requires
// less than Observe, which requires that the content of the works runs.
//
// StatefulSets count like Deployments; a failed Job is unavailable. Unlike OCM, Available ignores feedback that is
// partial or about an older version of the works.
func (p Prober) Available(r Report) Availability {
	if !p.tellsAvailable() {
		return Availability{}
	}
	parts := deployParts(r.Works, r.AddOn)
	if len(parts) == 0 {
		return Availability{
			Status: metav1.ConditionUnknown, Reason: addonv1alpha1.AddonAvailableReasonWorkNotFound,
			Message: "Addon manifestWork is not found",
		}
	}
	for _, work := range parts {
		switch c := currentCondition(work, workv1.WorkAvailable); {
		case c == nil:
			return p.NotApplied()
		case c.Status == metav1.ConditionFalse:
			return Availability{
				Status: metav1.ConditionFalse, Reason: addonv1alpha1.AddonAvailableReasonWorkNotApply, Message: words(c.Message),
			}
		}
	}
	if p.Type() == v1alpha1.ProberWork {
		return Availability{
			Status: metav1.ConditionTrue, Reason: addonv1alpha1.AddonAvailableReasonWorkApply, Message: "Addon manifestWork is applied",
		}
	}
	return p.probed(r.AddOn, parts)
}

func (p Prober) tellsAvailable() bool {
	return p.Type() != v1alpha1.ProberLease && p.Type() != v1alpha1.ProberNone
}

// probe is the result of the feedback about one object.
type probe struct {
	result                bool // there is a result
	unavailable, degraded string
}

// probed joins the probes of all objects.
func (p Prober) probed(addOn string, parts []*workv1.ManifestWork) Availability {
	all := probe{result: p.unmatched(parts).verified}
	for _, work := range parts {
		for i := range work.Spec.ManifestConfigs {
			if a, ok := askedOf(&work.Spec.ManifestConfigs[i]); ok && p.probes(a) {
				all.add(a.probe(work))
			}
		}
		if work.Annotations[v1alpha1.DigestAnnotation] == "" {
			p.probeTakenOver(work, &all)
		}
		p.probeChecks(work, &all)
	}
	switch {
	case !all.result:
		return Availability{
			Status: metav1.ConditionUnknown, Reason: addonv1alpha1.AddonAvailableReasonNoProbeResult,
			Message: "Probe results are not returned",
		}
	case all.unavailable != "":
		return Availability{
			Status: metav1.ConditionFalse, Reason: addonv1alpha1.AddonAvailableReasonProbeUnavailable,
			Message: "Probe addon unavailable with err " + all.unavailable,
		}
	}
	return Availability{
		Status: metav1.ConditionTrue, Reason: addonv1alpha1.AddonAvailableReasonProbeAvailable,
		Message: addOn + " add-on is available.", Degraded: all.degraded,
	}
}

func (all *probe) add(one probe) {
	all.result = all.result && one.result
	all.unavailable = cmp.Or(all.unavailable, one.unavailable)
	all.degraded = cmp.Or(all.degraded, one.degraded)
}

// probeChecks adds the results of the expressions for one work's objects.
func (p Prober) probeChecks(work *workv1.ManifestWork, all *probe) {
	for i := range work.Status.ResourceStatus.Manifests {
		for c := range p.checks {
			m := &work.Status.ResourceStatus.Manifests[i]
			if !p.checks[c].matchesReported(m.ResourceMeta) {
				continue
			}
			j := p.checks[c].judge(work, m)
			one := probe{result: j.known, unavailable: j.unwell()}
			if j.degraded {
				one.degraded = j.reason
			}
			all.add(one)
		}
	}
}

// wellKnown are the names of OCM's well-known status for the values that a probe reads.
var wellKnown = map[string]map[string]string{
	deploymentsResource: {"Replicas": valueDesired, "ReadyReplicas": valueReady},
	daemonSetsResource:  {"DesiredNumberScheduled": valueDesired, "NumberReady": valueReady},
}

// probeTakenOver adds the feedback about the workloads of a work that OCM wrote, by OCM's feedback rules, because
// AddonFlow's rules are written only with the next content. Like OCM, it does not probe a Deployment that declares
// no replicas, because Kubernetes omits counts of 0 from its status.
func (p Prober) probeTakenOver(work *workv1.ManifestWork, all *probe) {
	for i := range work.Spec.Workload.Manifests {
		raw := work.Spec.Workload.Manifests[i].Raw
		id, ok := identityIn(raw)
		if !ok {
			continue
		}
		a := ask{id: id.resource(), names: []string{valueReady}}
		rules := effectOn(a.id, work.Spec.ManifestConfigs).FeedbackRules
		if wellKnown[a.id.Resource] == nil || !p.probes(a) || a.id.Resource == deploymentsResource && wantsNoPod(raw) ||
			!slices.ContainsFunc(rules, func(r workv1.FeedbackRule) bool { return r.Type == workv1.WellKnownStatusType }) {
			continue
		}
		var said values
		reported, _ := valuesOf(work, a.id)
		for _, v := range reported {
			if name := wellKnown[a.id.Resource][v.Name]; name != "" {
				said = append(said, workv1.FeedbackValue{Name: name, Value: v.Value})
			}
		}
		all.add(a.probePods(said, ""))
	}
}

// wantsNoPod reports whether a manifest declares 0 replicas.
func wantsNoPod(raw []byte) bool {
	var declared struct {
		Spec struct {
			Replicas *int64 `json:"replicas"`
		} `json:"spec"`
	}
	return json.Unmarshal(raw, &declared) == nil && declared.Spec.Replicas != nil && *declared.Spec.Replicas == 0
}

// probe reads one workload's feedback as OCM's health checker does. It ignores feedback about
// other content, and feedback from before the controller observed the workload.
func (a ask) probe(work *workv1.ManifestWork) probe {
	v, ok := valuesOf(work, a.id)
	if ok {
		_, ok = a.echoed(v, work)
	}
	if ok {
		_, ok = a.observed(v)
	}
	if !ok {
		return probe{}
	}
	gaveUp := a.gaveUp(v)
	if gaveUp != "" && !a.disregarded(v, work.Annotations[DisregardAnnotation]) {
		gaveUp = a.name() + ": " + gaveUp
	} else {
		gaveUp = ""
	}
	switch a.id.Resource {
	case deploymentsResource, statefulSetsResource, daemonSetsResource:
		return a.probePods(v, gaveUp)
	case jobsResource:
		return probe{result: true, unavailable: gaveUp}
	default:
		return probe{result: true}
	}
}

// probePods compares counts as OCM does; gaveUp is the workload's own message about its
// failure.
func (a ask) probePods(v values, gaveUp string) probe {
	desired, known := v.number(valueDesired)
	if !known {
		return probe{}
	}
	ready, _ := v.number(valueReady)
	if desired > 0 && (ready == 0 || a.id.Resource == daemonSetsResource && ready != desired) {
		total, _ := v.number(valueTotal)
		return probe{result: true, unavailable: fmt.Sprintf("desiredNumberReplicas is %d but readyReplica is %d for %s %s/%s",
			max(total, desired), ready, a.id.Resource, a.id.Namespace, a.id.Name)}
	}
	return probe{result: true, degraded: cmp.Or(gaveUp, a.unready(v, desired))}
}

// unready says how many replicas are ready or available if they are too few.
func (a ask) unready(v values, desired int64) string {
	for _, c := range []struct{ name, words string }{{valueReady, "ready"}, {valueAvailable, "available"}} {
		if count, _ := v.number(c.name); a.asks(c.name) && count < desired {
			return fmt.Sprintf("%s: %d of %d replicas %s", a.name(), count, desired, c.words)
		}
	}
	return ""
}
