package admission

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Name of the policy and of its binding.
const Name = "addonflow-approvals"

//go:embed policy.yaml binding.yaml
var files embed.FS

// Policy is the shipped policy.
func Policy() (*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
	return read[admissionregistrationv1.ValidatingAdmissionPolicy]("policy.yaml")
}

// Binding is the shipped binding.
func Binding() (*admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	return read[admissionregistrationv1.ValidatingAdmissionPolicyBinding]("binding.yaml")
}

func read[T any](name string) (*T, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests/admission: %w", err)
	}
	object := new(T)
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		return nil, fmt.Errorf("cannot read manifests/admission/%s: %w", name, err)
	}
	return object, nil
}

// Read reads the policy and the binding of the hub; nil: it is missing.
func Read(ctx context.Context, hub client.Reader) (
	policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding, err error,
) {
	policy = &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err = hub.Get(ctx, client.ObjectKey{Name: Name}, policy); apierrors.IsNotFound(err) {
		policy, err = nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read ValidatingAdmissionPolicy %s: %w", Name, err)
	}
	binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err = hub.Get(ctx, client.ObjectKey{Name: Name}, binding); apierrors.IsNotFound(err) {
		binding, err = nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read ValidatingAdmissionPolicyBinding %s: %w", Name, err)
	}
	return policy, binding, nil
}

// Selector selects the policy, or the binding, from all of the hub: the operator may read no
// other.
func Selector() fields.Selector { return fields.OneTermEqualSelector("metadata.name", Name) }

// Matches returns an error in words for users if the policy or the binding of the hub is missing
// (nil) or is not the shipped one. Then approvers are not proven. Labels and annotations may
// differ.
func Matches(policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) error {
	wantPolicy, err := Policy()
	if err != nil {
		return err
	}
	wantBinding, err := Binding()
	if err != nil {
		return err
	}
	if policy == nil {
		return missing("ValidatingAdmissionPolicy")
	}
	if binding == nil {
		return missing("ValidatingAdmissionPolicyBinding")
	}
	if err := same("ValidatingAdmissionPolicy", &wantPolicy.Spec, &policy.Spec); err != nil {
		return err
	}
	return same("ValidatingAdmissionPolicyBinding", &wantBinding.Spec, &binding.Spec)
}

// Proven selects the approvals whose author the API server proved: those that are not older than
// the policy and the binding. An approval that was created while one of them was missing may name
// any approver. The error is that of Matches.
func Proven(
	policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding, approvals []v1alpha1.AddOnApproval,
) ([]v1alpha1.AddOnApproval, error) {
	if err := Matches(policy, binding); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(approvals), func(a v1alpha1.AddOnApproval) bool {
		return a.CreationTimestamp.Before(&policy.CreationTimestamp) || a.CreationTimestamp.Before(&binding.CreationTimestamp)
	}), nil
}

const applyAgain = "apply manifests/install, or upgrade the Helm release"

func missing(kind string) error {
	return fmt.Errorf("%s %s is missing, so approvers are not proven; %s", kind, Name, applyAgain)
}

// same compares two specs field by field and names those that differ.
func same(kind string, want, got any) error {
	if equality.Semantic.DeepEqual(want, got) {
		return nil
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("cannot compare %s %s: %w", kind, Name, err)
	}
	found, err := runtime.DefaultUnstructuredConverter.ToUnstructured(got)
	if err != nil {
		return fmt.Errorf("cannot compare %s %s: %w", kind, Name, err)
	}
	differing := map[string]bool{}
	for _, all := range []map[string]any{wanted, found} {
		for field := range all {
			differing[field] = !equality.Semantic.DeepEqual(wanted[field], found[field])
		}
	}
	maps.DeleteFunc(differing, func(_ string, differs bool) bool { return !differs })
	return fmt.Errorf("%s %s differs from the one of this operator in %s, so approvers are not proven; %s",
		kind, Name, strings.Join(slices.Sorted(maps.Keys(differing)), ", "), applyAgain)
}
