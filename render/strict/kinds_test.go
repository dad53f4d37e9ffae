package strict

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKindsOfKubernetes(t *testing.T) {
	types, err := compiledTypes()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reason           string
		apiVersion, kind string
		meant, message   string
	}{
		"Known":          {"a Deployment is one", "apps/v1", "Deployment", "apps/v1 Deployment", ""},
		"Misspelt":       {"the API server has no such kind", "apps/v1", "Deploymnt", "apps/v1 Deployment", `kind: apps/v1 has no kind "Deploymnt"; did you mean Deployment?`},
		"Case":           {"kinds are compared by case", "v1", "configmap", "v1 ConfigMap", `kind: v1 has no kind "configmap"; did you mean ConfigMap?`},
		"OtherGroup":     {"the kind is right and the group is not", "v1", "Deployment", "apps/v1 Deployment", `kind: v1 has no kind "Deployment"; write apiVersion: apps/v1`},
		"OtherBuiltIn":   {"roles are Kubernetes' own, too", "rbac.authorization.k8s.io/v1", "ClusterRol", "rbac.authorization.k8s.io/v1 ClusterRole", `kind: rbac.authorization.k8s.io/v1 has no kind "ClusterRol"; did you mean ClusterRole?`},
		"Definition":     {"so are definitions", "apiextensions.k8s.io/v1", "CustomResourceDefinitions", "apiextensions.k8s.io/v1 CustomResourceDefinition", `kind: apiextensions.k8s.io/v1 has no kind "CustomResourceDefinitions"; did you mean CustomResourceDefinition?`},
		"Nothing":        {"nothing known is near: it may be newer", "batch/v1", "Pipeline", "batch/v1 Pipeline", `kind: batch/v1 has no kind "Pipeline"; if a newer Kubernetes has it, annotate addonflow.io/newer-names: Pipeline`},
		"Newer":          {"the template says that it is newer", "batch/v1", "Frobnicator", "batch/v1 Frobnicator", ""},
		"ListOfAKind":    {"a list is not an object", "apps/v1", "DeploymentList", "apps/v1 DeploymentList", "kind: a DeploymentList cannot be deployed; write its items as manifests of their own"},
		"Options":        {"what requests carry is not an object", "v1", "DeleteOptions", "v1 DeleteOptions", `kind: v1 has no kind "DeleteOptions"; if a newer Kubernetes has it, annotate addonflow.io/newer-names: DeleteOptions`},
		"Subresource":    {"objects of subresources are not checked here", "autoscaling/v1", "Scale", "autoscaling/v1 Scale", ""},
		"Variable":       {"a variable is judged when it is replaced", "apps/v1", "{{KIND}}", "apps/v1 {{KIND}}", ""},
		"Unstable":       {"kinds of such a version come and go", "resource.k8s.io/v1alpha3", "PodSchedulingContext", "resource.k8s.io/v1alpha3 PodSchedulingContext", ""},
		"LaterVersion":   {"a version that is not known has kinds that are not known", "batch/v2", "Task", "batch/v2 Task", ""},
		"Custom":         {"a custom kind", "apps.openshift.io/v1", "DeploymentConfig", "apps.openshift.io/v1 DeploymentConfig", ""},
		"NoVersionAtAll": {"reported by itself", "/v1", "Deployment", "/v1 Deployment", ""},
		"Extension":      {"the group only sounds like one of Kubernetes' own", "gateway.networking.k8s.io/v1", "Gateway", "gateway.networking.k8s.io/v1 Gateway", ""},
	} {
		t.Run(name, func(t *testing.T) {
			version, kind, flaws := types.stable.judge("", c.apiVersion, c.kind, []string{"Frobnicator"})
			message := ""
			for _, f := range flaws {
				message += string(f.Field) + ": " + f.Message + "; " + f.Hint
			}
			if diff := cmp.Diff([]string{c.meant, c.message}, []string{version + " " + kind, message}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
