package registration

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/yaml"
)

// ocmTokenManifests are OCM 1.2's (manifests/cluster-manager/hub/addon-manager/token-*.yaml)
// for add-on hello on c1, word by word.
const (
	ocmTokenAccount = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: "hello-agent"
  namespace: "c1"
  labels:
    addon.open-cluster-management.io/name: "hello"
    addon.open-cluster-management.io/token-infrastructure: "true"
`
	ocmTokenRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: "hello-token-role"
  namespace: "c1"
  labels:
    addon.open-cluster-management.io/name: "hello"
    addon.open-cluster-management.io/token-infrastructure: "true"
rules:
- apiGroups: [""]
  resources: ["serviceaccounts/token"]
  resourceNames: ["hello-agent"]
  verbs: ["create"]
- apiGroups: [""]
  resources: ["serviceaccounts/token"]
  verbs: ["subscribe"]
`
	ocmTokenBinding = `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: "hello-token-role"
  namespace: "c1"
  labels:
    addon.open-cluster-management.io/name: "hello"
    addon.open-cluster-management.io/token-infrastructure: "true"
subjects:
- kind: Group
  name: "system:open-cluster-management:c1"
  apiGroup: rbac.authorization.k8s.io
- kind: Group
  name: "open-cluster-management:c1"
  apiGroup: rbac.authorization.k8s.io
roleRef:
  kind: Role
  name: "hello-token-role"
  apiGroup: rbac.authorization.k8s.io
`
)

// ocms decodes one of OCM's manifests and adds AddonFlow's label and owner.
func ocms[T metav1.Object](t *testing.T, text string, into T) T {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	labels := into.GetLabels()
	labels["addonflow.io/managed-by"] = "addonflow"
	into.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1alpha1", Kind: "ManagedClusterAddOn", Name: "hello", UID: "uid",
	}})
	return into
}

// TestTokenObjectsAreOCMs: they are what OCM 1.2 creates, with AddonFlow's label and an owner
// added.
func TestTokenObjectsAreOCMs(t *testing.T) {
	want := TokenObjects{
		Account: ocms(t, ocmTokenAccount, &corev1.ServiceAccount{}),
		Role:    ocms(t, ocmTokenRole, &rbacv1.Role{}),
		Binding: ocms(t, ocmTokenBinding, &rbacv1.RoleBinding{}),
	}
	if diff := cmp.Diff(want, NewTokenObjects("hello", Agent{Cluster: "c1", UID: "uid"})); diff != "" {
		t.Errorf("-OCM's +ours:\n%s", diff)
	}
}

// TestUsesToken: the template decides whether an agent connects to the hub, its klusterlet only
// how.
func TestUsesToken(t *testing.T) {
	kube := []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationTypeKubeClient}}
	signer := []addonv1alpha1.RegistrationSpec{{Type: addonv1alpha1.RegistrationTypeCustomSigner}}
	for name, c := range map[string]struct {
		reason string
		agent  Agent
		want   bool
	}{
		"token":         {"as the klusterlet says", Agent{Driver: "token", Registrations: kube}, true},
		"certificate":   {"as the klusterlet says", Agent{Driver: "csr", Registrations: kube}, false},
		"unsaid":        {"it may still choose", Agent{Registrations: kube}, false},
		"signer":        {"the template registers no agent with the hub", Agent{Driver: "token", Registrations: signer}, false},
		"no block":      {"an agent cannot register itself", Agent{Driver: "token"}, false},
		"token as well": {"one block is enough", Agent{Driver: "token", Registrations: append(signer, kube...)}, true},
	} {
		if got := c.agent.UsesToken(); got != c.want {
			t.Errorf("%s: got %v, want %v: %s", name, got, c.want, c.reason)
		}
	}
}

// TestTokenConditionsInOCMsWords: the klusterlet parses the first of them.
func TestTokenConditionsInOCMsWords(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello-agent", UID: "4711"}}
	want := metav1.Condition{
		Type: "TokenInfrastructureReady", Status: "True", Reason: "TokenInfrastructureReady",
		Message: "ServiceAccount c1/hello-agent (UID: 4711) is ready",
	}
	if diff := cmp.Diff(want, TokenReady(account)); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
	want = metav1.Condition{
		Type: "TokenInfrastructureReady", Status: "False", Reason: "TokenInfrastructureApplyFailed",
		Message: "Failed to apply token infrastructure: no",
	}
	if diff := cmp.Diff(want, TokenFailed(errors.New("no"))); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

// TestTokenObjectsAreRepaired: additions by others stay, changes by others are repaired.
func TestTokenObjectsAreRepaired(t *testing.T) {
	want := NewTokenObjects("hello", Agent{Cluster: "c1", UID: "uid"})
	account, role, binding := want.Account.DeepCopy(), want.Role.DeepCopy(), want.Binding.DeepCopy()
	account.Annotations, account.Labels["team"] = map[string]string{"a": "b"}, "x"
	if !SameAccount(want.Account, account) || !SameRole(want.Role, role) || !Same(want.Binding, binding) {
		t.Error("what is as it is to be is written again")
	}
	account.Labels[InfrastructureAddOnLabel] = "other"
	role.Rules[0].ResourceNames = nil
	binding.Subjects = binding.Subjects[:1]
	if SameAccount(want.Account, account) || SameRole(want.Role, role) || Same(want.Binding, binding) {
		t.Error("what was changed stays")
	}
}
