package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/render/rendertest"
	"github.com/addonflow/addonflow/render/variable"
)

// textOf renders an echo for a cluster and returns its text, or the error.
func textOf(t *testing.T, r *Renderer, c Cluster) string {
	t.Helper()
	c.Name = "cluster1"
	rendered, err := r.Render(c)
	if err != nil {
		return "error: " + err.Error()
	}
	objects, err := rendered.Objects()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := rendertest.At(objects[0].Object, "data", "text").(string)
	return text
}

func TestVariablesOfTheCluster(t *testing.T) {
	region := echo("{{CLUSTER_LABEL_topology_kubernetes_io_region}} {{CLUSTER_CLAIM_id_k8s_io}} {{WHO}}", "")
	labels := map[string]string{"topology.kubernetes.io/region": "eu", "unused": "x"}
	claims := []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "4711"}}
	const who = "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: me}]}"
	const defaults = "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: me}, {name: CLUSTER_LABEL_topology_kubernetes_io_region, value: nowhere}]}"
	cases := map[string]struct {
		reason, config string
		cluster        Cluster
		want           string
	}{
		"given":     {"label and claim, every odd character written _", who, Cluster{Labels: labels, Claims: claims}, "eu 4711 me"},
		"missing":   {"the cluster is named, and what it lacks", who, Cluster{Claims: claims}, "no value for CLUSTER_LABEL_topology_kubernetes_io_region"},
		"default":   {"a customised variable is for those without the label", defaults, Cluster{Claims: claims}, "nowhere 4711 me"},
		"over":      {"the label goes over it", defaults, Cluster{Labels: labels, Claims: claims}, "eu 4711 me"},
		"ambiguous": {"which of two is meant is not said", who, Cluster{Claims: claims, Labels: map[string]string{"topology.kubernetes.io/region": "a", "topology_kubernetes_io/region": "b"}}, "two labels of the cluster are written CLUSTER_LABEL_topology_kubernetes_io_region"},
		"annotated": {"the values annotation goes over customised variables, and the rest of it is for charts", who, Cluster{Labels: labels, Claims: claims, Values: `{"WHO": 7, "other": {"a": 1}}`}, "eu 4711 7"},
		"built in":  {"and never over what is built in", who, Cluster{Labels: labels, Claims: claims, Values: `{"CLUSTER_NAME": "evil"}`}, "eu 4711 me"},
		"no JSON":   {"said for this cluster", who, Cluster{Labels: labels, Claims: claims, Values: `{`}, "is not a JSON object"},
		"no text":   {"an object has no text", who, Cluster{Labels: labels, Claims: claims, Values: `{"WHO": {}}`}, "has no text for WHO"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRenderer(t, contentOf(t, region, c.config))
			if got := textOf(t, r, c.cluster); !strings.Contains(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
			if found := r.Check(); len(found) > 0 {
				t.Errorf("a commit is not refused for what clusters have: %v", found)
			}
		})
	}
}

// TestConfigMapGivesVariablesAndIsListedWithItsHash: a ConfigMap gives variables and is listed with its hash; a change
// of it counts even if no variable shows it.
func TestConfigMapGivesVariablesAndIsListedWithItsHash(t *testing.T) {
	settings := ConfigReference{Resource: "configmaps", Namespace: "default", Name: "settings"}
	content := func(body, hash, mapped string) Content {
		c := contentOf(t, echo("{{LEVEL}}", ""), "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: me}]}")
		from, err := variable.ParseFromConfigs(mapped)
		if err != nil {
			t.Fatal(err)
		}
		c.Templates[0].FromConfigs = from
		c.Supported = append(c.Supported, addonv1alpha1.ConfigGroupResource{Resource: "configmaps"})
		c.Configs = append(c.Configs, Config{ConfigReference: settings, SpecHash: hash, Body: rendertest.Fields(t, body)})
		c.Defaults = append(c.Defaults, settings)
		return c
	}
	const level = "LEVEL=configmaps{.data.level}"
	cases := map[string]struct{ reason, body, mapped, want string }{
		"text":      {"as it stands there", "{data: {level: debug}}", level, "debug"},
		"number":    {"of a kind that has numbers", "{data: {level: 7}}", level, "7"},
		"missing":   {"named with the object", "{data: {}}", level, `LEVEL: configmaps/default/settings {.data.level}: has no value at "level"`},
		"object":    {"is not text", "{data: {level: {}}}", level, "is neither a string nor a number nor a boolean"},
		"unlisted":  {"the add-on does not list the kind", "{data: {level: a}}", "LEVEL=things.example.com{.a}", "things.example.com is not a configuration of the add-on"},
		"set twice": {"which of them is not said", "{data: {level: a}}", level + "\nWHO=configmaps{.data.level}", "WHO: an AddOnDeploymentConfig sets it"},
		"NUL":       {"cannot be used", `{data: {level: "a\0"}}`, level, "contains NUL"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := textOf(t, newRenderer(t, content(c.body, "h", c.mapped)), Cluster{}); !strings.Contains(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
	one := renderedFor(t, content("{data: {level: a}}", "h1", level), Cluster{Name: "c"})
	two := renderedFor(t, content("{data: {level: a, more: b}}", "h2", level), Cluster{Name: "c"})
	if one.Digest == two.Digest {
		t.Error("a change of a configuration with other readers does not trigger a rollout")
	}
	if last := one.ConfigReferences[0]; last.ConfigReference != settings || last.SpecHash != "h1" {
		t.Errorf("listed is %+v", one.ConfigReferences)
	}
	own := Config{ConfigReference: settings, SpecHash: "h3", Body: rendertest.Fields(t, "{data: {level: own}}")}
	if got := textOf(t, newRenderer(t, content("{data: {level: a}}", "h1", level)), Cluster{Configs: []Config{own}}); got != "own" {
		t.Errorf("a cluster's own configuration gives %q", got)
	}
}

// TestVariablesOfAKindThatClustersNameThemselves: an add-on may list a kind without an object
// of it, so that each ManagedClusterAddOn names its own. A cluster that names none is held; the
// commit is valid.
func TestVariablesOfAKindThatClustersNameThemselves(t *testing.T) {
	settings := ConfigReference{Resource: "configmaps", Namespace: "cluster1", Name: "settings"}
	c := contentOf(t, "agentSpec: {workload: {manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, "+
		"spec: {replicas: '{{SIZE}}', selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, annotations: {level: '{{LEVEL}}'}}, "+
		"spec: {containers: [{name: a, image: b}]}}}}]}}", "")
	from, err := variable.ParseFromConfigs("LEVEL=configmaps{.data.level}\nSIZE=configmaps{.data.size}")
	if err != nil {
		t.Fatal(err)
	}
	c.Templates[0].FromConfigs, c.Templates[0].Typed = from, map[string]string{"SIZE": variable.TypeInteger}
	c.Supported = append(c.Supported, addonv1alpha1.ConfigGroupResource{Resource: "configmaps"})
	r := newRenderer(t, c)
	if found := r.Check(); len(found) > 0 {
		t.Errorf("its clusters are not known yet, and the commit is refused: %v", found)
	}
	own := Config{ConfigReference: settings, SpecHash: "h", Body: rendertest.Fields(t, "{data: {level: debug, size: '3'}}")}
	rendered, err := r.Render(Cluster{Name: "cluster1", Configs: []Config{own}})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendered.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if got := rendertest.At(objects[0].Object, "spec", "replicas"); got != int64(3) {
		t.Errorf("replicas are %v", got)
	}
	const want = "no value for LEVEL; name one of configmaps in spec.configs of the ManagedClusterAddOn, or as a default of the add-on"
	if _, err := r.Render(Cluster{Name: "cluster2"}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestMergedConfigs(t *testing.T) {
	content := func(merge bool) Content {
		c := contentOf(t, echo("{{A}} {{B}} {{INSTALL_NAMESPACE}}", ""), "")
		c.MergeConfigs = merge
		c.Configs = []Config{
			agentOf(t, "one", "{agentInstallNamespace: mine, customizedVariables: [{name: A, value: a1}, {name: B, value: b1}], nodePlacement: {nodeSelector: {disk: one, zone: one}}}"),
			agentOf(t, "two", "{agentInstallNamespace: open-cluster-management-agent-addon, customizedVariables: [{name: B, value: b2}], nodePlacement: {nodeSelector: {zone: two}}}"),
		}
		c.Defaults = []ConfigReference{templateReference("hello-template"), agentReference("one"), agentReference("two")}
		return c
	}
	for merge, want := range map[bool]string{false: "a1 b1 mine", true: "a1 b2 mine"} {
		r := newRenderer(t, content(merge))
		if got := textOf(t, r, Cluster{}); got != want {
			t.Errorf("merge %t: got %q, want %q", merge, got, want)
		}
		if got := rendertest.At(r.defaults.agent.nodeSelector, "zone"); merge && got != "two" {
			t.Errorf("node selector has zone %v", got)
		}
	}
	first, err := newRenderer(t, content(false)).Inputs(Cluster{Name: "c"})
	if err != nil {
		t.Fatal(err)
	}
	both, err := newRenderer(t, content(true)).Inputs(Cluster{Name: "c"})
	if err != nil || first.Key == both.Key {
		t.Errorf("merging changes what is read and not the key (%v)", err)
	}
	own := []Config{agentOf(t, "three", "{agentInstallNamespace: '', customizedVariables: [{name: A, value: own}]}")}
	if got := textOf(t, newRenderer(t, content(true)), Cluster{Configs: own}); !strings.Contains(got, "no value for B") {
		t.Errorf("levels are not merged with each other: got %q", got)
	}
}

// FuzzValues: the annotation of a cluster gives the variables that a template names, as they are written there, or the
// renderer says for which it has no text.
func FuzzValues(f *testing.F) {
	for _, annotation := range []string{
		`{"A":"x","B":1.50,"C":true}`, `{"A":null,"B":{},"C":[1]}`, `{"A":"x"}{}`, `{"A":"x"}]`, `{"A":1,"A":"2"}`, `{"CLUSTER_NAME":"x","D":1}`, "[]", "null", "",
		`{"A":"\u0000"}`, "{\"A\":\"\xff\"}", ` {"A":1e400,"B":"{{A}}"} `,
	} {
		f.Add(annotation)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		v := clusterVariables{Values: map[string]string{}}
		v.annotated(annotation, map[string]bool{"A": true, "B": true, "C": true, "CLUSTER_NAME": true})
		var written map[string]json.RawMessage
		if err := json.Unmarshal([]byte(annotation), &written); err != nil {
			if len(v.Values) > 0 || len(v.Trouble) != 1 {
				t.Errorf("%q is not a JSON object, and gives %+v", annotation, v)
			}
			return
		}
		for name, value := range v.Values {
			want := string(written[name])
			if strings.HasPrefix(want, `"`) {
				_ = json.Unmarshal(written[name], &want) // it was read before
			}
			if !slices.Contains([]string{"A", "B", "C"}, name) || value != want || HasNUL(value) {
				t.Errorf("%q gives %s the value %q", annotation, name, value)
			}
		}
		for _, name := range []string{"A", "B", "C"} {
			_, given := v.Values[name]
			_, asked := written[name]
			if refused := strings.Contains(strings.Join(v.Trouble, "\n")+"\n", " has no text for "+name+"\n"); asked != (given || refused) || given && refused {
				t.Errorf("%q: %s in %+v", annotation, name, v)
			}
		}
	})
}
