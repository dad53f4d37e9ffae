package registration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// AllowLabel, with the value "true", on a Role or ClusterRole says that an admin allows add-ons
// to grant it to their agents.
const AllowLabel = "addonflow.io/allow-hub-permission"

// allowValue is the only value of AllowLabel that allows.
const allowValue = "true"

// Role is a role that an agent is to have on the hub.
type Role struct {
	// Kind is Role or ClusterRole.
	Kind string
	// Namespace in which the role is granted, and in which a Role exists; empty for the
	// cluster's own (CurrentCluster).
	Namespace string
	Name      string
}

// Key identifies the role among all roles, in the form of the flag that allows it:
// ClusterRole/name or Role/namespace/name.
func (r Role) Key() string {
	if r.Kind == clusterRoleKind {
		return r.Kind + "/" + r.Name
	}
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

const (
	clusterRoleKind = "ClusterRole"
	roleKind        = "Role"
)

// Permission is one hub permission of a template with its position in it.
type Permission struct {
	Role Role
	// Field is the path below registration, such as [0].kubeClient.hubPermissions[1].
	Field string
}

// Permissions lists the hub permissions of a template's registration blocks, in order. It skips
// blocks without their section; loading a commit refuses those.
func Permissions(specs []addonv1alpha1.RegistrationSpec) []Permission {
	var out []Permission
	for i, spec := range specs {
		if spec.Type != addonv1alpha1.RegistrationTypeKubeClient || spec.KubeClient == nil {
			continue
		}
		for j, p := range spec.KubeClient.HubPermissions {
			at := fmt.Sprintf("[%d].kubeClient.hubPermissions[%d]", i, j)
			switch {
			case p.Type == addonv1alpha1.HubPermissionsBindingCurrentCluster && p.CurrentCluster != nil:
				out = append(out, Permission{
					Role:  Role{Kind: clusterRoleKind, Name: p.CurrentCluster.ClusterRoleName},
					Field: at + ".currentCluster.clusterRoleName",
				})
			case p.Type == addonv1alpha1.HubPermissionsBindingSingleNamespace && p.SingleNamespace != nil:
				out = append(out, Permission{
					Role:  Role{Kind: p.SingleNamespace.RoleRef.Kind, Namespace: p.SingleNamespace.Namespace, Name: p.SingleNamespace.RoleRef.Name},
					Field: at + ".singleNamespace",
				})
			}
		}
	}
	return out
}

// RolePolicy decides which roles may be granted to agents.
type RolePolicy struct {
	// Allowed are the keys of roles that an admin allows by flag; see Role.Key.
	Allowed []string
}

// Errors of a RolePolicy.
var (
	// ErrRoleForbidden means that no label and no flag allows this role.
	ErrRoleForbidden = errors.New("is never given to an agent")
	// ErrRoleNotAllowed means that an admin has not allowed the role.
	ErrRoleNotAllowed = errors.New("is not allowed for agents")
)

// CheckName refuses roles by their names alone: cluster-admin and the roles of Kubernetes itself,
// roles in its namespaces, and roles and namespaces that cannot exist. The error is
// ErrRoleForbidden.
func (RolePolicy) CheckName(role Role) error {
	switch {
	case role.Name == "cluster-admin":
		return fmt.Errorf("%s %w", role.Key(), ErrRoleForbidden)
	case strings.HasPrefix(role.Name, "system:"):
		return fmt.Errorf("%s %w: it belongs to Kubernetes", role.Key(), ErrRoleForbidden)
	case strings.HasPrefix(role.Namespace, "kube-"):
		return fmt.Errorf("a role in namespace %s %w", role.Namespace, ErrRoleForbidden)
	case role.Kind != roleKind && role.Kind != clusterRoleKind:
		return fmt.Errorf("a role of kind %q %w", role.Kind, ErrRoleForbidden)
	case role.Namespace != "" && len(validation.IsDNS1123Label(role.Namespace)) > 0:
		return fmt.Errorf("a role in %q %w: no namespace can have that name", role.Namespace, ErrRoleForbidden)
	case len(content.IsPathSegmentName(role.Name)) > 0:
		return fmt.Errorf("%q %w: no role can have that name", role.Name, ErrRoleForbidden)
	}
	return nil
}

// Check returns why a role, as it is on the hub, may not be granted to agents: ErrRoleForbidden
// or ErrRoleNotAllowed; nil if it may. A role that allows everything counts as cluster-admin.
func (p RolePolicy) Check(role Role, labels map[string]string, rules []rbacv1.PolicyRule) error {
	if err := p.CheckName(role); err != nil {
		return err
	}
	if slices.ContainsFunc(rules, grantsEverything) {
		return fmt.Errorf("%s %w: it allows everything", role.Key(), ErrRoleForbidden)
	}
	if labels[AllowLabel] == allowValue || slices.Contains(p.Allowed, role.Key()) {
		return nil
	}
	return fmt.Errorf("%s %w", role.Key(), ErrRoleNotAllowed)
}

// grantsEverything reports whether a rule allows everything, or lets its holder impersonate any
// user or raise its own rights.
func grantsEverything(rule rbacv1.PolicyRule) bool {
	if slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "escalate" || v == "bind" || v == "impersonate" }) {
		return true
	}
	if !slices.Contains(rule.Verbs, rbacv1.VerbAll) {
		return false
	}
	// Every verb includes bind, escalate and impersonate for resources that support them.
	return covers(rule, rbacv1.GroupName, "roles", "clusterroles") ||
		covers(rule, "", "users", "groups", "serviceaccounts") ||
		covers(rule, authenticationv1.GroupName, "userextras", "uids")
}

// covers reports whether a rule is about one of the resources of an API group, or about
// subresources of it, such as the keys of userextras.
func covers(rule rbacv1.PolicyRule, group string, resources ...string) bool {
	return slices.ContainsFunc(rule.APIGroups, func(g string) bool { return g == group || g == rbacv1.APIGroupAll }) &&
		slices.ContainsFunc(rule.Resources, func(r string) bool {
			resource, _, _ := strings.Cut(r, "/")
			return r == rbacv1.ResourceAll || slices.Contains(resources, resource)
		})
}
