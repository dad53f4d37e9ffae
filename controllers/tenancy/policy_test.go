package tenancy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/render"
)

// parse reads the policy with one entry, for team-a.
func parse(t *testing.T, entry string) Tenant {
	t.Helper()
	policy, err := Parse(&corev1.ConfigMap{Data: map[string]string{"team-a": entry}})
	if err != nil {
		t.Fatal(err)
	}
	return policy["team-a"]
}

func TestPolicy_NamesWhatATenantMayDeclare(t *testing.T) {
	tenant := parse(t, "addOns: [hello, team-a-*, x*y*z]\nnamespaces: [fleet, team-a-*]\nkinds: [ClusterRole.rbac.authorization.k8s.io, ConfigMap]\n")
	for name, may := range map[string]bool{
		"hello": true, "hello-world": false, "hell": false, "team-a-x": true, "team-a-": true, "team-a": false, "team-b-team-a-x": false,
		"xyz": true, "x1y2z": true, "xz": false, "xyzz": true, "": false,
	} {
		if got := tenant.MayDeclare(name); got != may {
			t.Errorf("add-on %q: %t, want %t", name, got, may)
		}
	}
	for name, may := range map[string]bool{"hello": true, "hello-v1": true, "hello-v1-b": true, "hellov1": false, "other-hello": false, "-hello": false} {
		if got := tenant.MayName(name); got != may {
			t.Errorf("template %q: %t, want %t", name, got, may)
		}
	}
	for name, may := range map[string]bool{"team-a": true, "fleet": true, "team-a-x": true, "team-b": false, "kube-system": false, "": false} {
		if got := tenant.MayUse(name); got != may {
			t.Errorf("namespace %q: %t, want %t", name, got, may)
		}
	}
	for kind, may := range map[string]bool{
		"ClusterRole.rbac.authorization.k8s.io": true, "ConfigMap": true, "ClusterRole": false, "ConfigMap.example.com": false, "ClusterRoleBinding.rbac.authorization.k8s.io": false,
	} {
		if got := tenant.MayBring(schema.ParseGroupKind(kind)); got != may {
			t.Errorf("kind %s: %t, want %t", kind, got, may)
		}
	}
}

// TestPolicy_NamesBelongToTheTenantThatListsMoreOfThem: the name of one add-on may begin that of another.
func TestPolicy_NamesBelongToTheTenantThatListsMoreOfThem(t *testing.T) {
	policy, err := Parse(&corev1.ConfigMap{Data: map[string]string{
		"logs": "addOns: [log]\n", "shippers": "addOns: [log-shipper]\n", "agents": "addOns: ['log-agent*']\n", "admins": "addOns: ['*']\n",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tenants := range map[string]string{
		"log": "admins logs", "log-v2": "admins logs", "log-shipperv2": "admins logs", "log-ship": "admins logs",
		"log-shipper": "admins shippers", "log-shipper-v2": "admins shippers", "log-shipper-v2-b": "admins shippers",
		"log-agent": "admins agents", "log-agent-v2": "admins agents", "log-agents": "admins agents", "other": "admins",
	} {
		var may []string
		for _, namespace := range slices.Sorted(maps.Keys(policy)) {
			if policy[namespace].MayName(name) {
				may = append(may, namespace)
			}
		}
		if got := strings.Join(may, " "); got != tenants {
			t.Errorf("%s: %s, want %s", name, got, tenants)
		}
	}
}

func TestPolicy_IsRefusedAsAWhole(t *testing.T) {
	const good = "addOns: [hello]\n"
	for name, c := range map[string]struct {
		entries map[string]string
		want    string
	}{
		"UnknownField":  {map[string]string{"team-a": good, "team-b": "addOns: [hello]\naddons: [hello]\n"}, `data[team-b]: unknown field "addons"`},
		"FieldTwice":    {map[string]string{"team-a": good + good}, `data[team-a]: `},
		"NoAddOn":       {map[string]string{"team-a": "addOns: []\n"}, "data[team-a].addOns: is required"},
		"Empty":         {map[string]string{"team-a": ""}, "data[team-a].addOns: is required"},
		"NotAPattern":   {map[string]string{"team-a": "addOns: ['Hello']\n"}, `data[team-a].addOns[0]: "Hello" is not a name`},
		"EmptyPattern":  {map[string]string{"team-a": "addOns: ['']\n"}, `data[team-a].addOns[0]: "" is not a name`},
		"NotANamespace": {map[string]string{"team-a": good + "namespaces: [a/b]\n"}, `data[team-a].namespaces[0]: "a/b" is not a name`},
		"NotAKind":      {map[string]string{"team-a": good + "kinds: ['*']\n"}, `data[team-a].kinds[0]: "*" is not Kind`},
		"EntryOfNoOne":  {map[string]string{"Team_A": good}, "data[Team_A]: an entry has the name of a namespace"},
		"NullList":      {map[string]string{"team-a": good + "targetNamespaces:\n"}, "data[team-a]: targetNamespaces: is empty"},
		"EmptyList":     {map[string]string{"team-a": good + "targetNamespaces: []\n"}, "data[team-a]: targetNamespaces: is empty"},
		"NotATarget":    {map[string]string{"team-a": good + "targetNamespaces: [a/b]\n"}, `data[team-a].targetNamespaces[0]: "a/b" is not a name`},
		"NoTarget":      {map[string]string{"team-a": good + "targetKinds: [ClusterRole.rbac.authorization.k8s.io]\n"}, "data[team-a].targetKinds: every kind is allowed without targetNamespaces"},
		"AnyNamespace":  {map[string]string{"team-a": good + "targetNamespaces: [a]\ntargetKinds: [Namespace]\n"}, "data[team-a].targetKinds[0]: Namespaces are allowed by name"},
		"NotAnObject":   {map[string]string{"team-a": "- hello\n"}, "data[team-a]: "},
		"NamespaceOfIt": {map[string]string{"team-a": good + "namespace: team-b\n"}, "data[team-a]: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(&corev1.ConfigMap{Data: c.entries})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestPolicy_BoundsManagedClusters: an entry without target namespaces does not.
func TestPolicy_BoundsManagedClusters(t *testing.T) {
	if bounds := parse(t, "addOns: [hello]\n").Bounds(); bounds != nil {
		t.Errorf("got %v", bounds)
	}
	bounds := parse(t, "addOns: [hello]\ntargetNamespaces: [a, b-*]\ntargetKinds: [ClusterRole.rbac.authorization.k8s.io]\n").Bounds()
	want := render.Bounds{Namespaces: []string{"a", "b-*"}, Kinds: []string{"ClusterRole.rbac.authorization.k8s.io"}}
	if bounds == nil || !reflect.DeepEqual(*bounds, want) {
		t.Errorf("got %v, want %v", bounds, want)
	}
}

func TestParseName(t *testing.T) {
	if key, err := ParseName("addonflow-system/tenants"); err != nil || key.String() != "addonflow-system/tenants" {
		t.Errorf("%v, %v", key, err)
	}
	for _, s := range []string{"", "tenants", "/tenants", "a/", "a/b/c", "A/b"} {
		if _, err := ParseName(s); err == nil {
			t.Errorf("%q names a ConfigMap", s)
		}
	}
}

// FuzzParse: a policy that is read names add-ons for each tenant, and its names as well as its text are read or refused.
func FuzzParse(f *testing.F) {
	f.Add("team-a", "addOns: [a-*]\nnamespaces: [team-a-config]\n")
	f.Add("addonflow/tenants", "addons: [x]")
	f.Fuzz(func(t *testing.T, namespace, text string) {
		policy, err := Parse(&corev1.ConfigMap{Data: map[string]string{namespace: text}})
		if (err == nil) != (policy != nil) || err == nil && len(policy[namespace].AddOns) == 0 {
			t.Errorf("%q: %+v, %v", text, policy, err)
		}
		if key, err := ParseName(namespace); err == nil && key.String() != namespace {
			t.Errorf("%q is read as %s", namespace, key)
		}
	})
}
