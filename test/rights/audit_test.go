package rights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

const log = `{"verb":"get","requestURI":"/api/v1/namespaces/a/secrets/b","objectRef":{"resource":"secrets"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"patch","requestURI":"/x","objectRef":{"resource":"addonsources","subresource":"status","apiGroup":"addonflow.io"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"list","requestURI":"/api/v1/secrets","objectRef":{"resource":"secrets"},"annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":"no"}}
{"verb":"list","requestURI":"/api/v1/secrets","objectRef":{"resource":"secrets"},"annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":"no"}}
{"verb":"get","requestURI":"/version","annotations":{"authorization.k8s.io/decision":"allow"}}
{"verb":"head","requestURI":"/livez/ping","annotations":{"authorization.k8s.io/decision":"forbid"}}
{"verb":"get","requ`

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	want := Record{
		Used: map[Use]int{
			{Resource: "secrets", Verb: "get"}:                                      1,
			{Group: "addonflow.io", Resource: "addonsources/status", Verb: "patch"}: 1,
		},
		Refused: []string{"list /api/v1/secrets: no"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "delete"}},
		{APIGroups: []string{"addonflow.io"}, Resources: []string{"addonsources/status"}, Verbs: []string{"patch", "update"}},
	}
	if diff := cmp.Diff([]string{"delete secrets", "update addonsources/status.addonflow.io"}, got.Unused(rules)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAggregation: Install grants what the hub's controller would grant.
func TestAggregation(t *testing.T) {
	objects, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := aggregate(objects)
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 10 {
		t.Errorf("only %d rules are aggregated", len(rules))
	}
	if got := objects[0].GetKind(); got != "Namespace" {
		t.Errorf("the first object is a %s", got)
	}
}
