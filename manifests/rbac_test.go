package manifests_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/manifests/admission"
)

const (
	addonFlowGroup = "addonflow.io"
	addOnGroup     = "addon.open-cluster-management.io"
	clusterGroup   = "cluster.open-cluster-management.io"
	workGroup      = "work.open-cluster-management.io"

	certificatesGroup = "certificates.k8s.io"
	admissionGroup    = "admissionregistration.k8s.io"
)

// resource is a resource or subresource of a group.
type resource struct{ group, name string }

// use is one way in which the operator uses a resource, and where.
type use struct {
	resource
	where string
	verbs []string
}

// uses lists what the controllers do. A granted verb that is not listed here is too much; a
// listed verb that is not granted causes a 403 on a user's hub.
func uses() []use {
	read := []string{"get", "list", "watch"}
	watched := []string{"list", "watch"}
	// Server-side apply is a patch, and needs create if the object is new; the dry run of a
	// commit is a create.
	applied := []string{"get", "create", "patch", "delete"}
	return []use{
		{resource{addonFlowGroup, "addonsources"}, "read live and watched by addonsource, cached by addonrollout", read},
		{resource{addonFlowGroup, "addonsources"}, "finalizer", []string{"patch"}},
		{resource{addonFlowGroup, "addonsources/status"}, "addonsource/report.go", []string{"patch"}},
		{resource{addonFlowGroup, "addonrollouts"}, "both controllers", read},
		{resource{addonFlowGroup, "addonrollouts"}, "applied and deleted by addonsource, finalizer by addonrollout", applied},
		{resource{addonFlowGroup, "addonrollouts/status"}, "addonrollout/reserve.go: the ledger's compare-and-swap", []string{"update"}},
		{resource{addonFlowGroup, "addonrevisions"}, "metadata is watched, bodies are read live", read},
		{resource{addonFlowGroup, "addonrevisions"}, "addonsource creates and collects, addonrollout notes success", []string{"create", "patch", "delete"}},
		{resource{addonFlowGroup, "addonapprovals"}, "decisions on approval gates; addonsource/approvals.go enters comments", append([]string{"create"}, read...)},
		{resource{addonFlowGroup, "addonapprovals/forge"}, "asked for by manifests/admission/policy.yaml, not by the operator", []string{"create"}},
		{resource{addonFlowGroup, "addonorders"}, "orders of users", append([]string{"delete"}, read...)},
		{resource{addonFlowGroup, "addonorders/status"}, "addonrollout/orders.go: the answer", []string{"update"}},
		{resource{admissionGroup, "validatingadmissionpolicies"}, "watched, and compared with the shipped one", read},
		{resource{admissionGroup, "validatingadmissionpolicybindings"}, "watched, and compared with the shipped one", read},
		{resource{addOnGroup, "clustermanagementaddons"}, "metadata is watched, read live", read},
		{resource{addOnGroup, "clustermanagementaddons"}, "applied and removed by addonsource", applied},
		{resource{addOnGroup, "clustermanagementaddons"}, "addonsource/takeover.go", []string{"patch", "update"}},
		{resource{addOnGroup, "clustermanagementaddons/status"}, "addonrollout/report.go, without OCM's addon-manager", []string{"patch"}},
		{resource{addOnGroup, "clustermanagementaddons/finalizers"}, "owner of ManagedClusterAddOns", []string{"update"}},
		{resource{addOnGroup, "addontemplates"}, "applied and pruned by addonsource", applied},
		{resource{addOnGroup, "addondeploymentconfigs"}, "applied and pruned by addonsource", applied},
		{resource{addOnGroup, "addontemplates"}, "addonrollout/configs.go: named by a ManagedClusterAddOn", read},
		{resource{addOnGroup, "addondeploymentconfigs"}, "addonrollout/configs.go: named by a ManagedClusterAddOn", read},
		{resource{addOnGroup, "addonhubconfigs"}, "applied and pruned by addonsource", applied},
		{resource{addOnGroup, "addonhubconfigs"}, "addonrollout/configs.go: named by a ManagedClusterAddOn", read},
		{resource{addOnGroup, "managedclusteraddons"}, "observed by addonrollout, counted by addonsource", watched},
		{resource{addOnGroup, "managedclusteraddons"}, "addonrollout/addon.go: install and remove", []string{"create", "delete"}},
		{resource{addOnGroup, "managedclusteraddons"}, "addonrollout/addon.go", []string{"patch"}},
		{resource{addOnGroup, "managedclusteraddons/status"}, "addonrollout/addon.go, addonsource/takeover.go", []string{"patch"}},
		{resource{addOnGroup, "managedclusteraddons/finalizers"}, "owner of works", []string{"update"}},
		{resource{workGroup, "manifestworks"}, "observed by addonrollout, addonsource/collect.go", watched},
		{resource{workGroup, "manifestworks"}, "addonrollout/works.go", []string{"create", "update", "delete"}},
		{resource{workGroup, "manifestworks"}, "asked by OCM's webhook of a template with an executor", []string{"execute-as"}},
		{resource{clusterGroup, "managedclusters"}, "observed by addonrollout", watched},
		{resource{clusterGroup, "placementdecisions"}, "observed by addonrollout", watched},
		{resource{clusterGroup, "placements"}, "observed by addonrollout", read},
		{resource{clusterGroup, "placements"}, "applied and pruned by addonsource", applied},
		{resource{clusterGroup, "managedclustersetbindings"}, "applied and pruned by addonsource", applied},
		{resource{clusterGroup, "managedclustersetbindings"}, "cmd/addonflow/fleet.go: what a placement of a pull request may select", watched},
		{resource{clusterGroup, "managedclustersets/bind"}, "OCM's webhook requires it to bind a set", []string{"create"}},
		{resource{"", "namespaces"}, "applied by addonsource, never deleted", []string{"get", "create", "patch"}},
		{resource{"", "secrets"}, "credentials of a source and of gates, token of its forge, signing CAs, by name", []string{"get"}},
		{resource{certificatesGroup, "certificatesigningrequests"}, "observed by registration", watched},
		{resource{certificatesGroup, "certificatesigningrequests/approval"}, "registration/requests.go", []string{"update"}},
		{resource{certificatesGroup, "certificatesigningrequests/status"}, "registration/requests.go: custom signers", []string{"update"}},
		{resource{certificatesGroup, "signers"}, "required to approve", []string{"approve"}},
		{resource{rbacv1.GroupName, "rolebindings"}, "observed and written by registration/bindings.go, tried by addonsource/permit.go", slices.Concat(watched, []string{"create", "patch", "delete"})},
		{resource{rbacv1.GroupName, "roles"}, "judged by registration and addonsource, watched by label", read},
		{resource{rbacv1.GroupName, "clusterroles"}, "judged by registration and addonsource, watched by label", read},
		{resource{"apiextensions.k8s.io", "customresourcedefinitions"}, "addonsource/attempt.go: schemas of configurations", []string{"get"}},
		{resource{"", "events"}, "both controllers", []string{"create", "patch"}},
		{resource{"authentication.k8s.io", "tokenreviews"}, "pageserver/door.go", []string{"create"}},
		{resource{"authorization.k8s.io", "subjectaccessreviews"}, "pageserver/door.go", []string{"create"}},
	}
}

// granted collects rules by resource.
func granted(rules []rbacv1.PolicyRule) map[resource][]string {
	verbs := map[resource][]string{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				r := resource{group, name}
				verbs[r] = append(verbs[r], rule.Verbs...)
			}
		}
	}
	for r := range verbs {
		slices.Sort(verbs[r])
		verbs[r] = slices.Compact(verbs[r])
	}
	return verbs
}

// operatorRules are the rules that the operator's ClusterRole aggregates.
func operatorRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var label map[string]string
	var rules []rbacv1.PolicyRule
	roles := allOf[rbacv1.ClusterRole](t, "ClusterRole")
	for _, role := range roles {
		if role.Name == "addonflow" {
			if role.AggregationRule == nil || len(role.AggregationRule.ClusterRoleSelectors) != 1 || role.Rules != nil {
				t.Fatal("ClusterRole addonflow is to aggregate others and have no rules of its own")
			}
			label = role.AggregationRule.ClusterRoleSelectors[0].MatchLabels
		}
	}
	for _, role := range roles {
		for key, value := range label {
			if role.Labels[key] == value {
				rules = append(rules, role.Rules...)
			}
		}
	}
	return rules
}

func TestGrantedIsWhatIsUsed(t *testing.T) {
	want := map[resource][]string{}
	for _, u := range uses() {
		want[u.resource] = append(want[u.resource], u.verbs...)
		slices.Sort(want[u.resource])
		want[u.resource] = slices.Compact(want[u.resource])
	}
	if diff := cmp.Diff(want, granted(operatorRules(t)), cmp.AllowUnexported(resource{})); diff != "" {
		t.Errorf("ClusterRole addonflow (-used +granted):\n%s", diff)
	}
}

// TestNothingDangerousIsGranted checks the rules independently of the table above.
func TestNothingDangerousIsGranted(t *testing.T) {
	rules := operatorRules(t)
	for _, role := range allOf[rbacv1.Role](t, "Role") {
		rules = append(rules, role.Rules...)
	}
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			t.Errorf("%v grants URLs", rule)
		}
		for _, words := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
			if slices.ContainsFunc(words, func(w string) bool { return w == "*" || w == "*/*" }) {
				t.Errorf("%v has a wildcard", rule)
			}
		}
		for _, verb := range []string{"escalate", "bind", "impersonate", "sign", "deletecollection"} {
			if slices.Contains(rule.Verbs, verb) {
				t.Errorf("%v grants %s", rule, verb)
			}
		}
		nothingGivenAway(t, rule)
	}
}

// nothingGivenAway checks what the operator may grant to others, or read from them.
func nothingGivenAway(t *testing.T, rule rbacv1.PolicyRule) {
	t.Helper()
	if slices.Contains(rule.Verbs, "approve") && !slices.Equal(rule.ResourceNames, []string{"kubernetes.io/kube-apiserver-client"}) {
		t.Errorf("%v approves for other signers than the one of the hub's own clients", rule)
	}
	// A role binding grants rights that the operator has itself, or that an admin lets it bind;
	// writing roles would let it extend them.
	if slices.Contains(rule.APIGroups, rbacv1.GroupName) && !slices.Equal(rule.Resources, []string{"rolebindings"}) && !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
		t.Errorf("%v lets the operator change what it may do", rule)
	}
	if slices.Contains(rule.APIGroups, admissionGroup) && !slices.Equal(rule.ResourceNames, []string{admission.Name}) {
		t.Errorf("%v reads admission policies of others", rule)
	}
	if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.Verbs, []string{"get"}) {
		t.Errorf("%v: secrets are got by name, nothing else", rule)
	}
}

// TestTenantsNarrowTheRightToSecrets: with tenants, the operator reads no Secret outside of the
// namespaces that an admin gives it, and acts as no account but those that are named. The role that
// manifests/install gave it is there without its right, so that kubectl apply, which deletes nothing, takes it away.
func TestTenantsNarrowTheRightToSecrets(t *testing.T) {
	emptied := false
	for _, o := range built(t, "testdata/tenants") {
		var role rbacv1.ClusterRole // as a Role, what matters here
		if o.kind != "ClusterRole" && o.kind != "Role" {
			continue
		}
		if err := yaml.Unmarshal(o.text, &role); err != nil {
			t.Fatal(err)
		}
		emptied = emptied || role.Name == "addonflow-secrets" && len(role.Rules) == 0 && role.Labels["addonflow.io/aggregate-to-operator"] == ""
		for _, rule := range role.Rules {
			tenants := o.kind == "Role" && o.namespace == "team-a"
			if slices.Contains(rule.Resources, "secrets") && !tenants {
				t.Errorf("%s %s/%s reads Secrets", o.kind, o.namespace, o.name)
			}
			one := slices.Equal(rule.ResourceNames, []string{"deployer"}) && slices.Equal(rule.Resources, []string{"serviceaccounts"})
			if slices.Contains(rule.Verbs, "impersonate") && (!tenants || !one) {
				t.Errorf("%s %s/%s impersonates by %v", o.kind, o.namespace, o.name, rule)
			}
		}
	}
	if !emptied {
		t.Error("no ClusterRole addonflow-secrets without rules and without the label of the operator's rights")
	}
}

// replaceUses are the uses of the operator only without OCM's addon-manager.
func replaceUses() []use {
	written := []string{"list", "watch", "create", "patch", "delete"}
	return []use{
		{resource{"", "serviceaccounts"}, "registration/tokens.go", written},
		{resource{rbacv1.GroupName, "roles"}, "registration/tokens.go", written},
		{resource{"", "serviceaccounts/token"}, "required to write a Role that contains it", []string{"subscribe"}},
	}
}

// TestReplaceGrantsTheObjectsBehindTokens: manifests/replace is manifests/install with one more
// role and the flag. It grants no tokens: an admin grants those, by name.
func TestReplaceGrantsTheObjectsBehindTokens(t *testing.T) {
	base := map[string]bool{}
	for _, o := range install(t) {
		base[o.kind+" "+o.name] = true
	}
	var more []string
	for _, o := range built(t, "replace") {
		switch {
		case !base[o.kind+" "+o.name]:
			more = append(more, o.kind+" "+o.name)
		case o.kind == "Deployment" && !strings.Contains(string(o.text), "--addon-manager=replace"):
			t.Error("the deployment lacks the flag to replace OCM's addon-manager")
		}
		if o.kind != "ClusterRole" || o.name != "addonflow-replace" {
			continue
		}
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(o.text, &role); err != nil {
			t.Fatal(err)
		}
		want := map[resource][]string{}
		for _, u := range replaceUses() {
			slices.Sort(u.verbs)
			want[u.resource] = u.verbs
		}
		if diff := cmp.Diff(want, granted(role.Rules), cmp.AllowUnexported(resource{})); diff != "" {
			t.Errorf("ClusterRole %s (-used +granted):\n%s", role.Name, diff)
		}
		if role.Labels["addonflow.io/aggregate-to-operator"] != "true" {
			t.Error("the role is not the operator's")
		}
	}
	if !slices.Equal(more, []string{"ClusterRole addonflow-replace"}) {
		t.Errorf("manifests/replace brings %v", more)
	}
}

// TestLeaderElection: the Lease stands in the operator's namespace, and no lease of
// another namespace can be touched.
func TestLeaderElection(t *testing.T) {
	role := theOnly[rbacv1.Role](t, "Role")
	want := map[resource][]string{
		{"coordination.k8s.io", "leases"}: {"create", "get", "update"},
		{"", "events"}:                    {"create", "patch"},
	}
	if diff := cmp.Diff(want, granted(role.Rules), cmp.AllowUnexported(resource{})); diff != "" {
		t.Errorf("Role %s (-want +got):\n%s", role.Name, diff)
	}
	if role.Namespace != systemNamespace {
		t.Errorf("Role %s is in namespace %s", role.Name, role.Namespace)
	}
}

func TestBindings(t *testing.T) {
	operator := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "addonflow", Namespace: systemNamespace}}
	cluster := theOnly[rbacv1.ClusterRoleBinding](t, "ClusterRoleBinding")
	if cluster.RoleRef.Kind != "ClusterRole" || cluster.RoleRef.Name != "addonflow" || !cmp.Equal(cluster.Subjects, operator) {
		t.Errorf("ClusterRoleBinding %s: %+v to %+v", cluster.Name, cluster.RoleRef, cluster.Subjects)
	}
	own := theOnly[rbacv1.RoleBinding](t, "RoleBinding")
	if own.RoleRef.Kind != "Role" || own.RoleRef.Name != theOnly[rbacv1.Role](t, "Role").Name || !cmp.Equal(own.Subjects, operator) {
		t.Errorf("RoleBinding %s: %+v to %+v", own.Name, own.RoleRef, own.Subjects)
	}
}
