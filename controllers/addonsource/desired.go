package addonsource

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout"
)

// templatesResource is the configuration kind that makes OCM's template manager act on an
// add-on.
const templatesResource = "addontemplates"

// liveForm returns a declared object in the form in which it is applied. It is marked with its source. A
// ClusterManagementAddOn has AddonFlow's finalizer, and the form for the mode.
func liveForm(declared *unstructured.Unstructured, source string, mode Mode) *unstructured.Unstructured {
	u := declared.DeepCopy()
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	mark(u, source)
	if keyOf(u).isAddOn() {
		deadlinesForOCM(u.Object["spec"])
		controllerutil.AddFinalizer(u, v1alpha1.Finalizer)
		if mode == Coexist {
			fence(u)
		}
	}
	return u
}

// deadlinesForOCM writes every progressDeadline in the form that OCM's schemas accept, because a commit may use more
// forms of durations. It is also used for AddOnRollouts, whose strategies have the same field.
func deadlinesForOCM(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, entry := range value {
			if text, isText := entry.(string); isText && key == "progressDeadline" {
				value[key] = rollout.DeadlineForOCM(text)
				continue
			}
			deadlinesForOCM(entry)
		}
	case []any:
		for _, entry := range value {
			deadlinesForOCM(entry)
		}
	}
}

// mark adds AddonFlow's label and the source to an object.
func mark(u *unstructured.Unstructured, source string) {
	u.SetLabels(with(u.GetLabels(), v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue))
	u.SetAnnotations(with(u.GetAnnotations(), v1alpha1.SourceAnnotation, source))
}

// with returns a copy of a map with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}

// fence removes from a ClusterManagementAddOn the fields that cause actions of OCM's addon-manager. The addon-manager
// installs by placements. Its template manager starts for any add-on that lists addontemplates, even with the
// lifecycle annotation.
func fence(u *unstructured.Unstructured) {
	u.SetAnnotations(with(u.GetAnnotations(), v1alpha1.LifecycleAnnotation, v1alpha1.LifecycleValue))
	spec, ok := u.Object["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		u.Object["spec"] = spec
	}
	spec["installStrategy"] = map[string]any{"type": addonv1alpha1.AddonInstallStrategyManual}
	if supported := withoutTemplates(supportedConfigs(u)); len(supported) > 0 {
		spec["supportedConfigs"] = supported
	} else {
		delete(spec, "supportedConfigs")
	}
}

// markFenced writes on a ClusterManagementAddOn the time of the fence, if the object existed without the fence.
// Fields that OCM's addon-manager wrote earlier are repaired; fields that it writes later are a conflict.
func markFenced(desired, live *unstructured.Unstructured, source string, now time.Time) {
	at := ""
	switch {
	case live == nil:
	case claimed(live, source):
		at = live.GetAnnotations()[v1alpha1.FencedAtAnnotation]
	default:
		at = now.UTC().Format(time.RFC3339)
	}
	if at != "" {
		desired.SetAnnotations(with(desired.GetAnnotations(), v1alpha1.FencedAtAnnotation, at))
	}
}

func supportedConfigs(u *unstructured.Unstructured) []any {
	return listAt(u, "spec", "supportedConfigs")
}

// withoutTemplates returns the entries of kinds other than AddOnTemplate.
func withoutTemplates(entries []any) []any {
	var kept []any
	for _, entry := range entries {
		if !isTemplates(entry) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// isTemplates reports whether an entry, with group and resource, is about AddOnTemplates.
func isTemplates(entry any) bool {
	fields, ok := entry.(map[string]any)
	return ok && fields["group"] == addonv1alpha1.GroupName && fields["resource"] == templatesResource
}

func listsTemplates(u *unstructured.Unstructured) bool {
	entries := supportedConfigs(u)
	return len(withoutTemplates(entries)) != len(entries)
}

func rolloutObject(namespace, addOn, source string, spec v1alpha1.AddOnRolloutSpec) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil, err
	}
	deadlinesForOCM(fields)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRolloutKind))
	u.SetNamespace(namespace)
	u.SetName(addOn)
	u.SetLabels(map[string]string{v1alpha1.AddOnLabel: addOn})
	mark(u, source)
	return u, nil
}

// rolloutSpec returns the spec of a declared add-on: its policy, and the target.
func rolloutSpec(addOn load.AddOn, target v1alpha1.Target) v1alpha1.AddOnRolloutSpec {
	spec := addOn.Policy()
	spec.Target, spec.Removal = &target, nil
	return spec
}

// removalOf returns the removal in the spec of an AddOnRollout whose add-on its source no longer declares. The
// removal keeps the first commit without the add-on, because an approval names that commit.
func removalOf(live v1alpha1.AddOnRolloutSpec, in planInput) v1alpha1.Removal {
	commit := in.commitSHA
	if live.Removal != nil {
		commit = live.Removal.Commit
	}
	return v1alpha1.Removal{Commit: commit, Approved: in.approved == approvedByPrune, Deleting: in.deleting}
}

// approval says what approves the removal of an add-on from the fleet.
type approval string

const (
	notApproved     approval = ""
	approvedByPrune approval = "prune"
)

func approvalOf(source *v1alpha1.AddOnSource) approval {
	if source.Spec.Prune {
		return approvedByPrune
	}
	return notApproved
}

// revisionObject returns the AddOnRevision of an add-on's content. The error is render's, for
// content that is too large.
func revisionObject(namespace, source string, addOn revision) (*v1alpha1.AddOnRevision, error) {
	body, err := addOn.Content.Encode()
	if err != nil {
		return nil, err
	}
	labels, annotations := revisionMarks(source, addOn)
	return &v1alpha1.AddOnRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: render.RevisionName(addOn.Name, addOn.Digest), Labels: labels, Annotations: annotations,
		},
		Spec: v1alpha1.AddOnRevisionSpec{AddOn: addOn.Name, Digest: addOn.Digest, Body: body},
	}, nil
}

// revisionMarks are the labels and annotations with which the revision of an add-on's content is created. The digest
// is one of them, so that the metadata alone shows which content succeeded, without the body.
func revisionMarks(source string, addOn revision) (labels, annotations map[string]string) {
	return map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, v1alpha1.AddOnLabel: addOn.Name},
		map[string]string{v1alpha1.SourceAnnotation: source, v1alpha1.RevisionAnnotation: addOn.Digest, v1alpha1.CommitsAnnotation: addOn.commit}
}
