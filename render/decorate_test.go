package render

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
)

// podTemplate is a template with one workload of a kind.
func podTemplate(apiVersion, kind, pod string) string {
	spec := "{template: {spec: " + pod + "}}"
	if kind == "CronJob" {
		spec = "{schedule: '* * * * *', jobTemplate: {spec: " + spec + "}}"
	}
	return fmt.Sprintf("agentSpec: {workload: {manifests: [{apiVersion: %s, kind: %s, metadata: {name: w, namespace: ns}, spec: %s}]}}\n", apiVersion, kind, spec)
}

func podSpec(object map[string]any) any {
	if object["kind"] == "CronJob" {
		return rendertest.At(object, "spec", "jobTemplate", "spec", "template", "spec")
	}
	return rendertest.At(object, "spec", "template", "spec")
}

const onePod = "{containers: [{name: c, image: quay.io/o/c:1}]}"

func yamlList(t *testing.T, text string) any {
	t.Helper()
	return rendertest.Fields(t, "list: "+text)["list"]
}

func TestEnvironment(t *testing.T) {
	const agent = "{agentInstallNamespace: ns, customizedVariables: [{name: LEVEL, value: '4'}], proxyConfig: {httpProxy: 'http://p', httpsProxy: 'https://p', noProxy: 'a,b', caBundle: Y2E=}}"
	const injected = `{name: HUB_KUBECONFIG, value: /managed/hub-kubeconfig/kubeconfig},
		{name: CLUSTER_NAME, value: cluster1}, {name: INSTALL_NAMESPACE, value: ns},
		{name: HTTP_PROXY, value: 'http://p'}, {name: http_proxy, value: 'http://p'},
		{name: HTTPS_PROXY, value: 'https://p'}, {name: https_proxy, value: 'https://p'},
		{name: NO_PROXY, value: 'a,b'}, {name: no_proxy, value: 'a,b'},
		{name: CA_BUNDLE_FILE_PATH, value: /managed/proxy-ca/ca-bundle.crt}`
	const own = "{name: MINE, value: x}, {name: CLUSTER_NAME, value: own}"
	pod := "{initContainers: [{name: i, env: [" + own + "]}], containers: [{name: c, env: [" + own + "]}]}"
	withoutOwn := strings.Replace(injected, "{name: CLUSTER_NAME, value: cluster1}, ", "", 1)

	for _, k := range workloadKinds {
		t.Run(k.name, func(t *testing.T) {
			template := podTemplate(strings.TrimPrefix(k.group+"/v1", "/"), k.name, pod) + "registration: [{type: KubeClient}]"
			spec := podSpec(objectsFor(t, template, agent)[0].Object)
			want := yamlList(t, "["+own+", "+injected+"]") // OCM appends, so that the injected value wins
			if !k.ocm {
				want = yamlList(t, "["+own+", "+withoutOwn+"]")
			}
			initial := yamlList(t, "["+own+", "+withoutOwn+"]")
			if k.template == nil { // as declared
				want, initial = yamlList(t, "["+own+"]"), yamlList(t, "["+own+"]")
			}
			if diff := cmp.Diff(want, rendertest.At(spec, "containers", 0, "env")); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(initial, rendertest.At(spec, "initContainers", 0, "env")); diff != "" {
				t.Errorf("init container (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEmptyValueIsOmittedAsInTheTypedForm(t *testing.T) {
	template := podTemplate("apps/v1", "Deployment", onePod) + "registration: []"
	agent := "{agentInstallNamespace: '', customizedVariables: [{name: HUB_KUBECONFIG, value: ''}]}"
	env := rendertest.At(podSpec(objectsFor(t, template, agent)[0].Object), "containers", 0, "env")
	if diff := cmp.Diff(yamlList(t, "[{name: HUB_KUBECONFIG}, {name: CLUSTER_NAME, value: cluster1}]"), env); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVolumes(t *testing.T) {
	const registration = `registration:
- {type: KubeClient}
- {type: CustomSigner, customSigner: {signerName: example.com/signer-test, signingCA: {name: ca}}}
`
	const volumes = "{name: hub-kubeconfig, secret: {secretName: hello-hub-kubeconfig}}, {name: cert-example-com-signer-test, secret: {secretName: hello-example.com-signer-test-client-cert}}"
	const mounts = "{name: hub-kubeconfig, mountPath: /managed/hub-kubeconfig}, {name: cert-example-com-signer-test, mountPath: /managed/example.com-signer-test}"
	cases := map[string]struct{ reason, pod, volumes, mounts, initMounts string }{
		"appended": {
			"to what is there", "{volumes: [{name: v}], initContainers: [{name: i}], containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}]}",
			"[{name: v}, " + volumes + "]", "[{name: v, mountPath: /v}, " + mounts + "]", "[" + mounts + "]",
		},
		"no containers": {"nothing to mount in", "{restartPolicy: Always}", "", "", ""},
		"brought along": {
			"an init container that mounts the volume by itself, as it must under OCM", "{initContainers: [{name: i, volumeMounts: [{name: hub-kubeconfig, mountPath: /managed/hub-kubeconfig}]}], containers: [{name: c}]}",
			"[" + volumes + "]", "[" + mounts + "]", "[" + mounts + "]",
		},
		"own volume": {
			"of the same name stays the only one", "{volumes: [{name: hub-kubeconfig, emptyDir: {}}], containers: [{name: c}]}",
			"[{name: hub-kubeconfig, emptyDir: {}}, {name: cert-example-com-signer-test, secret: {secretName: hello-example.com-signer-test-client-cert}}]", "[" + mounts + "]", "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := podSpec(objectsFor(t, podTemplate("apps/v1", "DaemonSet", c.pod)+registration, "")[0].Object)
			for path, want := range map[string]string{"volumes": c.volumes, "containers": c.mounts, "initContainers": c.initMounts} {
				got := rendertest.At(spec, path)
				if path != "volumes" {
					got = rendertest.At(got, 0, "volumeMounts")
				}
				if diff := cmp.Diff(yamlList(t, want), got); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", c.reason, path, diff)
				}
			}
		})
	}
}

func TestTwoRegistrationsOfOneTypeMountOnce(t *testing.T) {
	template := podTemplate("apps/v1", "Deployment", onePod) + "registration: [{type: KubeClient}, {type: KubeClient}]"
	volumes, _ := rendertest.At(podSpec(objectsFor(t, template, "")[0].Object), "volumes").([]any)
	if len(volumes) != 1 {
		t.Errorf("got %v", volumes)
	}
}

func TestProxyReachesEveryContainer(t *testing.T) {
	bundle := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\n"))
	objects := objectsFor(t, podTemplate("apps/v1", "Deployment", onePod), "{agentInstallNamespace: '', proxyConfig: {caBundle: "+bundle+"}}")
	spec := podSpec(objects[0].Object)
	want := map[string]any{
		"env":          yamlList(t, "[{name: CLUSTER_NAME, value: cluster1}, {name: CA_BUNDLE_FILE_PATH, value: /managed/proxy-ca/ca-bundle.crt}]"),
		"volumeMounts": yamlList(t, "[{name: proxy-ca-bundle, mountPath: /managed/proxy-ca}]"),
		"name":         "c", "image": "quay.io/o/c:1",
	}
	if diff := cmp.Diff(any(want), rendertest.At(spec, "containers", 0)); diff != "" {
		t.Errorf("a bundle alone (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(yamlList(t, "[{name: proxy-ca-bundle, configMap: {name: hello-proxy-ca}}]"), rendertest.At(spec, "volumes")); diff != "" {
		t.Errorf("volume (-want +got):\n%s", diff)
	}
	wantObject := rendertest.Fields(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: hello-proxy-ca, namespace: ns}, data: {ca-bundle.crt: \"-----BEGIN CERTIFICATE-----\\n\"}}")
	if len(objects) != 2 {
		t.Fatalf("got %d objects", len(objects))
	}
	if diff := cmp.Diff(wantObject, objects[1].Object); diff != "" {
		t.Errorf("the bundle lies where its pods are (-want +got):\n%s", diff)
	}
}

func TestProxyBundleReachesEveryNamespaceWithAPod(t *testing.T) {
	two := `agentSpec: {workload: {manifests: [
	  {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: ns2}},
	  {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: b, namespace: ns1}},
	  {apiVersion: batch/v1, kind: Job, metadata: {name: c, namespace: ns2}}]}}`
	cases := map[string]struct {
		reason, template, namespace string
		want                        []string
	}{
		"each":      {"one for each namespace with pods", two, "''", []string{"ns2", "ns1"}},
		"one":       {"all pods come to lie there", two, "moved", []string{"moved"}},
		"no pods":   {"OCM's default", echo("x", ""), "''", []string{"open-cluster-management-agent-addon"}},
		"no pods 2": {"moved as OCM does", echo("x", ""), "moved", []string{"moved"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range objectsFor(t, c.template, "{agentInstallNamespace: "+c.namespace+", proxyConfig: {httpProxy: x, caBundle: Y2E=}}") {
				if o.GetName() == "hello-proxy-ca" {
					got = append(got, o.GetNamespace())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestNodePlacement(t *testing.T) {
	const pod = "{nodeSelector: {own: x}, tolerations: [{key: own}], containers: [{name: c}]}"
	cases := map[string]struct{ reason, placement, selector, tolerations string }{
		"both":               {"replaced", "{nodeSelector: {a: b}, tolerations: [{key: k, operator: Exists}]}", "{a: b}", "[{key: k, operator: Exists}]"},
		"tolerations alone":  {"OCM drops them", "{tolerations: [{key: k}]}", "{own: x}", "[{key: k}]"},
		"selector alone":     {"OCM drops the pod's tolerations", "{nodeSelector: {a: b}}", "{a: b}", "[{key: own}]"},
		"empty placement":    {"says nothing", "{}", "{own: x}", "[{key: own}]"},
		"empty selector":     {"matches all nodes", "{nodeSelector: {}}", "null", "[{key: own}]"},
		"empty tolerations":  {"tolerates nothing", "{tolerations: []}", "{own: x}", "null"},
		"placement not said": {"says nothing", "null", "{own: x}", "[{key: own}]"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := podSpec(objectsFor(t, podTemplate("apps/v1", "Deployment", pod), "{agentInstallNamespace: '', nodePlacement: "+c.placement+"}")[0].Object)
			if diff := cmp.Diff(yamlList(t, c.selector), rendertest.At(spec, "nodeSelector")); diff != "" {
				t.Errorf("%s: selector (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(yamlList(t, c.tolerations), rendertest.At(spec, "tolerations")); diff != "" {
				t.Errorf("%s: tolerations (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestImageRegistries(t *testing.T) {
	const annotation = `{"registries":[{"source":"quay.io/o","mirror":"cluster.local/m"}]}`
	cases := map[string]struct{ reason, registries, annotation, image, want string }{
		"nothing":             {"stays", "null", "", "quay.io/o/c:1", "quay.io/o/c:1"},
		"annotation":          {"of the cluster", "null", annotation, "quay.io/o/c:1", "cluster.local/m/c:1"},
		"config":              {"outranks the annotation", "[{source: quay.io/o, mirror: config.local}]", annotation, "quay.io/o/c:1", "config.local/c:1"},
		"config without hit":  {"outranks it wholesale", "[{source: other, mirror: x}]", annotation, "quay.io/o/c:1", "quay.io/o/c:1"},
		"empty list":          {"outranks it, too", "[]", annotation, "quay.io/o/c:1", "quay.io/o/c:1"},
		"last match":          {"counts", "[{source: quay.io, mirror: a}, {source: quay.io/o, mirror: b}]", "", "quay.io/o/c:1", "b/c:1"},
		"prefix is text":      {"as OCM has it", "[{source: quay.io/o, mirror: m}]", "", "quay.io/other/c", "mther/c"},
		"no source":           {"replaces every registry", "[{mirror: m/}]", "", "quay.io/a/b/c@sha256:00", "m/c@sha256:00"},
		"trailing slashes":    {"do not matter", "[{source: quay.io/o/, mirror: m/}]", "", "quay.io/o/c:1", "m/c:1"},
		"empty mirror":        {"is ignored", "[{source: quay.io/o, mirror: ''}]", "", "quay.io/o/c:1", "quay.io/o/c:1"},
		"tag in source":       {"one image", "[{source: 'quay.io/o/c:1', mirror: 'm/c:2'}]", "", "quay.io/o/c:1", "m/c:2"},
		"not the same source": {"stays", "[{source: docker.io, mirror: m}]", "", "quay.io/o/c:1", "quay.io/o/c:1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pod := "{initContainers: [{name: i, image: '" + c.image + "'}], containers: [{name: c, image: '" + c.image + "'}]}"
			content := contentOf(t, podTemplate("apps/v1", "Deployment", pod), "{agentInstallNamespace: '', registries: "+c.registries+"}")
			objects, err := renderedFor(t, content, Cluster{Name: "cluster1", ImageRegistries: c.annotation}).Objects()
			if err != nil {
				t.Fatal(err)
			}
			for _, list := range []string{"containers", "initContainers"} {
				if got := rendertest.At(podSpec(objects[0].Object), list, 0, "image"); got != c.want {
					t.Errorf("%s: %s: got %v, want %s", c.reason, list, got, c.want)
				}
			}
		})
	}
}

func TestResourceRequirements(t *testing.T) {
	requirement := func(id, cpu string) string {
		return "{containerID: '" + id + "', resources: {requests: {cpu: '" + cpu + "'}}}"
	}
	cases := map[string]struct {
		reason, apiVersion, kind, requirements string
		want                                   any
	}{
		"all":              {"every container", "apps/v1", "Deployment", requirement("*:*:*", "0.5"), "500m"},
		"exact":            {"matches", "apps/v1", "Deployment", requirement("deployments:w:c", "1"), "1"},
		"last":             {"counts", "apps/v1", "DaemonSet", requirement("*:*:*", "1") + "," + requirement("daemonsets:w:*", "2"), "2"},
		"other type":       {"does not match", "apps/v1", "Deployment", requirement("daemonsets:*:*", "1"), nil},
		"anchored":         {"no part of a name", "apps/v1", "Deployment", requirement("deployments:w:container", "1"), nil},
		"stateful set":     {"beyond OCM", "apps/v1", "StatefulSet", requirement("statefulsets:w:c", "1"), "1"},
		"job":              {"beyond OCM", "batch/v1", "Job", requirement("jobs:w:c", "1"), "1"},
		"cron job":         {"beyond OCM", "batch/v1", "CronJob", requirement("cronjobs:w:c", "1"), "1"},
		"pattern":          {"a part is one", "apps/v1", "Deployment", requirement("deployments:[v-x]:c|d", "1"), "1"},
		"pattern as whole": {"of a part only", "apps/v1", "Deployment", requirement("deployments:x|w:nope", "1"), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			agent := "{agentInstallNamespace: '', resourceRequirements: [" + c.requirements + "]}"
			spec := podSpec(objectsFor(t, podTemplate(c.apiVersion, c.kind, onePod), agent)[0].Object)
			if got := rendertest.At(spec, "containers", 0, "resources", "requests", "cpu"); got != c.want {
				t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
			}
		})
	}
}

func TestConfigsThatCannotBeUsed(t *testing.T) {
	cases := map[string]struct {
		reason, agent string
		want          problem.Reason
		field         string
	}{
		"pattern":     {"does not compile", "resourceRequirements: [{containerID: 'deployments:(:c', resources: {}}]", flaw.ReasonInvalidConfig, "spec.resourceRequirements[0].containerID"},
		"long":        {"is too long", "resourceRequirements: [{containerID: 'deployments:" + strings.Repeat("a", 300) + ":c', resources: {}}]", flaw.ReasonInvalidConfig, "spec.resourceRequirements[0].containerID"},
		"two_parts":   {"is not a container", "resourceRequirements: [{containerID: 'deployments:c', resources: {}}]", flaw.ReasonInvalidConfig, "spec.resourceRequirements[0].containerID"},
		"bundle":      {"is no base64", "proxyConfig: {caBundle: '%'}", flaw.ReasonInvalidConfig, "spec"},
		"bundle_text": {"is not text", "proxyConfig: {caBundle: /w==}", flaw.ReasonInvalidConfig, "spec.proxyConfig.caBundle"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found := newRenderer(t, contentOf(t, echo("x", ""), c.agent)).Check()
			if len(found) != 1 || found[0].Reason != c.want || found[0].Field != c.field {
				t.Errorf("%s: got %v", c.reason, found)
			}
		})
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	template := podTemplate("apps/v1", "Deployment", "{futureField: {a: 1.5}, containers: [{name: c, futureField: [1]}]}")
	spec := podSpec(objectsFor(t, template, "")[0].Object)
	if rendertest.At(spec, "futureField", "a") != 1.5 || rendertest.At(spec, "containers", 0, "futureField", 0) != int64(1) {
		t.Errorf("got %v", spec)
	}
	if _, ok := objectsFor(t, template, "")[0].Object["status"]; ok {
		t.Error("an empty status was added")
	}
}
