package registration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

func current(role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{
		Type:           addonv1alpha1.HubPermissionsBindingCurrentCluster,
		CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: role},
	}
}

func single(kind, role string) addonv1alpha1.HubPermissionConfig {
	return addonv1alpha1.HubPermissionConfig{
		Type: addonv1alpha1.HubPermissionsBindingSingleNamespace,
		SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
			Namespace: "ns", RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		},
	}
}

// agentOn is hello on a cluster, whose template asks for permissions.
func agentOn(cluster string, permissions ...addonv1alpha1.HubPermissionConfig) Agent {
	return Agent{Cluster: cluster, UID: types.UID("uid-" + cluster), Declared: true, Registrations: []addonv1alpha1.RegistrationSpec{{
		Type: addonv1alpha1.RegistrationTypeKubeClient, KubeClient: &addonv1alpha1.KubeClientRegistrationConfig{HubPermissions: permissions},
	}}}
}

func unknown(a Agent) Agent {
	a.Declared, a.Registrations = false, nil
	return a
}

func byToken(a Agent) Agent {
	a.Driver = DriverToken
	return a
}

func anything(Role) error { return nil }

// lines are bindings as namespace/name <- subjects.
func lines(bindings []rbacv1.RoleBinding) []string {
	out := []string{}
	for _, b := range bindings {
		var names []string
		for _, s := range b.Subjects {
			names = append(names, s.Kind+" "+s.Namespace+strings.TrimPrefix(s.Name, "system:open-cluster-management:"))
		}
		out = append(out, b.Namespace+"/"+strings.TrimPrefix(b.Name, "open-cluster-management:hello:")+" <- "+strings.Join(names, ", "))
	}
	return out
}

func TestBindings(t *testing.T) {
	refuse := func(role Role) error {
		if role.Name == "bad" {
			return errors.New("refused")
		}
		return nil
	}
	shared := []string{"ns/role:reader:agents <- Group cluster:c1:addon:hello, Group cluster:c2:addon:hello"}
	cases := map[string]struct {
		reason  string
		agents  []Agent
		found   []rbacv1.RoleBinding
		allowed Verdict
		want    []string
	}{
		"None":           {reason: "nothing is asked", agents: []Agent{agentOn("c1")}},
		"CurrentCluster": {reason: "in the cluster's own namespace", agents: []Agent{agentOn("c1", current("admin"))}, want: []string{"c1/clusterrole:admin:agent <- Group cluster:c1:addon:hello"}},
		"Single":         {reason: "the union of clusters", agents: []Agent{agentOn("c2", single("Role", "reader")), agentOn("c1", single("Role", "reader"))}, want: shared},
		"LastButOne":     {reason: "a cluster that leaves loses it", agents: []Agent{agentOn("c1", single("Role", "reader"))}, found: Bindings("hello", []Agent{agentOn("c1", single("Role", "reader")), agentOn("c2", single("Role", "reader"))}, nil, anything), want: []string{"ns/role:reader:agents <- Group cluster:c1:addon:hello"}},
		"Last":           {reason: "with the last cluster the binding goes", found: Bindings("hello", []Agent{agentOn("c1", single("Role", "reader"))}, nil, anything)},
		"UniqueNames":    {reason: "OCM gives two roles of a kind one name", agents: []Agent{agentOn("c1", current("a"), current("b"), single("ClusterRole", "a"), single("Role", "a"))}, want: []string{"c1/clusterrole:a:agent <- Group cluster:c1:addon:hello", "c1/clusterrole:b:agent <- Group cluster:c1:addon:hello", "ns/clusterrole:a:agents <- Group cluster:c1:addon:hello", "ns/role:a:agents <- Group cluster:c1:addon:hello"}},
		"Twice":          {reason: "a role that is asked for twice is bound once", agents: []Agent{agentOn("c1", current("a"), current("a"))}, want: []string{"c1/clusterrole:a:agent <- Group cluster:c1:addon:hello"}},
		"Refused":        {reason: "a refused role is left out, the others are not", agents: []Agent{agentOn("c1", current("bad"), current("good"))}, allowed: refuse, want: []string{"c1/clusterrole:good:agent <- Group cluster:c1:addon:hello"}},
		"Token":          {reason: "the account of a token-based agent, computed", agents: []Agent{byToken(agentOn("c1", current("a")))}, want: []string{"c1/clusterrole:a:agent <- Group cluster:c1:addon:hello, ServiceAccount c1hello-agent"}},
		"Restart":        {reason: "an agent that is not declared yet keeps what it has", agents: []Agent{unknown(agentOn("c1")), agentOn("c2", single("Role", "reader"))}, found: Bindings("hello", []Agent{agentOn("c1", current("a"), single("Role", "reader"))}, nil, anything), want: append([]string{"c1/clusterrole:a:agent <- Group cluster:c1:addon:hello"}, shared...)},
		"RestartNothing": {reason: "and gets nothing new", agents: []Agent{unknown(agentOn("c1"))}, found: Bindings("hello", []Agent{agentOn("c2", current("a"), single("Role", "reader"))}, nil, anything)},
		"RestartToken":   {reason: "an account is kept as well", agents: []Agent{unknown(agentOn("c1"))}, found: Bindings("hello", []Agent{byToken(agentOn("c1", current("a")))}, nil, anything), want: []string{"c1/clusterrole:a:agent <- Group cluster:c1:addon:hello, ServiceAccount c1hello-agent"}},
		"Foreign":        {reason: "a subject that is not of an agent goes", agents: []Agent{unknown(agentOn("c1"))}, found: withSubject(Bindings("hello", []Agent{agentOn("c1", current("a"))}, nil, anything), "system:authenticated"), want: []string{"c1/clusterrole:a:agent <- Group cluster:c1:addon:hello"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.allowed == nil {
				tc.allowed = anything
			}
			got := Bindings("hello", tc.agents, tc.found, tc.allowed)
			if diff := cmp.Diff(append([]string{}, tc.want...), lines(got)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			again := Bindings("hello", tc.agents, got, tc.allowed)
			if !slices.EqualFunc(got, again, func(a, b rbacv1.RoleBinding) bool { return Same(&a, &b) }) {
				t.Errorf("looking again wants something else: %v", lines(again))
			}
		})
	}
}

func withSubject(bindings []rbacv1.RoleBinding, group string) []rbacv1.RoleBinding {
	for i := range bindings {
		bindings[i].Subjects = append(bindings[i].Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return bindings
}

// TestBindingOwners: objects in the cluster's namespace are deleted with the add-on there; a
// shared binding has no owner.
func TestBindingOwners(t *testing.T) {
	for _, b := range Bindings("hello", []Agent{agentOn("c1", current("a"), single("Role", "a"))}, nil, anything) {
		owned := len(b.OwnerReferences) == 1 && b.OwnerReferences[0].UID == "uid-c1"
		if owned != (b.Namespace == "c1") {
			t.Errorf("%s/%s has owners %v", b.Namespace, b.Name, b.OwnerReferences)
		}
	}
}

func TestSame(t *testing.T) {
	want := Bindings("hello", []Agent{agentOn("c1", current("a"))}, nil, anything)[0]
	cases := map[string]struct {
		change func(*rbacv1.RoleBinding)
		same   bool
	}{
		"Equal":      {func(*rbacv1.RoleBinding) {}, true},
		"Annotation": {func(b *rbacv1.RoleBinding) { b.Annotations = map[string]string{"a": "b"} }, true},
		"Subject":    {func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: "x"}) }, false},
		"NoSubject":  {func(b *rbacv1.RoleBinding) { b.Subjects = nil }, false},
		"Role":       {func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "b" }, false},
		"Label":      {func(b *rbacv1.RoleBinding) { delete(b.Labels, "addonflow.io/managed-by") }, false},
		"Owner":      {func(b *rbacv1.RoleBinding) { b.OwnerReferences = nil }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := want.DeepCopy()
			tc.change(have)
			if Same(&want, have) != tc.same {
				t.Errorf("same: %v", !tc.same)
			}
		})
	}
}

func TestLeftByOCM(t *testing.T) {
	left := func(change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
		b := &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"}}
		b.Name = "open-cluster-management:hello:clusterrole:agent"
		b.Labels = map[string]string{"open-cluster-management.io/addon-name": "hello", "open-cluster-management.io/addon-template-name": ""}
		change(b)
		return b
	}
	if !LeftByOCM("hello", left(func(*rbacv1.RoleBinding) {})) {
		t.Error("OCM's own is not recognised")
	}
	for name, change := range map[string]func(*rbacv1.RoleBinding){
		"NoTemplateLabel": func(b *rbacv1.RoleBinding) { delete(b.Labels, "open-cluster-management.io/addon-template-name") },
		"OtherName":       func(b *rbacv1.RoleBinding) { b.Name = "mine" },
		"OtherAddOn":      func(b *rbacv1.RoleBinding) { b.Labels["open-cluster-management.io/addon-name"] = "other" },
		"Ours":            func(b *rbacv1.RoleBinding) { b.Labels["addonflow.io/managed-by"] = "addonflow" },
	} {
		if LeftByOCM("hello", left(change)) {
			t.Errorf("%s is taken for OCM's", name)
		}
	}
}
