package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/render/chart"
)

// bound is a renderer that may use the namespaces team-a and team-a-*, and ClusterRoles.
func bound(t *testing.T, c Content) *Renderer {
	t.Helper()
	r, err := NewRendererWithin(&Bounds{Namespaces: []string{"team-a", "team-a-*"}, Kinds: []string{"ClusterRole.rbac.authorization.k8s.io"}}, c, chart.InProcess{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBounds_RefuseWhatATenantMayNotDeploy: in the check and in each rendering, at the field that is at
// fault.
func TestBounds_RefuseWhatATenantMayNotDeploy(t *testing.T) {
	const (
		first     = "AddOnTemplate/hello-template: spec.agentSpec.workload.manifests[0]."
		foreign   = "the tenant may not use namespace \"kube-system\" of managed clusters; allowed: [team-a team-a-*]"
		unplaced  = " without a namespace to managed clusters; allowed: [ClusterRole.rbac.authorization.k8s.io]"
		mine      = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-a}}"
		workload  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: kube-system}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}"
		annotated = "{addon.open-cluster-management.io/hosted-manifest-location: hosting}"
	)
	for name, c := range map[string]struct{ manifest, agent, want string }{
		"its namespace":            {manifest: mine},
		"a namespace by pattern":   {manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-a-b}}"},
		"its Namespace":            {manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: team-a-b}}"},
		"a kind that is listed":    {manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: []}"},
		"moved to its namespace":   {manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}", agent: "{agentInstallNamespace: team-a}"},
		"another namespace":        {manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}", want: first + "metadata.namespace: " + foreign},
		"another Namespace":        {manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}", want: first + "metadata.name: " + foreign},
		"its Namespace, pretended": {manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, namespace: team-a}}", want: first + "metadata.name: " + foreign},
		"a kind that is not listed": {
			manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}",
			want:     first + "kind: the tenant may not deploy objects of kind ClusterRoleBinding.rbac.authorization.k8s.io" + unplaced,
		},
		"a namespace that its kind has not": {
			manifest: "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a, namespace: team-a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}",
			want:     first + "kind: the tenant may not deploy objects of kind ClusterRoleBinding.rbac.authorization.k8s.io" + unplaced,
		},
		"a kind of unknown scope": {
			manifest: "{apiVersion: example.com/v1, kind: Region, metadata: {name: a}}",
			want:     first + "kind: the tenant may not deploy objects of kind Region.example.com" + unplaced,
		},
		"a hook": {
			manifest: mine + ", {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: kube-system, annotations: {addon.open-cluster-management.io/addon-pre-delete: ''}}, spec: {containers: [{name: a, image: b}]}}",
			want:     "AddOnTemplate/hello-template: spec.agentSpec.workload.manifests[1].metadata.namespace: " + foreign,
		},
		"the hosting cluster": {
			manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system, annotations: " + annotated + "}}",
			want:     first + "metadata.namespace: " + foreign,
		},
		"by configuration": {
			manifest: mine + ", {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: team-a}}", agent: "{agentInstallNamespace: kube-system}",
			want: "AddOnDeploymentConfig/default/agent: spec.agentInstallNamespace: " + foreign,
		},
		"by variable": {
			manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: '{{WHERE}}'}}", agent: "{agentInstallNamespace: '', customizedVariables: [{name: WHERE, value: kube-system}]}",
			want: first + "metadata.namespace: " + foreign,
		},
		"an injected object": {
			manifest: mine, agent: "{agentInstallNamespace: '', proxyConfig: {httpProxy: 'http://a', caBundle: YQ==}}",
			want: "AddOnTemplate/hello-template: spec.agentSpec.workload.manifests: " + strings.ReplaceAll(foreign, "kube-system", defaultInstallNamespace),
		},
		"several": {
			manifest: workload + ", {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-b}}",
			want:     first + "metadata.namespace: " + foreign + ", AddOnTemplate/hello-template: spec.agentSpec.workload.manifests[1].metadata.namespace: " + strings.Replace(foreign, "kube-system", "team-b", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := bound(t, contentOf(t, "agentSpec: {workload: {manifests: ["+c.manifest+"]}}", c.agent))
			var found []string
			for _, f := range r.Check() {
				found = append(found, f.String())
			}
			if got := strings.Join(found, ", "); got != c.want {
				t.Errorf("Check:\n got %s\nwant %s", got, c.want)
			}
			for _, cluster := range []Cluster{{Name: "c1"}, {Name: "c1", Hosting: "c2"}} {
				_, err := r.Render(cluster)
				if digest, _ := r.Digest(cluster); (err == nil) != (c.want == "") || (digest == "") != (c.want != "") {
					t.Errorf("rendered for %v: %v", cluster, err)
				}
			}
			if free := newRenderer(t, r.content).Check(); len(free) > 0 {
				t.Errorf("without bounds: %v", free)
			}
		})
	}
}

// TestBounds_HoldForEachCluster: what one cluster's configuration, template, label or annotation moves
// out of bounds is not rendered for it.
func TestBounds_HoldForEachCluster(t *testing.T) {
	const mine = "agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-a}}]}}"
	moving := agentOf(t, "moving", "{agentInstallNamespace: kube-system}")
	foreign := Config{
		ConfigReference: templateReference("foreign"), Kind: "AddOnTemplate", APIVersion: addonGroup + "/v1alpha1", SpecHash: "foreign",
		Body: map[string]any{"spec": templateOf(t, "foreign", strings.Replace(mine, "team-a", "kube-system", 1)).Spec},
	}
	r := bound(t, contentOf(t, mine, ""))
	if _, err := r.Render(Cluster{Name: "c1"}); err != nil {
		t.Fatal(err)
	}
	for _, own := range []Config{moving, foreign} {
		if _, err := r.Render(Cluster{Name: "c1", Configs: []Config{own}}); err == nil || !strings.Contains(err.Error(), `may not use namespace "kube-system"`) {
			t.Errorf("%s: %v", own, err)
		}
	}

	labelled := bound(t, contentOf(t, strings.Replace(mine, "team-a", "'{{CLUSTER_LABEL_zone}}'", 1), ""))
	for zone, allowed := range map[string]bool{"team-a-eu": true, "team-b": false} {
		if _, err := labelled.Render(Cluster{Name: "c1", Labels: map[string]string{"zone": zone}}); (err == nil) != allowed {
			t.Errorf("label %s: %v", zone, err)
		}
	}

	packaged := bound(t, charted("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: {{ .Values.where | default \"team-a\" }}}\n"))
	if found := packaged.Check(); len(found) > 0 {
		t.Error(found)
	}
	_, err := packaged.Render(Cluster{Name: "c1", Values: `{"where": "kube-system"}`})
	if err == nil || !strings.Contains(err.Error(), `AddOnPackage/hello: templates/settings.yaml: ConfigMap kube-system/settings.metadata.namespace: the tenant may not use namespace "kube-system"`) {
		t.Errorf("values: %v", err)
	}
}

// TestBounds_HoldForCredentials: the namespace of the agent's credentials is one of a managed cluster.
func TestBounds_HoldForCredentials(t *testing.T) {
	const registering = "{agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team-a}}]}}, registration: [{type: KubeClient, kubeClient: {}}]}"
	found := bound(t, contentOf(t, registering, "")).Check()
	if len(found) != 1 || found[0].Field != "spec.registration" || found[0].Reason != ReasonTenantDenied {
		t.Error(found)
	}
	if found := bound(t, contentOf(t, registering, "{agentInstallNamespace: team-a}")).Check(); len(found) > 0 {
		t.Error(found)
	}
}

// TestBounds_AreInputs: what is known of a rendering does not outlive other bounds.
func TestBounds_AreInputs(t *testing.T) {
	content := contentOf(t, helloTemplate, "")
	var keys []string
	for _, bounds := range []*Bounds{nil, {Namespaces: []string{"*"}}, {Namespaces: []string{"a"}}} {
		r, err := NewRendererWithin(bounds, content, nil)
		if err != nil {
			t.Fatal(err)
		}
		in, err := r.Inputs(Cluster{Name: "c1"})
		if err != nil || slices.Contains(keys, in.Key) {
			t.Errorf("%v: %v", in, err)
		}
		keys = append(keys, in.Key)
	}
}

// TestBounds_AnEmptyListIsNone: a tenant without targetKinds reads the same word as a tenant without kinds.
func TestBounds_AnEmptyListIsNone(t *testing.T) {
	flaw, refused := (&Bounds{Namespaces: []string{"team-a"}}).refuse(Identity{APIVersion: "example.com/v1", Kind: "Region", Name: "a"})
	if want := "allowed: none"; !refused || flaw.Hint != want {
		t.Errorf("refused %v with %q, want %q", refused, flaw.Hint, want)
	}
}
