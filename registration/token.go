package registration

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Labels that OCM puts on the objects behind a token.
const (
	// InfrastructureLabel with the value InfrastructureValue is on all of them, and on nothing else.
	InfrastructureLabel = "addon.open-cluster-management.io/token-infrastructure"
	InfrastructureValue = "true"
	// InfrastructureAddOnLabel names the add-on.
	InfrastructureAddOnLabel = "addon.open-cluster-management.io/name"
)

// InfrastructureReady is the condition of a ManagedClusterAddOn that a klusterlet waits for before
// it requests a token. The klusterlet reads the UID of the account from the message of the
// condition.
const InfrastructureReady = "TokenInfrastructureReady"

// reasonApplyFailed is OCM's reason if InfrastructureReady is False.
const reasonApplyFailed = "TokenInfrastructureApplyFailed"

// TokenObjects are the objects on the hub for a token-based agent: an account in its cluster's
// namespace, and the right of the cluster's klusterlet to a token of it.
type TokenObjects struct {
	Account *corev1.ServiceAccount
	Role    *rbacv1.Role
	Binding *rbacv1.RoleBinding
}

// UsesToken reports whether the agent authenticates with a token: its template registers it
// with the hub, and its klusterlet chose a token. It is safe that the choice comes from a
// status, because the account is the agent's own in any case.
func (a Agent) UsesToken() bool {
	return a.Driver == DriverToken && slices.ContainsFunc(a.Registrations, func(s addonv1alpha1.RegistrationSpec) bool {
		return s.Type == addonv1alpha1.RegistrationTypeKubeClient
	})
}

// TokenRoleName is the name of the Role, and of its RoleBinding, in the namespace of the
// cluster.
func TokenRoleName(addOn string) string { return addOn + "-token-role" }

// NewTokenObjects returns the objects for the token of an agent, as OCM 1.2 creates them, with
// AddonFlow's label and the ManagedClusterAddOn as their owner.
func NewTokenObjects(addOn string, agent Agent) TokenObjects {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: agent.Cluster, Name: name,
			Labels: map[string]string{
				v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, InfrastructureLabel: InfrastructureValue, InfrastructureAddOnLabel: addOn,
			},
			OwnerReferences: []metav1.OwnerReference{ownedBy(addOn, agent)},
		}
	}
	account, role := ServiceAccountName(addOn), TokenRoleName(addOn)
	klusterlets := make([]rbacv1.Subject, 0, 2)
	// The second group is that of klusterlets that AWS authenticates.
	for _, group := range []string{clusterPrefix + agent.Cluster, "open-cluster-management:" + agent.Cluster} {
		klusterlets = append(klusterlets, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	tokens := []string{"serviceaccounts/token"}
	return TokenObjects{
		Account: &corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: rbacv1.ServiceAccountKind},
			ObjectMeta: meta(account),
		},
		Role: &rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: roleKind},
			ObjectMeta: meta(role),
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: tokens, ResourceNames: []string{account}, Verbs: []string{"create"}},
				// Needed by a klusterlet that reaches the hub through OCM's gRPC server.
				{APIGroups: []string{""}, Resources: tokens, Verbs: []string{"subscribe"}},
			},
		},
		Binding: &rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
			ObjectMeta: meta(role),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: role},
			Subjects:   klusterlets,
		},
	}
}

// ownedBy refers to the ManagedClusterAddOn of an agent, so that the object is deleted with it.
func ownedBy(addOn string, agent Agent) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: addOn, UID: agent.UID,
	}
}

// SameAccount reports whether an account has the wanted labels and owners; additions by others
// are ignored.
func SameAccount(want, have *corev1.ServiceAccount) bool { return marked(want, have) }

// SameRole is SameAccount for a Role, whose rules must be equal.
func SameRole(want, have *rbacv1.Role) bool {
	return marked(want, have) && equality.Semantic.DeepEqual(want.Rules, have.Rules)
}

// marked reports whether an object has the labels and owners of the wanted one.
func marked(want, have metav1.Object) bool {
	labels := have.GetLabels()
	for key, value := range want.GetLabels() {
		if v, ok := labels[key]; !ok || v != value {
			return false
		}
	}
	for _, owner := range want.GetOwnerReferences() {
		if !slices.ContainsFunc(have.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			return false
		}
	}
	return true
}

// TokenReady is the condition once the objects exist, in OCM's words, which the klusterlet
// parses: it requests a new token when the UID changes.
func TokenReady(account *corev1.ServiceAccount) metav1.Condition {
	return metav1.Condition{
		Type: InfrastructureReady, Status: metav1.ConditionTrue, Reason: InfrastructureReady,
		Message: fmt.Sprintf("ServiceAccount %s/%s (UID: %s) is ready", account.Namespace, account.Name, account.UID),
	}
}

// TokenFailed is the condition while they cannot be created, in OCM's words.
func TokenFailed(err error) metav1.Condition {
	return metav1.Condition{
		Type: InfrastructureReady, Status: metav1.ConditionFalse, Reason: reasonApplyFailed,
		Message: fmt.Sprintf("Failed to apply token infrastructure: %v", err),
	}
}
