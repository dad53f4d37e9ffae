package render

import (
	"slices"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"
)

// valuePrefix begins the name of every feedback value of AddonFlow. If a name occurs twice, the hub rejects the whole
// status of the agent.
const valuePrefix = "addonflow."

// Feedback values. The rules of a workload decide which of them Observe expects.
const (
	valueDigest             = valuePrefix + "digest"
	valueGeneration         = valuePrefix + "generation"
	valueObservedGeneration = valuePrefix + "observedGeneration"
	valueDesired            = valuePrefix + "desired"
	valueTotal              = valuePrefix + "total"
	valueUpdated            = valuePrefix + "updated"
	valueReady              = valuePrefix + "ready"
	valueAvailable          = valuePrefix + "available"
	valueCurrentRevision    = valuePrefix + "currentRevision"
	valueUpdateRevision     = valuePrefix + "updateRevision"
	valueReason             = valuePrefix + "reason"
	valueMessage            = valuePrefix + "message"
	valueSince              = valuePrefix + "since"
	valueComplete           = valuePrefix + "complete"
	valueFailed             = valuePrefix + "failed"
	valuePhase              = valuePrefix + "phase"
)

// feedback is AddonFlow's feedback rules for one workload.
type feedback struct {
	kind workloadType
	// digest: the workload carries the digest and must echo it.
	digest bool
	// updated: no setting keeps old pods, so every pod must be updated.
	updated bool
}

// reservedValue reports whether a name of a feedback value is reserved for AddonFlow.
func reservedValue(name string) bool {
	return strings.HasPrefix(name, valuePrefix)
}

func rulesFor(m *manifest, effective workv1.ManifestConfigOption) feedback {
	return feedback{kind: m.kind, digest: delivered(m.kind, effective), updated: !heldBack(m.fields)}
}

// delivered reports whether an update of the manifest, with its digest, reaches the managed cluster. It does not with
// a strategy that only creates, only reads, or ignores annotations. After a condition rule reports the object as
// complete, the agent stops updating it. An update does not reach a Job without server-side apply: the agent replaces
// the whole Job, and an API server refuses that, even if only an annotation differs.
func delivered(kind workloadType, effective workv1.ManifestConfigOption) bool {
	if s := effective.UpdateStrategy; kind.name == jobKind && (s == nil || s.Type != workv1.UpdateStrategyTypeServerSideApply) {
		return false
	}
	if s := effective.UpdateStrategy; s != nil &&
		(s.Type == workv1.UpdateStrategyTypeCreateOnly || s.Type == workv1.UpdateStrategyTypeReadOnly) {
		return false
	}
	if s := effective.UpdateStrategy; s != nil && s.ServerSideApply != nil && ignoresMark(s.ServerSideApply.IgnoreFields) {
		return false
	}
	return !slices.ContainsFunc(effective.ConditionRules, func(r workv1.ConditionRule) bool {
		return r.Condition == workv1.ManifestComplete
	})
}

// heldBack reports whether the workload's own strategy keeps old pods: OnDelete,
// or a StatefulSet's partition.
func heldBack(fields map[string]any) bool {
	spec, _ := fields["spec"].(map[string]any)
	strategy, _ := spec["updateStrategy"].(map[string]any)
	if strategy["type"] == "OnDelete" {
		return true
	}
	rolling, _ := strategy["rollingUpdate"].(map[string]any)
	partition, _ := rolling["partition"].(int64)
	return partition > 0
}

// paths are the JSON paths of the rules. The annotation's dot must be escaped, because a spelling with brackets
// returns nothing.
func (f feedback) paths() []workv1.JsonPath {
	var out []workv1.JsonPath
	add := func(name, path string) { out = append(out, workv1.JsonPath{Name: name, Path: path}) }
	if f.digest {
		add(valueDigest, `.metadata.annotations.addonflow\.io/digest`)
	}
	if f.kind.name != podKind { // older API servers report no generation of pods
		add(valueGeneration, ".metadata.generation")
	}
	if f.kind.name == "" {
		// If the object is not a workload, usually only a controller reports the generation.
		add(valueObservedGeneration, ".status.observedGeneration")
	}
	replicas := [][2]string{
		{valueObservedGeneration, ".status.observedGeneration"},
		{valueDesired, ".spec.replicas"},
		{valueTotal, ".status.replicas"},
		{valueReady, ".status.readyReplicas"},
		{valueAvailable, ".status.availableReplicas"},
	}
	status := map[string][][2]string{
		deploymentKind: {
			{valueObservedGeneration, ".status.observedGeneration"},
			{valueDesired, ".spec.replicas"},
			{valueTotal, ".status.replicas"},
			{valueUpdated, ".status.updatedReplicas"},
			{valueReady, ".status.readyReplicas"},
			{valueAvailable, ".status.availableReplicas"},
			{valueReason, `.status.conditions[?(@.type=="Progressing")].reason`},
			{valueMessage, `.status.conditions[?(@.type=="Progressing")].message`},
			{valueSince, `.status.conditions[?(@.type=="Progressing")].lastUpdateTime`},
		},
		daemonSetKind: {
			{valueObservedGeneration, ".status.observedGeneration"},
			{valueDesired, ".status.desiredNumberScheduled"},
			{valueUpdated, ".status.updatedNumberScheduled"},
			{valueReady, ".status.numberReady"},
			{valueAvailable, ".status.numberAvailable"},
		},
		statefulSetKind: {
			{valueObservedGeneration, ".status.observedGeneration"},
			{valueDesired, ".spec.replicas"},
			{valueTotal, ".status.replicas"},
			{valueUpdated, ".status.updatedReplicas"},
			{valueReady, ".status.readyReplicas"},
			{valueAvailable, ".status.availableReplicas"},
			{valueCurrentRevision, ".status.currentRevision"},
			{valueUpdateRevision, ".status.updateRevision"},
		},
		replicaSetKind:            replicas,
		replicationControllerKind: replicas,
		podKind: {
			{valueReady, `.status.conditions[?(@.type=="Ready")].status`},
			{valuePhase, ".status.phase"},
			{valueReason, ".status.reason"},
			{valueMessage, ".status.message"},
		},
		jobKind: {
			{valueComplete, `.status.conditions[?(@.type=="Complete")].status`},
			{valueFailed, `.status.conditions[?(@.type=="Failed")].status`},
			{valueReason, `.status.conditions[?(@.type=="Failed")].reason`},
			{valueMessage, `.status.conditions[?(@.type=="Failed")].message`},
		},
	}
	for _, value := range status[f.kind.name] {
		if f.updated || !slices.Contains([]string{valueUpdated, valueCurrentRevision, valueUpdateRevision}, value[0]) {
			add(value[0], value[1])
		}
	}
	return out
}

// union returns AddonFlow's rules and the rules that the agent would use without AddonFlow, because the agent uses
// only the first entry with rules. Without AddonFlow, the rules would be OCM's well-known status, for the kinds
// that OCM probes, and the template's own rules. Each name occurs once.
func (f feedback) union(effective workv1.ManifestConfigOption) []workv1.FeedbackRule {
	out := []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: f.paths()}}
	var paths []workv1.JsonPath
	asked := false
	for _, rule := range effective.FeedbackRules {
		asked = asked || rule.Type == workv1.WellKnownStatusType
		for _, path := range rule.JsonPaths {
			if !slices.ContainsFunc(paths, func(p workv1.JsonPath) bool { return p.Name == path.Name }) {
				paths = append(paths, path)
			}
		}
	}
	known := f.wellKnown()
	clash := func(p workv1.JsonPath) bool { return slices.Contains(known, p.Name) }
	switch {
	case asked:
		paths = slices.DeleteFunc(paths, clash)
	case !f.kind.ocm || slices.ContainsFunc(paths, clash):
		known = nil // the template's value of that name takes precedence
	}
	if asked || len(known) > 0 {
		out = append(out, workv1.FeedbackRule{Type: workv1.WellKnownStatusType})
	}
	if len(paths) > 0 {
		out = append(out, workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: paths})
	}
	return out
}

// wellKnown are the names of the agent's WellKnownStatus values for the kind.
func (f feedback) wellKnown() []string {
	return map[string][]string{
		deploymentKind: {"ReadyReplicas", "Replicas", "AvailableReplicas"},
		daemonSetKind:  {"NumberReady", "DesiredNumberScheduled", "NumberAvailable"},
		jobKind:        {"JobComplete", "JobSucceeded"},
		podKind:        {"PodReady", "PodPhase"},
	}[f.kind.name]
}
