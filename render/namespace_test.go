package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/render/rendertest"
)

func TestInstallNamespace(t *testing.T) {
	template := `agentSpec: {workload: {manifests: [
	  {apiVersion: v1, kind: Namespace, metadata: {name: old}},
	  {apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: old}},
	  {apiVersion: v1, kind: ConfigMap, metadata: {name: b}},
	  {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: c}, subjects: [{kind: ServiceAccount, name: a, namespace: old}, {kind: Group, name: g}]},
	  {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: d, namespace: other}}]}}`
	want := []map[string]any{
		rendertest.Fields(t, "{apiVersion: v1, kind: Namespace, metadata: {name: new}}"),
		rendertest.Fields(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: new}}"),
		rendertest.Fields(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}"),
		rendertest.Fields(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: c}, subjects: [{kind: ServiceAccount, name: a, namespace: new}, {kind: Group, name: g, namespace: new}]}"),
		rendertest.Fields(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: d, namespace: new}}"),
	}
	for i, o := range objectsFor(t, template, "{agentInstallNamespace: new}") {
		if diff := cmp.Diff(want[i], o.Object); diff != "" {
			t.Errorf("object %d (-want +got):\n%s", i, diff)
		}
	}
	for _, o := range objectsFor(t, template, "{agentInstallNamespace: ''}") {
		if o.GetNamespace() == "new" {
			t.Errorf("%s moved without a namespace to move to", o.GetName())
		}
	}
}

func TestRegistrationNamespace(t *testing.T) {
	workload := func(kind, namespace string) string {
		apiVersion := "apps/v1"
		if kind == "Job" {
			apiVersion = "batch/v1"
		}
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: 'n" + namespace + "', namespace: '" + namespace + "'}},"
	}
	cases := map[string]struct{ reason, manifests, agent, want string }{
		"deployment":             {"its namespace", workload("Deployment", "a") + workload("DaemonSet", "b"), "", "a"},
		"daemon set":             {"without a Deployment", workload("DaemonSet", "b") + workload("DaemonSet", "c"), "", "b"},
		"daemon set first":       {"a Deployment goes before it", workload("DaemonSet", "b") + workload("Deployment", "a"), "", "a"},
		"first deployment":       {"of several", workload("Deployment", "a") + workload("Deployment", "b"), "", "a"},
		"configuration":          {"goes before all", workload("Deployment", "a"), "{agentInstallNamespace: x}", "x"},
		"empty configuration":    {"says nothing", workload("Deployment", "a"), "{agentInstallNamespace: ''}", "a"},
		"nothing":                {"OCM's default", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}", "", "open-cluster-management-agent-addon"},
		"other workload":         {"beyond OCM, where its credentials are mounted", workload("Job", "j"), "", "j"},
		"depends on the cluster": {"rendered, not raw", workload("Deployment", "x-{{CLUSTER_NAME}}"), "", "x-cluster1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			content := contentOf(t, "agentSpec: {workload: {manifests: ["+c.manifests+"]}}", c.agent)
			if got := renderedFor(t, content, Cluster{Name: "cluster1"}).Namespace; got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// The namespace of the agent's credentials is rolled out, not written to every cluster at once,
// even if no object is in that namespace.
func TestNamespaceOfCredentialsIsContent(t *testing.T) {
	for name, manifest := range map[string]string{
		"shown by an object": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}",
		"shown by none":      "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}",
	} {
		t.Run(name, func(t *testing.T) {
			digest := func(namespace string) string {
				template := "{registration: [{type: KubeClient, kubeClient: {}}], agentSpec: {workload: {manifests: [" + manifest + "]}}}"
				return renderedFor(t, contentOf(t, template, "{agentInstallNamespace: "+namespace+"}"), Cluster{Name: "cluster1"}).Digest
			}
			if digest("one") == digest("two") {
				t.Error("another namespace is the same content")
			}
		})
	}
}
