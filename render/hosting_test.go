package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// hostedTemplate has one manifest for each location, one without, and hooks.
const hostedTemplate = `
agentSpec:
  workload:
    manifests:
    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: "agent-{{CLUSTER_NAME}}", namespace: ns, annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosting}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: labelled, namespace: ns, labels: {addon.open-cluster-management.io/hosted-manifest-location: hosting}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: both, namespace: ns, labels: {addon.open-cluster-management.io/hosted-manifest-location: hosting}, annotations: {addon.open-cluster-management.io/hosted-manifest-location: managed}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: nowhere, namespace: ns, annotations: {addon.open-cluster-management.io/hosted-manifest-location: none}}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: ns}}
    - {apiVersion: v1, kind: Pod, metadata: {name: hook, namespace: ns, annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}}}
    - {apiVersion: v1, kind: Pod, metadata: {name: hosted-hook, namespace: ns, annotations: {addon.open-cluster-management.io/addon-pre-delete: "", addon.open-cluster-management.io/hosted-manifest-location: hosting}}}
`

// held returns the names of the objects of each work, by namespace/name of the work.
func held(works []*workv1.ManifestWork) map[string][]string {
	out := map[string][]string{}
	for _, w := range works {
		names := []string{}
		for _, id := range identitiesOf(w) {
			names = append(names, id.Name)
		}
		slices.Sort(names)
		out[w.Namespace+"/"+w.Name] = names
	}
	return out
}

// hostedWorks returns the deploy works of cluster1 on a hosting cluster, and those to remove.
func hostedWorks(t *testing.T, host string, existing ...*workv1.ManifestWork) (desired, gone []*workv1.ManifestWork) {
	t.Helper()
	desired, gone, err := renderedFor(t, contentOf(t, hostedTemplate, ""), Cluster{Name: "cluster1", Hosting: host}).Works(owner, existing)
	if err != nil {
		t.Fatal(err)
	}
	return desired, gone
}

func TestHostedManifestLocation(t *testing.T) {
	atHome, _ := hostedWorks(t, "")
	if diff := cmp.Diff(map[string][]string{
		"cluster1/addon-hello-deploy-0": {"agent-cluster1", "both", "labelled", "nowhere", "plain"},
	}, held(atHome)); diff != "" {
		t.Errorf("the default mode knows no location (-want +got):\n%s", diff)
	}
	hosted, _ := hostedWorks(t, "host")
	if diff := cmp.Diff(map[string][]string{
		"cluster1/addon-hello-deploy-0":              {"both", "plain"},
		"host/addon-hello-deploy-hosting-cluster1-0": {"agent-cluster1", "labelled"},
	}, held(hosted)); diff != "" {
		t.Errorf("hosted mode (-want +got):\n%s", diff)
	}
	hooks := hookWorksFor(t, contentOf(t, hostedTemplate, ""), Cluster{Name: "cluster1", Hosting: "host"})
	if diff := cmp.Diff(map[string][]string{
		"cluster1/addon-hello-pre-delete":              {"hook"},
		"host/addon-hello-pre-delete-hosting-cluster1": {"hosted-hook"},
	}, held(hooks)); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

func TestHostingWorks(t *testing.T) {
	works, _ := hostedWorks(t, "host")
	hosting := works[1]
	want := map[string]string{addonNameLabel: "hello", "open-cluster-management.io/addon-namespace": "cluster1", "addonflow.io/managed-by": "addonflow"}
	if diff := cmp.Diff(want, hosting.Labels); diff != "" {
		t.Errorf("labels of a work on the hosting cluster (-want +got):\n%s", diff)
	}
	if hosting.OwnerReferences != nil {
		t.Errorf("an owner in another namespace is none: %v", hosting.OwnerReferences)
	}
	if _, labelled := works[0].Labels["open-cluster-management.io/addon-namespace"]; labelled {
		t.Error("the label stands where the namespaces differ only")
	}
	for _, w := range works {
		if w.Annotations[PartsAnnotation] != "2" {
			t.Errorf("%s: both works are parts of one add-on: %v", w.Name, w.Annotations)
		}
	}
	if name := AddOnNamespace(hosting); name != "cluster1" {
		t.Errorf("it belongs to %s", name)
	}
}

func TestVerifiedOnBothClusters(t *testing.T) {
	works, _ := hostedWorks(t, "host")
	for _, w := range works {
		w.Generation = 1
		for _, c := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, ObservedGeneration: 1})
		}
	}
	o := observed(works)
	if o.Verified || !strings.Contains(o.Reason, "Deployment agent-cluster1") {
		t.Errorf("the Deployment on the hosting cluster has echoed nothing: %+v", o)
	}
	if o := observed(works[:1]); o.Verified || o.Reason != "1 of 2 works written" {
		t.Errorf("without the hosting work: %+v", o)
	}
}

func TestMoveOfTheHostingCluster(t *testing.T) {
	before, _ := hostedWorks(t, "host")
	after, gone := hostedWorks(t, "other", before...)
	if diff := cmp.Diff([]string{"host/addon-hello-deploy-hosting-cluster1-0"}, keysOf(gone)); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if _, there := held(after)["other/addon-hello-deploy-hosting-cluster1-0"]; !there {
		t.Errorf("written: %v", held(after))
	}
	digest := func(w []*workv1.ManifestWork) string { return w[0].Annotations[v1alpha1.DigestAnnotation] }
	if digest(before) == digest(after) {
		t.Error("a move is a change like any other: it takes its turn")
	}
	home, gone := hostedWorks(t, "", before...)
	if len(gone) != 1 || len(held(home)["cluster1/addon-hello-deploy-0"]) != 5 {
		t.Errorf("back home: %v, removed %v", held(home), keysOf(gone))
	}
	others := before[1].DeepCopy()
	others.Labels["open-cluster-management.io/addon-namespace"] = "cluster2"
	if _, gone := hostedWorks(t, "other", others); len(gone) != 0 {
		t.Errorf("the work of another cluster is taken for its own: %v", keysOf(gone))
	}
}

func TestHostedContentThatDeploysNothing(t *testing.T) {
	template := manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, annotations: {addon.open-cluster-management.io/hosted-manifest-location: none}}}")
	_, _, err := renderedFor(t, contentOf(t, template, ""), Cluster{Name: "cluster1", Hosting: "host"}).Works(owner, nil)
	if err == nil || !strings.Contains(err.Error(), "no manifest is deployed in hosted mode") {
		t.Errorf("got %v", err)
	}
}

func TestClusterMayHostItself(t *testing.T) {
	works, _ := hostedWorks(t, "cluster1")
	if diff := cmp.Diff([]string{"cluster1/addon-hello-deploy-0", "cluster1/addon-hello-deploy-hosting-cluster1-0"}, keysOf(works)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, gone := hostedWorks(t, "cluster1", works...)
	if len(again) != 2 || len(gone) != 0 {
		t.Errorf("again: %v, removed %v", keysOf(again), keysOf(gone))
	}
}

func keysOf(works []*workv1.ManifestWork) []string {
	out := []string{}
	for _, w := range works {
		out = append(out, w.Namespace+"/"+w.Name)
	}
	return out
}

func TestObjectsOfAHostedCluster(t *testing.T) {
	for host, want := range map[string]int{"": 7, "host": 6} {
		objects, err := renderedFor(t, contentOf(t, hostedTemplate, ""), Cluster{Name: "cluster1", Hosting: host}).Objects()
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) != want {
			t.Errorf("hosted on %q: %d objects, want %d: none is deployed nowhere in the default mode only", host, len(objects), want)
		}
	}
}
