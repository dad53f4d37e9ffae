package render

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/rendertest"
)

func templateReference(name string) ConfigReference {
	return ConfigReference{Group: addonGroup, Resource: TemplateResource, Name: name}
}

func agentReference(name string) ConfigReference {
	return ConfigReference{Group: addonGroup, Resource: AgentConfigResource, Namespace: "default", Name: name}
}

// templateOf is an AddOnTemplate with the given spec.
func templateOf(tb testing.TB, name, spec string) Template {
	tb.Helper()
	return Template{Name: name, SpecHash: "hash-of-" + name, Spec: rendertest.Fields(tb, spec)}
}

// agentOf is an AddOnDeploymentConfig with the given spec.
func agentOf(tb testing.TB, name, spec string) Config {
	tb.Helper()
	return Config{
		ConfigReference: agentReference(name), Kind: "AddOnDeploymentConfig", APIVersion: addonGroup + "/v1alpha1",
		SpecHash: "hash-of-" + name, Body: map[string]any{"spec": rendertest.Fields(tb, spec)},
	}
}

// contentOf is the add-on hello with one template as the default and, unless agent is "", one
// AddOnDeploymentConfig as the default.
func contentOf(tb testing.TB, template, agent string) Content {
	tb.Helper()
	c := Content{
		AddOn:     "hello",
		Templates: []Template{templateOf(tb, "hello-template", template)},
		Defaults:  []ConfigReference{templateReference("hello-template")},
	}
	if agent != "" {
		c.Configs = []Config{agentOf(tb, "agent", agent)}
		c.Defaults = append([]ConfigReference{agentReference("agent")}, c.Defaults...)
	}
	return c
}

func newRenderer(tb testing.TB, c Content) *Renderer {
	tb.Helper()
	r, err := NewRenderer(c, chart.InProcess{})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// renderedFor renders content for a cluster.
func renderedFor(tb testing.TB, c Content, cluster Cluster) Rendered {
	tb.Helper()
	got, err := newRenderer(tb, c).Render(cluster)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// objectsFor renders a template and a configuration for cluster1.
func objectsFor(tb testing.TB, template, agent string) []*unstructured.Unstructured {
	tb.Helper()
	objects, err := renderedFor(tb, contentOf(tb, template, agent), Cluster{Name: "cluster1"}).Objects()
	if err != nil {
		tb.Fatal(err)
	}
	return objects
}

func placement(name string) v1alpha1.PlacementReference {
	return v1alpha1.PlacementReference{Namespace: "default", Name: name}
}

// helloTemplate is the example of OCM's templates proposal: a Deployment that registers, a
// ServiceAccount and a binding.
const helloTemplate = `
addonName: hello
agentSpec:
  workload:
    manifests:
    - apiVersion: apps/v1
      kind: Deployment
      metadata:
        name: hello-agent
        namespace: open-cluster-management-agent-addon
        labels: {app: hello-agent}
      spec:
        replicas: 1
        selector: {matchLabels: {app: hello-agent}}
        template:
          metadata: {labels: {app: hello-agent}}
          spec:
            serviceAccountName: hello-agent-sa
            containers:
            - name: agent
              image: quay.io/open-cluster-management/addon-examples:latest
              args: ["/helloworld", "agent", "--cluster-name={{CLUSTER_NAME}}", "--hub-kubeconfig={{HUB_KUBECONFIG}}", "--v={{LOG_LEVEL}}"]
    - apiVersion: v1
      kind: ServiceAccount
      metadata: {name: hello-agent-sa, namespace: open-cluster-management-agent-addon}
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRoleBinding
      metadata: {name: hello-agent}
      roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
      subjects:
      - {kind: ServiceAccount, name: hello-agent-sa, namespace: open-cluster-management-agent-addon}
registration:
- type: KubeClient
  kubeClient:
    hubPermissions:
    - type: CurrentCluster
      currentCluster: {clusterRoleName: cm-admin}
- type: CustomSigner
  customSigner:
    signerName: example.com/signer-test
    signingCA: {name: ca-secret}
`

const helloAgent = `
agentInstallNamespace: open-cluster-management-agent-addon
customizedVariables:
- {name: LOG_LEVEL, value: "4"}
`
