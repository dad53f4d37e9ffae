package render

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// helmHookAnnotation marks one of Helm's hooks, which OCM does not support.
const helmHookAnnotation = "helm.sh/hook"

// PreDeleteWorkName returns the name of the work that runs the pre-delete hooks on
// the managed cluster.
func PreDeleteWorkName(addOn string) string {
	return fmt.Sprintf("addon-%s-pre-delete", addOn)
}

// HostingPreDeleteWorkName is PreDeleteWorkName on the hosting cluster, for the
// ManagedClusterAddOn of a namespace.
func HostingPreDeleteWorkName(addOn, namespace string) string {
	return fmt.Sprintf("addon-%s-pre-delete-hosting-%s", addOn, namespace)
}

// IsPreDeleteWork reports whether a work runs pre-delete hooks of the add-on, on the managed or the hosting cluster.
func IsPreDeleteWork(work *workv1.ManifestWork, addOn string) bool {
	if work.Labels[addonv1alpha1.AddonLabelKey] != addOn {
		return false
	}
	return work.Name == PreDeleteWorkName(addOn) || work.Name == HostingPreDeleteWorkName(addOn, AddOnNamespace(work))
}

// isPreDeleteHook reports whether OCM delivers the object only when the add-on is removed: a Job or Pod with the
// annotation, or with one of the two older labels.
func isPreDeleteHook(obj map[string]any) bool {
	if !slices.Contains([]any{jobKind, podKind}, obj["kind"]) {
		return false
	}
	metadata, _ := obj[metadataKey].(map[string]any)
	labels, _ := metadata[labelsKey].(map[string]any)
	_, label := labels[addonv1alpha1.AddonPreDeleteHookAnnotationKey]
	_, legacy := labels[addonv1alpha1.AddonPreDeleteHookLabelKey]
	return label || legacy || annotated(metadata, addonv1alpha1.AddonPreDeleteHookAnnotationKey)
}

// hookAsk returns the feedback rules of a hook: OCM's well-known status, which reports completion, and AddonFlow's
// rules, which report the content and why it failed.
func hookAsk(id Identity) *workv1.ManifestConfigOption {
	paths := []workv1.JsonPath{{Name: valueDigest, Path: `.metadata.annotations.addonflow\.io/digest`}}
	if id.Kind == jobKind {
		paths = append(paths,
			workv1.JsonPath{Name: valueFailed, Path: `.status.conditions[?(@.type=="Failed")].status`},
			workv1.JsonPath{Name: valueReason, Path: `.status.conditions[?(@.type=="Failed")].reason`},
			workv1.JsonPath{Name: valueMessage, Path: `.status.conditions[?(@.type=="Failed")].message`})
	} else {
		paths = append(paths,
			workv1.JsonPath{Name: valueReason, Path: ".status.reason"},
			workv1.JsonPath{Name: valueMessage, Path: ".status.message"})
	}
	return &workv1.ManifestConfigOption{
		ResourceIdentifier: id.resource(),
		FeedbackRules: []workv1.FeedbackRule{
			{Type: workv1.JSONPathsType, JsonPaths: paths},
			{Type: workv1.WellKnownStatusType},
		},
	}
}

// Hooks says on which of the two clusters pre-delete hooks must run before the add-on is
// removed.
type Hooks struct {
	Managed, Hosting bool
}

// Any reports whether there is a hook at all.
func (h Hooks) Any() bool { return h.Managed || h.Hosting }

// Hooks returns which hooks the cluster has. A Rendered without content has none.
func (r Rendered) Hooks() Hooks {
	if r.rendering == nil {
		return Hooks{}
	}
	b := r.bins()
	return Hooks{Managed: len(b.hooks) > 0, Hosting: len(b.hostingHooks) > 0}
}

// HookWorks returns the works that run the cluster's pre-delete hooks, the work of the managed cluster first; without
// hooks, none. Write them after the deletion of the ManagedClusterAddOn has begun. When ObserveHook reports all of
// them as completed, delete them and the deploy works. They have no owner, because a foreground deletion would delete
// dependents before any hook could run.
//
// The error is an *InvalidError if the hooks exceed the size of one work.
func (r Rendered) HookWorks(owner Owner) ([]*workv1.ManifestWork, error) {
	if r.rendering == nil {
		return nil, ErrNoClusterName
	}
	b, raw := r.bins(), r.deliver()
	var works []*workv1.ManifestWork
	var found findings
	for _, s := range []struct {
		name, namespace string
		objects         []int
	}{
		{PreDeleteWorkName(owner.Name), owner.Namespace, b.hooks},
		{HostingPreDeleteWorkName(owner.Name, owner.Namespace), r.Hosting, b.hostingHooks},
	} {
		if len(s.objects) == 0 {
			continue
		}
		work := r.hookWork(owner, s.objects, raw)
		work.Name, work.Namespace = s.name, s.namespace
		if s.namespace != owner.Namespace {
			work.Labels[addonv1alpha1.AddonNamespaceLabelKey] = owner.Namespace
		}
		size := 0
		for _, i := range s.objects {
			size += (&runtime.RawExtension{Raw: raw[i]}).Size()
		}
		if size > WorkLimit {
			found.add(hooksTooLarge(r.rendering.template, size))
		}
		works = append(works, work)
	}
	return works, found.err(r.rendering.addOn)
}

func hooksTooLarge(template string, size int) Finding {
	return Finding{
		Template: template, Field: manifestsField, Reason: flaw.ReasonManifestTooLarge,
		Message: fmt.Sprintf("the pre-delete hooks have %d bytes together, the hub accepts %d", size, WorkLimit),
		Hint:    "all hooks of a cluster go into one work",
	}
}

// hookWork builds one hook work without its name.
func (r Rendered) hookWork(owner Owner, objects []int, raw [][]byte) *workv1.ManifestWork {
	work := &workv1.ManifestWork{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{
				addonv1alpha1.AddonLabelKey: owner.Name,
				v1alpha1.ManagedByLabel:     v1alpha1.ManagedByValue,
			},
			Annotations: map[string]string{
				v1alpha1.SourceAnnotation:   owner.Source,
				v1alpha1.RevisionAnnotation: owner.Revision,
				v1alpha1.DigestAnnotation:   r.Digest,
			},
		},
	}
	for _, i := range objects {
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw[i]}})
		work.Spec.ManifestConfigs = append(work.Spec.ManifestConfigs, *r.rendering.objects[i].hook)
	}
	work.Spec.Executor = r.rendering.executor
	return work
}

// HookObservation is the state of the pre-delete hooks in a work.
type HookObservation struct {
	// Completed: every hook completed, by OCM's definition.
	Completed bool
	// Failed: a hook failed. It can only complete after a change.
	Failed bool
	// Reason says what is missing, or why a hook failed; "": completed. The managed cluster wrote parts of it; they
	// are cut to a limit, without control characters.
	Reason string
}

// ObserveHook reads a hook work. It is completed if the work is available in its current
// version and every hook of this content was reported as complete (a Job) or succeeded (a Pod).
// Reports about older content of the same name are ignored.
func ObserveHook(work *workv1.ManifestWork) HookObservation {
	if len(work.Spec.ManifestConfigs) == 0 {
		return HookObservation{Reason: "the work asks for no feedback"}
	}
	applied := currentCondition(work, workv1.WorkApplied)
	switch {
	case applied == nil:
		return HookObservation{Reason: "waiting for the agent to apply"}
	case applied.Status != metav1.ConditionTrue:
		return HookObservation{Reason: "not applied: " + notApplied(work, applied)}
	}
	o := HookObservation{Completed: true}
	if available := currentCondition(work, workv1.WorkAvailable); available == nil || available.Status != metav1.ConditionTrue {
		o.Completed, o.Reason = false, "waiting for the agent to report"
	}
	for i := range work.Spec.ManifestConfigs {
		id := work.Spec.ManifestConfigs[i].ResourceIdentifier
		done, failed, reason := hookState(work, id)
		o.Completed = o.Completed && done
		if failed && !o.Failed {
			o.Failed, o.Reason = true, reason
		}
		o.Reason = cmp.Or(o.Reason, reason)
	}
	return o
}

// hookState reads one hook.
func hookState(work *workv1.ManifestWork, id workv1.ResourceIdentifier) (done, failed bool, reason string) {
	v, _ := valuesOf(work, id)
	kind, result, success := podKind, v.text("PodPhase"), "Succeeded"
	gaveUp := result == "Failed"
	if id.Resource == "jobs" {
		kind, result, success = jobKind, v.text("JobComplete"), string(metav1.ConditionTrue)
		gaveUp = v.text(valueFailed) == string(metav1.ConditionTrue)
	}
	name := kind + " " + id.Name
	switch echoed := v.echo(work); {
	case echoed == "":
		return false, false, name + " has not been reported"
	case echoed != work.Annotations[v1alpha1.DigestAnnotation]:
		return false, false, name + " has not got its content"
	case result == success:
		return true, false, ""
	case gaveUp:
		said := words(v.text(valueReason))
		if message := words(v.text(valueMessage)); message != "" {
			said += ": " + message
		}
		return false, true, words(name + " failed: " + cmp.Or(said, "no reason given"))
	}
	return false, false, name + " has not completed"
}
