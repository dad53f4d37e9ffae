package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/flaw"
)

// manifestsOfYAML is a template with the given manifests.
func manifestsOfYAML(items string) string {
	return "agentSpec: {workload: {manifests: [" + items + "]}}\n"
}

func TestTemplatesThatCannotBeRendered(t *testing.T) {
	const first = "spec.agentSpec.workload.manifests[0]"
	configMap := func(metadata string) string {
		return manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: " + metadata + "}")
	}
	cases := map[string]struct {
		reason, template string
		want             problem.Reason
		field            string
	}{
		"no_name":               {"the hub takes none", configMap("{namespace: a}"), flaw.ReasonInvalidManifest, first + ".metadata.name"},
		"generate_name":         {"the hub takes none", configMap("{name: a, generateName: b}"), flaw.ReasonInvalidManifest, first + ".metadata.generateName"},
		"null":                  {"is not an object", manifestsOfYAML("null"), flaw.ReasonInvalidManifest, first},
		"none":                  {"the hub takes no empty work", manifestsOfYAML(""), flaw.ReasonInvalidManifest, "spec.agentSpec.workload.manifests"},
		"name":                  {"is a path", configMap("{name: a/b}"), flaw.ReasonInvalidManifest, first + ".metadata.name"},
		"namespace":             {"is not a label", configMap("{name: a, namespace: 'a.b'}"), flaw.ReasonInvalidManifest, first + ".metadata.namespace"},
		"rendered_label":        {"is only known when rendered", configMap("{name: a, labels: {x: '" + strings.Repeat("x", 60) + "{{CLUSTER_NAME}}'}}"), flaw.ReasonInvalidManifest, first + ".metadata.labels.x"},
		"annotation":            {"is a number", configMap("{name: a, annotations: {x: 1}}"), flaw.ReasonInvalidManifest, first + ".metadata.annotations.x"},
		"uid":                   {"is the server's", configMap("{name: a, uid: x}"), flaw.ReasonInvalidManifest, first + ".metadata.uid"},
		"resourceVersion":       {"is the server's", configMap("{name: a, resourceVersion: '1'}"), flaw.ReasonInvalidManifest, first + ".metadata.resourceVersion"},
		"reserved annotation":   {"is our mark", configMap("{name: a, annotations: {addonflow.io/digest: x}}"), flaw.ReasonInvalidManifest, first + ".metadata.annotations[addonflow.io/digest]"},
		"NUL":                   {"no manifest may hold", strings.Replace(configMap("{name: a, annotations: {x: \"PH\"}}"), "PH", `\0`, 1), flaw.ReasonInvalidTemplate, first + ".metadata.annotations.x"},
		"containers":            {"are no list", manifestsOfYAML("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: {}}}}}"), flaw.ReasonInvalidManifest, first + ".spec.template.spec.containers"},
		"container":             {"is not an object", manifestsOfYAML("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [x]}}}}"), flaw.ReasonInvalidManifest, first + ".spec.template.spec.containers[0]"},
		"pod spec":              {"is not an object", manifestsOfYAML("{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: x}}}}}"), flaw.ReasonInvalidManifest, first + ".spec.jobTemplate.spec.template.spec"},
		"only_hooks":            {"nothing would be deployed", manifestsOfYAML("{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {addon.open-cluster-management.io/addon-pre-delete: ''}}}"), flaw.ReasonInvalidManifest, "spec.agentSpec.workload.manifests"},
		"helm_hook":             {"would be deployed with the others", manifestsOfYAML("{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {helm.sh/hook: pre-delete}}}"), ReasonNotSupported, first + ".metadata.annotations[helm.sh/hook]"},
		"location":              {"OCM knows three", manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosted}}}"), flaw.ReasonInvalidManifest, first + ".metadata.annotations[addon.open-cluster-management.io/hosted-manifest-location]"},
		"two of one object":     {"differ", manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}"), flaw.ReasonInvalidManifest, "spec.agentSpec.workload.manifests[1]"},
		"custom signer":         {"says nothing", manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}") + "registration: [{type: CustomSigner}]", flaw.ReasonInvalidRegistration, "spec.registration"},
		"ttl":                   {"deletes what is kept", "agentSpec: {deleteOption: {propagationPolicy: Foreground, ttlSecondsAfterFinished: 1}, workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}", ReasonNotSupported, "spec.agentSpec.deleteOption.ttlSecondsAfterFinished"},
		"variable in an option": {"has no value", "agentSpec: {manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: '{{A}}'}}], workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}", flaw.ReasonUnresolvedVariable, "spec.agentSpec.manifestConfigs[0].resourceIdentifier.name"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found := newRenderer(t, contentOf(t, c.template, "")).Check()
			if len(found) != 1 || found[0].Reason != c.want || found[0].Field != c.field || found[0].Template != "hello-template" {
				t.Errorf("%s: got %q", c.reason, found)
			}
		})
	}
}

func TestTemplatesThatRender(t *testing.T) {
	cases := map[string]struct{ reason, template string }{
		"generated leftovers": {"are harmless", manifestsOfYAML("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, creationTimestamp: null}, spec: {template: {metadata: {creationTimestamp: null}, spec: {containers: []}}}, status: {}}")},
		"RBAC name":           {"has colons", manifestsOfYAML("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: 'system:a:b'}}")},
		"metadata only":       {"as ReadOnly allows", manifestsOfYAML("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}}")},
		"equal twice":         {"is one, as for OCM", manifestsOfYAML("{apiVersion: v1, kind: Namespace, metadata: {name: a}}, {apiVersion: v1, kind: Namespace, metadata: {name: a}}")},
		"hook on another":     {"kind is no hook for OCM", manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {addon.open-cluster-management.io/addon-pre-delete: ''}}}")},
		"pre-delete hook":     {"runs when the add-on is removed", manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {open-cluster-management.io/addon-pre-delete: ''}}}")},
		"hosted location":     {"means nothing in the default mode", manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosting}}}")},
		"binding to none":     {"is valid", manifestsOfYAML("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: b}}")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if found := newRenderer(t, contentOf(t, c.template, "{agentInstallNamespace: ns}")).Check(); len(found) > 0 {
				t.Errorf("%s: got %q", c.reason, found)
			}
		})
	}
}

func TestNamespacesThatBecomeOneAreRefused(t *testing.T) {
	template := manifestsOfYAML("{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {x: z}}}, {apiVersion: v1, kind: Namespace, metadata: {name: b}}")
	if found := newRenderer(t, contentOf(t, template, "")).Check(); len(found) > 0 {
		t.Errorf("two namespaces: %q", found)
	}
	if found := newRenderer(t, contentOf(t, template, "{agentInstallNamespace: ns}")).Check(); len(found) != 1 || found[0].Reason != flaw.ReasonInvalidManifest {
		t.Errorf("two that become one: %q", found)
	}
}

func TestCheckLooksAtEveryAssignment(t *testing.T) {
	content := assignments(t)
	content.Templates[1] = templateOf(t, "v2", echo("{{MISSING}}", ""))
	content.Configs[1] = agentOf(t, "b", "{customizedVariables: [{name: 1, value: a}]}")
	var got []string
	for _, f := range newRenderer(t, content).Check() {
		got = append(got, f.Template+f.Config+" "+string(f.Reason))
	}
	want := []string{"v2 UnresolvedVariable", "default/b InvalidConfig"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheckOfDefaultsWithoutATemplate(t *testing.T) {
	content := assignments(t)
	content.Defaults = []ConfigReference{agentReference("a")}
	content.Placements = content.Placements[:1] // the placement canary assigns its template
	if found := newRenderer(t, content).Check(); len(found) > 0 {
		t.Errorf("no cluster need get the defaults: %q", found)
	}
	content.Placements = nil
	found := newRenderer(t, content).Check()
	if len(found) != 1 || found[0].Reason != flaw.ReasonReferenceNotFound {
		t.Errorf("no cluster gets a template: %q", found)
	}
}

func TestMessages(t *testing.T) {
	e := &InvalidError{AddOn: "hello", Findings: []Finding{
		{Template: "t", Field: "spec.a", Message: "is wrong", Hint: "write it right"},
		{Config: "ns/c", Message: "is wrong"},
		{Message: "third"},
		{Message: "fourth"},
		{Message: "fifth"},
	}}
	want := `cannot render add-on "hello": AddOnTemplate/t: spec.a: is wrong; write it right, AddOnDeploymentConfig/ns/c: is wrong, third and 2 more`
	if e.Error() != want {
		t.Errorf("got  %s\nwant %s", e.Error(), want)
	}
}
