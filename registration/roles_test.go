package registration

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRolesThatAnAgentMayHave(t *testing.T) {
	allowed := map[string]string{AllowLabel: "true"}
	some := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}
	rule := func(verbs, groups, resources string) []rbacv1.PolicyRule {
		return append(some, rbacv1.PolicyRule{Verbs: []string{verbs}, APIGroups: []string{groups}, Resources: []string{resources}})
	}
	cluster := func(name string) Role { return Role{Kind: "ClusterRole", Name: name} }
	cases := map[string]struct {
		reason string
		policy RolePolicy
		role   Role
		labels map[string]string
		rules  []rbacv1.PolicyRule
		want   error
	}{
		"Label":           {reason: "an admin's label", role: cluster("cm-admin"), labels: allowed, rules: some},
		"Flag":            {reason: "an admin's flag", policy: RolePolicy{Allowed: []string{"ClusterRole/cm-admin"}}, role: cluster("cm-admin"), rules: some},
		"RoleByFlag":      {reason: "with its namespace", policy: RolePolicy{Allowed: []string{"Role/ns/reader"}}, role: Role{"Role", "ns", "reader"}, rules: some},
		"RoleOfOther":     {"another namespace's role of that name", RolePolicy{Allowed: []string{"Role/ns/reader"}}, Role{"Role", "other", "reader"}, nil, some, ErrRoleNotAllowed},
		"KindOfOther":     {"a ClusterRole of a Role's name", RolePolicy{Allowed: []string{"Role/ns/reader"}}, Role{"ClusterRole", "ns", "reader"}, nil, some, ErrRoleNotAllowed},
		"NotAllowed":      {"neither label nor flag allows it", RolePolicy{}, cluster("cm-admin"), nil, some, ErrRoleNotAllowed},
		"LabelFalse":      {"a label that says no", RolePolicy{}, cluster("cm-admin"), map[string]string{AllowLabel: "false"}, some, ErrRoleNotAllowed},
		"PrefixOfAllowed": {"names are compared whole", RolePolicy{Allowed: []string{"ClusterRole/cm-admin"}}, cluster("cm-admin-all"), nil, some, ErrRoleNotAllowed},
		"ClusterAdmin":    {"never, even with the label", RolePolicy{Allowed: []string{"ClusterRole/cluster-admin"}}, cluster("cluster-admin"), allowed, some, ErrRoleForbidden},
		"System":          {"never", RolePolicy{}, cluster("system:masters-like"), allowed, some, ErrRoleForbidden},
		"SystemRole":      {"nor in a namespace", RolePolicy{}, Role{"Role", "ns", "system:x"}, allowed, some, ErrRoleForbidden},
		"KubeSystem":      {"nothing in the hub's own namespaces", RolePolicy{}, Role{"Role", "kube-system", "reader"}, allowed, some, ErrRoleForbidden},
		"NoNamespace":     {"a namespace that cannot exist", RolePolicy{}, Role{"Role", "Team_A", "reader"}, allowed, some, ErrRoleForbidden},
		"PathAsName":      {"a role that cannot exist, and cannot be read", RolePolicy{}, cluster("cm/admin"), allowed, some, ErrRoleForbidden},
		"PathOfRole":      {"nor in a namespace", RolePolicy{}, Role{"Role", "ns", ".."}, allowed, some, ErrRoleForbidden},
		"OtherKind":       {"no other kind", RolePolicy{}, Role{"Group", "ns", "x"}, allowed, some, ErrRoleForbidden},
		"Everything":      {"cluster-admin under another name", RolePolicy{}, cluster("all"), allowed, rule("*", "*", "*"), ErrRoleForbidden},
		"AllOfOneGroup":   {reason: "much, but an admin's to say", role: cluster("all"), labels: allowed, rules: rule("*", "apps", "*")},
		"Escalate":        {"escalate gives all rights", RolePolicy{}, cluster("x"), allowed, rule("escalate", "rbac.authorization.k8s.io", "roles"), ErrRoleForbidden},
		"EveryVerb":       {"which holds escalate and bind", RolePolicy{}, cluster("x"), allowed, rule("*", "rbac.authorization.k8s.io", "roles"), ErrRoleForbidden},
		"EveryVerbOfAll":  {"in whatever group", RolePolicy{}, cluster("x"), allowed, rule("*", "*", "clusterroles"), ErrRoleForbidden},
		"EveryVerbOnUser": {"which holds impersonate", RolePolicy{}, cluster("x"), allowed, rule("*", "", "serviceaccounts"), ErrRoleForbidden},
		"EveryExtra":      {"of a user, as well", RolePolicy{}, cluster("x"), allowed, rule("*", "authentication.k8s.io", "userextras/scopes"), ErrRoleForbidden},
		"EveryCoreObject": {"all of the core group holds accounts", RolePolicy{}, cluster("x"), allowed, rule("*", "", "*"), ErrRoleForbidden},
		"EveryVerbOfOne":  {reason: "ConfigMaps give no other rights", role: cluster("x"), labels: allowed, rules: rule("*", "", "configmaps")},
		"Bindings":        {reason: "a binding without the verb bind gives what its writer has", role: cluster("x"), labels: allowed, rules: rule("*", "rbac.authorization.k8s.io", "rolebindings")},
		"Impersonate":     {"impersonation gives all rights", RolePolicy{}, cluster("x"), allowed, rule("impersonate", "", "users"), ErrRoleForbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.policy.Check(tc.role, tc.labels, tc.rules); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
