package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const keepAnnotation = "helm.sh/resource-policy"

// charted renders manifests/chart as helm template does, and returns its objects by
// kind, namespace and name.
func charted(t *testing.T, namespace, values string) (map[string]map[string]any, error) {
	t.Helper()
	chart, err := loader.LoadDir("chart")
	if err != nil {
		t.Fatal(err)
	}
	given, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "addonflow", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	objects := map[string]map[string]any{}
	for name, text := range texts {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			addObject(t, objects, document)
		}
	}
	return objects, nil
}

// addObject decodes a document of YAML, unless it is empty.
func addObject(t *testing.T, objects map[string]map[string]any, document string) {
	t.Helper()
	var fields map[string]any
	if err := yaml.UnmarshalStrict([]byte(document), &fields); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	if len(fields) == 0 {
		return
	}
	metadata, _ := fields["metadata"].(map[string]any)
	key := fmt.Sprint(fields["kind"], " ", metadata["namespace"], "/", metadata["name"])
	if objects[key] != nil {
		t.Errorf("%s is there twice", key)
	}
	objects[key] = fields
}

// decode reads an object of a chart into its type, strictly.
func decode[T any](t *testing.T, fields map[string]any) T {
	t.Helper()
	text, err := yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := yaml.UnmarshalStrict(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestChartInstallsTheSame: with default values, Helm installs the same as kubectl, except for
// the Namespace, which Helm creates, and for CRDs, which stay when the release is uninstalled.
func TestChartInstallsTheSame(t *testing.T) {
	for dir, values := range map[string]string{
		"install": "", "replace": "addonManager: replace", "testdata/default-canary": "defaultCanary: true", "testdata/monitoring": "monitoring: true",
		"testdata/tenants": "tenants: {team-a: {serviceAccounts: [deployer], addOns: [log-shipper, team-a-*], kinds: [ConfigMap], targetNamespaces: [team-a-*], targetKinds: [ClusterRole.rbac.authorization.k8s.io]}}",
	} {
		t.Run(dir, func(t *testing.T) {
			want := map[string]map[string]any{}
			for _, o := range append(built(t, "prerequisites"), built(t, dir)...) {
				if o.kind != "Namespace" {
					addObject(t, want, string(o.text))
				}
			}
			got, err := charted(t, systemNamespace, values)
			if err != nil {
				t.Fatal(err)
			}
			for key, fields := range got {
				if fields["kind"] != "CustomResourceDefinition" {
					continue
				}
				annotations, _ := fields["metadata"].(map[string]any)["annotations"].(map[string]any)
				if annotations[keepAnnotation] != "keep" {
					t.Errorf("%s goes with the release, and every rollout with it", key)
				}
				delete(annotations, keepAnnotation)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("manifests/%s and manifests/chart (-kubectl +helm):\n%s", dir, diff)
			}
		})
	}
}

// TestChartRunsFromAMirror: image.repository is all that a hub without the Internet sets; nothing else
// that is installed names the public registry.
func TestChartRunsFromAMirror(t *testing.T) {
	objects, err := charted(t, systemNamespace, "image: {repository: registry.example.com/addonflow}\nmonitoring: true")
	if err != nil {
		t.Fatal(err)
	}
	deployment := decode[appsv1.Deployment](t, objects["Deployment "+systemNamespace+"/addonflow"])
	if image := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, "registry.example.com/addonflow:v") {
		t.Errorf("the operator runs %s", image)
	}
	for key, fields := range objects {
		text, err := yaml.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "ghcr.io") {
			t.Errorf("%s names the public registry", key)
		}
	}
}

// TestChartFollowsItsNamespace: neither objects nor subjects name the default namespace.
func TestChartFollowsItsNamespace(t *testing.T) {
	objects, err := charted(t, "fleet-system", "{addonManager: replace, monitoring: true}")
	if err != nil {
		t.Fatal(err)
	}
	for key, fields := range objects {
		text, err := yaml.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), systemNamespace) {
			t.Errorf("%s names %s:\n%s", key, systemNamespace, text)
		}
	}
}

func TestChartValues(t *testing.T) {
	objects, err := charted(t, systemNamespace, `
image: {digest: "sha256:`+strings.Repeat("0a", 32)+`", pullSecrets: [{name: registry}]}
replicas: 3
watchNamespace: fleet
pages: {publicURL: "https://hub.example/addonflow", tlsSecret: pages, proxy: true}
allowedHubRoles: [ClusterRole/a, Role/b/c]
signingCANamespaces: [d, e]
extraArgs: [--log-level=debug]
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraRules: [{apiGroups: [example.com], resources: [widgets], verbs: [get]}]
podLabels: {team: fleet}
nodeSelector: {disk: ssd}
tolerations: [{operator: Exists}]
priorityClassName: system-cluster-critical
`)
	if err != nil {
		t.Fatal(err)
	}
	deployment := decode[appsv1.Deployment](t, objects["Deployment "+systemNamespace+"/addonflow"])
	pod := deployment.Spec.Template.Spec
	operator := pod.Containers[0]
	wantArgs := []string{
		"controller", "--enable-leader-election", "--dashboard-addr=:8081", "--public-url=https://hub.example/addonflow",
		"--dashboard-tls-cert-file=/etc/addonflow/pages/tls.crt", "--dashboard-tls-key-file=/etc/addonflow/pages/tls.key",
		"--dashboard-proxy-ca-file=/etc/addonflow/pages/ca.crt", "--watch-namespace=fleet", "--allowed-hub-roles=ClusterRole/a,Role/b/c",
		"--signing-ca-namespaces=d,e", "--log-level=debug",
	}
	if diff := cmp.Diff(wantArgs, operator.Args); diff != "" {
		t.Errorf("args (-want +got):\n%s", diff)
	}
	for what, ok := range map[string]bool{
		"image":             operator.Image == "ghcr.io/addonflow/addonflow@sha256:"+strings.Repeat("0a", 32),
		"pullSecrets":       len(pod.ImagePullSecrets) == 1 && pod.ImagePullSecrets[0].Name == "registry",
		"replicas":          *deployment.Spec.Replicas == 3,
		"extraEnv":          len(operator.Env) == 3 && operator.Env[2].Name == "HTTPS_PROXY",
		"podLabels":         deployment.Spec.Template.Labels["team"] == "fleet" && deployment.Spec.Template.Labels["app"] == "addonflow",
		"nodeSelector":      pod.NodeSelector["disk"] == "ssd",
		"pages":             len(pod.Volumes) == 1 && pod.Volumes[0].Secret.SecretName == "pages" && operator.VolumeMounts[0].MountPath == "/etc/addonflow/pages",
		"tolerations":       len(pod.Tolerations) == 1,
		"priorityClassName": pod.PriorityClassName == "system-cluster-critical",
	} {
		if !ok {
			t.Errorf("%s of the values did not arrive: %v", what, deployment.Spec)
		}
	}
	extra := decode[rbacv1.ClusterRole](t, objects["ClusterRole <nil>/addonflow-extra"])
	if extra.Labels["addonflow.io/aggregate-to-operator"] != "true" || extra.Rules[0].Resources[0] != "widgets" {
		t.Errorf("extraRules do not reach the operator: %v", extra)
	}
}

// TestChartRefusesWhatItDoesNotKnow: an unknown value that is silently ignored would mislead an
// admin.
func TestChartRefusesWhatItDoesNotKnow(t *testing.T) {
	for values, want := range map[string]string{
		"addonManger: replace":                        "addonManger",
		"addonManager: both":                          "addonManager",
		"image: {name: addonflow}":                    "name",
		"image: {digest: latest}":                     "digest",
		"pages: {publicURL: hub.example}":             "publicURL",
		"replicas: 0":                                 "replicas",
		"replicas: two":                               "replicas",
		"allowedHubRoles: [hello]":                    "allowedHubRoles",
		"extraRules: [{resources: [pods], verb: []}]": "verb",
		"extraArgs: --log-level=debug":                "extraArgs",
		"tenants: {team-a: {addOns: [hello]}}":        "serviceAccounts",
	} {
		if _, err := charted(t, systemNamespace, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %s", values, err, want)
		}
	}
}
