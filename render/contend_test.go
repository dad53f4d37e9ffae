package render

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			got, contends := ours.Contends(works[0], nil)
			if got.Object != tc.want || contends != (tc.want != "") || got.Yields {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
			NewAbridger().Abridge(works[0])
			if abridged, also := ours.Contends(works[0], nil); abridged != got || also != contends {
				t.Errorf("abridged: got %+v, want %+v", abridged, got)
			}
			works[0].Namespace = "cluster2"
			if got, contends := ours.Contends(works[0], nil); contends {
				t.Errorf("of another cluster: %+v", got)
			}
		})
	}
}

// TestObjectBelongsToTheOlderWork: if two works hold an object, the older one's add-on may
// change it, whichever add-on compares.
func TestObjectBelongsToTheOlderWork(t *testing.T) {
	object := func(name, value string) string {
		return "agentSpec:\n  workload:\n    manifests:\n    - {apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}, data: {x: " + value + "}}\n"
	}
	const early, late = 1000, 2000
	for name, tc := range map[string]struct {
		holds   string // what this add-on's work holds
		own     int64
		ownName string
		yields  bool
	}{
		"ours is older":                       {"m", early, "b", true},
		"ours is younger":                     {"m", late + 1, "a", false},
		"of one second, ours by name":         {"m", late, "a", true},
		"of one second, theirs by name":       {"m", late, "z", false},
		"ours is older, and has not got it":   {"other", early, "a", false},
		"ours is older, in another namespace": {"m", early, "elsewhere/a", false},
	} {
		t.Run(name, func(t *testing.T) {
			theirs, _ := worksFor(t, contentOf(t, object("m", "1"), ""))
			own, _ := worksFor(t, contentOf(t, object(tc.holds, "1"), ""))
			theirs[0].Name, theirs[0].CreationTimestamp = "n", metav1.Unix(late, 0)
			own[0].Name, own[0].CreationTimestamp = tc.ownName, metav1.Unix(tc.own, 0)
			if space, rest, found := strings.Cut(tc.ownName, "/"); found {
				own[0].Namespace, own[0].Name = space, rest
			}
			ours := renderedFor(t, contentOf(t, object("m", "2"), ""), Cluster{Name: "cluster1"})
			got, contends := ours.Contends(theirs[0], own)
			if !contends || got.Yields != tc.yields {
				t.Errorf("got %+v, %t", got, contends)
			}
			NewAbridger().Abridge(own[0])
			if abridged, also := ours.Contends(theirs[0], own); abridged != got || also != contends {
				t.Errorf("abridged: got %+v, want %+v", abridged, got)
			}
		})
	}
}
