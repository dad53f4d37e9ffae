package admission

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Name of the policy and of its binding. A release that changes one of the specs changes the name, because only specs
// that were never changed prove authors.
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

// inEffectAfter is how long after it was created every API server enforces a policy: each looks for new policies about
// once a second.
const inEffectAfter = 5 * time.Second

// Since returns the time after which the API server proved the author of every AddOnApproval and AddOnOrder that
// was created: the creation of the policy and the binding, if their specs were never changed. While one of them was
// missing or differed, any author could be written. A change that was undone leaves no trace but the generation, so
// only the first generation proves authors. The error is that of Matches, or says that a spec was changed.
func Since(policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) (time.Time, error) {
	if err := Matches(policy, binding); err != nil {
		return time.Time{}, err
	}
	var since time.Time
	for _, proof := range []struct {
		kind   string
		object client.Object
	}{{"ValidatingAdmissionPolicy", policy}, {"ValidatingAdmissionPolicyBinding", binding}} {
		if proof.object.GetGeneration() > 1 {
			return time.Time{}, fmt.Errorf("%s %s was changed after it was created, so approvers are not proven; delete it, and %s", proof.kind, Name, applyAgain)
		}
		if created := proof.object.GetCreationTimestamp().Time; created.After(since) {
			since = created
		}
	}
	return since.Add(inEffectAfter), nil
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
	return fmt.Errorf("%s %s differs from the one of this operator in %s, so approvers are not proven; delete it, and %s",
		kind, Name, strings.Join(slices.Sorted(maps.Keys(differing)), ", "), applyAgain)
}
