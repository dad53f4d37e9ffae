package render

import (
	"testing"
)

func TestContends(t *testing.T) {
	const head = "agentSpec:\n  workload:\n    manifests:\n"
	deployment := func(namespace, image string) string {
		return head + `    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: agent, namespace: ` + namespace + `}, spec: {selector: {matchLabels: {a: b}},
       template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: ` + image + `}]}}}}` + "\n"
	}
	object := func(kind, name, value string) string {
		return head + "    - {apiVersion: v1, kind: " + kind + ", metadata: {name: " + name + "}, data: {x: " + value + "}}\n"
	}
	for name, tc := range map[string]struct{ ours, theirs, want string }{
		"another workload":                {deployment("a", "i"), deployment("b", "i"), ""},
		"the same workload":               {deployment("a", "i"), deployment("a", "j"), "Deployment a/agent"},
		"alike, and both echo their own":  {deployment("a", "i"), deployment("a", "i"), "Deployment a/agent"},
		"another ConfigMap":               {object("ConfigMap", "m", "1"), object("ConfigMap", "other", "2"), ""},
		"a ConfigMap that differs":        {object("ConfigMap", "m", "1"), object("ConfigMap", "m", "2"), "ConfigMap m"},
		"a ConfigMap that both have":      {object("ConfigMap", "m", "1"), object("ConfigMap", "m", "1"), ""},
		"a Namespace":                     {object("Namespace", "m", "1"), object("Namespace", "m", "2"), ""},
		"a name with the cluster's in it": {object("ConfigMap", `"m-{{CLUSTER_NAME}}"`, "1"), object("ConfigMap", "m-cluster1", "2"), "ConfigMap m-cluster1"},
	} {
		t.Run(name, func(t *testing.T) {
			works, _ := worksFor(t, contentOf(t, tc.theirs, ""))
			ours := renderedFor(t, contentOf(t, tc.ours, ""), Cluster{Name: "cluster1"})
			if got := ours.Contends(works[0]); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			works[0].Namespace = "cluster2"
			if got := ours.Contends(works[0]); got != "" {
				t.Errorf("of another cluster: %q", got)
			}
		})
	}
}
