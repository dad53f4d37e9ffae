package render

import (
	"fmt"
	"slices"

	"github.com/addonflow/addonflow/render/flaw"
)

// workloadType describes a kind of workload to the renderer.
type workloadType struct {
	group, name string
	resource    string
	// template is the path of the pod template; nil: the workload is delivered as declared.
	template []string
	// ocm: OCM decorates it, too, so its containers must equal OCM's.
	ocm bool
}

// templateKey is the field of a workload with its pod template.
const templateKey = "template"

// Kinds that OCM decorates and probes, too.
const (
	deploymentKind = "Deployment"
	daemonSetKind  = "DaemonSet"
)

// Kinds that only AddonFlow decorates and probes.
const (
	statefulSetKind = "StatefulSet"
	jobKind         = "Job"
	cronJobKind     = "CronJob"
)

// Kinds that are judged, but delivered as declared. Their controllers do not replace running pods when the pod
// template changes, and hardly any field of a pod may change.
const (
	podKind                   = "Pod"
	replicaSetKind            = "ReplicaSet"
	replicationControllerKind = "ReplicationController"
)

// podFailed is the phase of a pod that ended and is not started again.
const podFailed = "Failed"

// Groups and resources of the kinds that run pods.
const (
	appsGroup            = "apps"
	batchGroup           = "batch"
	deploymentsResource  = "deployments"
	daemonSetsResource   = "daemonsets"
	statefulSetsResource = "statefulsets"
	jobsResource         = "jobs"
	cronJobsResource     = "cronjobs"
	podsResource         = "pods"
	replicaSetsResource  = "replicasets"
	controllersResource  = "replicationcontrollers"
)

// workloadKinds are the kinds that run pods. OCM knows the first two. As in OCM, versions are ignored. The list is
// never changed.
var workloadKinds = []workloadType{
	{group: appsGroup, name: deploymentKind, resource: deploymentsResource, template: []string{specKey, templateKey}, ocm: true},
	{group: appsGroup, name: daemonSetKind, resource: daemonSetsResource, template: []string{specKey, templateKey}, ocm: true},
	{group: appsGroup, name: statefulSetKind, resource: statefulSetsResource, template: []string{specKey, templateKey}},
	{group: batchGroup, name: jobKind, resource: jobsResource, template: []string{specKey, templateKey}},
	{group: batchGroup, name: cronJobKind, resource: cronJobsResource, template: []string{specKey, "jobTemplate", specKey, templateKey}},
	{group: appsGroup, name: replicaSetKind, resource: replicaSetsResource},
	{name: replicationControllerKind, resource: controllersResource},
	{name: podKind, resource: podsResource},
}

func workloadKind(group, name string) (workloadType, bool) {
	i := slices.IndexFunc(workloadKinds, func(k workloadType) bool { return k.group == group && k.name == name })
	if i < 0 {
		return workloadType{}, false
	}
	return workloadKinds[i], true
}

// pod is the pod template of a workload, to be decorated in place.
type pod struct {
	resource, name string
	spec           map[string]any
	containers     []container
}

// container is one container of a pod. keep: OCM does not decorate such a container, so its author relies on its own
// declarations, and they take precedence. In other containers injected values are appended, as OCM does, and take
// precedence.
type container struct {
	fields map[string]any
	keep   bool
}

// podOf returns the pod template of obj, nil if it has none, and the flaws in its shape for which every API server
// would refuse it.
func podOf(obj map[string]any, k workloadType, at flaw.Path) (*pod, []flaw.Flaw) {
	spec := obj
	for _, name := range append(slices.Clone(k.template), specKey) {
		at = at.Child(name)
		next, ok := spec[name].(map[string]any)
		if !ok && spec[name] != nil {
			return nil, []flaw.Flaw{misshapen(at, "is not an object")}
		}
		if !ok {
			return nil, nil // only metadata, as updateStrategy ReadOnly allows
		}
		spec = next
	}
	p := &pod{resource: k.resource, spec: spec}
	var flaws []flaw.Flaw
	for _, list := range []string{"initContainers", "containers"} {
		flaws = append(flaws, listFlaws(spec, at, list)...)
		items, _ := spec[list].([]any)
		for i, item := range items {
			here := at.Child(list).Index(i)
			fields, ok := item.(map[string]any)
			if !ok {
				flaws = append(flaws, misshapen(here, "is not an object"))
				continue
			}
			flaws = append(flaws, listFlaws(fields, here, "env", "volumeMounts")...)
			if _, ok := fields["image"].(string); !ok && fields["image"] != nil {
				flaws = append(flaws, misshapen(here.Child("image"), fmt.Sprintf("is not a string but %v", fields["image"])))
			}
			p.containers = append(p.containers, container{fields: fields, keep: !k.ocm || list == "initContainers"})
		}
	}
	return p, append(flaws, listFlaws(spec, at, "volumes", "tolerations")...)
}

// listFlaws returns flaws for the given fields that are present and not lists.
func listFlaws(fields map[string]any, at flaw.Path, names ...string) []flaw.Flaw {
	var flaws []flaw.Flaw
	for _, name := range names {
		if _, ok := fields[name].([]any); !ok && fields[name] != nil {
			flaws = append(flaws, misshapen(at.Child(name), "is not a list"))
		}
	}
	return flaws
}

// objectsIn returns the objects of a list field and skips other items.
func objectsIn(fields map[string]any, name string) []map[string]any {
	items, _ := fields[name].([]any)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// has reports whether a list field has an object whose key is value.
func has(fields map[string]any, name, key, value string) bool {
	return slices.ContainsFunc(objectsIn(fields, name), func(object map[string]any) bool { return object[key] == value })
}

func appendTo(fields map[string]any, name string, items ...any) {
	if len(items) == 0 {
		return
	}
	existing, _ := fields[name].([]any)
	fields[name] = append(slices.Clip(existing), items...)
}
