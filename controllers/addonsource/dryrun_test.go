package addonsource

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestProblemsOfTheHubNameWhatTheUserWrote: the operator builds an AddOnRollout from one or two files, and a problem
// that the hub finds names the right one.
func TestProblemsOfTheHubNameWhatTheUserWrote(t *testing.T) {
	const pace = "rolloutStrategy.progressive.maxConcurrency"
	key := rolloutKey("team", "hello")
	of := func(field string) problem.List {
		return problem.List{{Kind: v1alpha1.AddOnRolloutKind, Name: "hello", Field: field, Message: "refused"}}
	}
	declared := map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate}
	for name, c := range map[string]struct{ rollout, field, want string }{
		"its ClusterManagementAddOn": {"", "spec.install.placements[0]." + pace, "a.yaml:19: ClusterManagementAddOn/hello: spec.installStrategy.placements[0]." + pace + ": refused"},
		"no file of its own":         {"", "spec.target.commit", "a.yaml:1: ClusterManagementAddOn/hello: refused"},
		"both, the former":           {compiledRollout, "spec.install.placements[0]." + pace, "a.yaml:19: ClusterManagementAddOn/hello: spec.installStrategy.placements[0]." + pace + ": refused"},
		"its AddOnRollout":           {compiledRollout, "spec.stages[0].maxConcurrency", "r.yaml:11: AddOnRollout/hello: spec.stages[0].maxConcurrency: refused"},
	} {
		files := map[string]string{"a.yaml": declared["a.yaml"], "t.yaml": declared["t.yaml"]}
		if c.rollout != "" {
			files["r.yaml"] = c.rollout
		}
		objects, unread := built(t, files)
		if len(unread) > 0 {
			t.Fatal(unread)
		}
		got := asWritten(objects, key, of(c.field))
		if diff := cmp.Diff(c.want, got[0].String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRefusals_LeaveOutThatRulesWereNotChecked: the API server adds it, without a field, to
// what it found. It is a cause only if there is no other.
func TestRefusals_LeaveOutThatRulesWereNotChecked(t *testing.T) {
	unchecked := field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
	found := field.Invalid(field.NewPath("spec", "prioritizerPolicy", "mode"), "Both", "should be one of Additive, Exact")
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Placement", "metadata": map[string]any{"name": "all"}}}
	for name, c := range map[string]struct {
		causes field.ErrorList
		want   string
	}{
		"Beside": {field.ErrorList{unchecked, found}, "Placement/all: spec.prioritizerPolicy.mode: "},
		"Alone":  {field.ErrorList{unchecked}, "Placement/all: Invalid value: null: some validation rules"},
	} {
		err := apierrors.NewInvalid(schema.GroupKind{Kind: "Placement"}, "tried", c.causes)
		if got := refusals(err, u, "tried"); len(got) != 1 || !strings.HasPrefix(got[0].String(), c.want) {
			t.Errorf("%s: got %v, want one with %q", name, got, c.want)
		}
	}
}

// TestTransientRefusalEndsWithADeletion: the API server refuses every new object while its
// kind or its Namespace is being deleted. That says nothing about the commit.
func TestTransientRefusalEndsWithADeletion(t *testing.T) {
	rollouts := v1alpha1.GroupVersion.WithResource("addonrollouts").GroupResource()
	namespace := apierrors.NewForbidden(rollouts, "hello", errors.New("unable to create new content in namespace team because it is being terminated"))
	namespace.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for reason, c := range map[string]struct {
		err  error
		want bool
	}{
		"kind":           {apierrors.NewForbidden(rollouts, "hello", errors.New("create not allowed while custom resource definition is terminating")), true},
		"kind, later":    {apierrors.NewMethodNotSupported(rollouts, "create"), true},
		"namespace":      {namespace, true},
		"forbidden":      {apierrors.NewForbidden(rollouts, "hello", errors.New("denied by policy")), false},
		"invalid object": {apierrors.NewBadRequest("no such field"), false},
	} {
		if got := transient(c.err); got != c.want {
			t.Errorf("%s: transient is %t, want %t", reason, got, c.want)
		}
	}
}
