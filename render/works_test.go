package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
)

const (
	addonNameLabel = "open-cluster-management.io/addon-name"
	specHashKey    = "open-cluster-management.io/config-spec-hash"
)

var owner = Owner{Name: "hello", Namespace: "cluster1", UID: types.UID("mca-uid"), Source: "team/source", Revision: "v1:sha256:revision"}

// worksFor returns the works of cluster1 and those to remove.
func worksFor(t *testing.T, c Content, existing ...*workv1.ManifestWork) (desired []*workv1.ManifestWork, remove []string) {
	t.Helper()
	desired, gone, err := renderedFor(t, c, Cluster{Name: "cluster1"}).Works(owner, existing)
	if err != nil {
		t.Fatal(err)
	}
	return desired, workNames(gone)
}

// configMaps is a template of ConfigMaps of a size.
func configMaps(size int, names ...string) string {
	var b strings.Builder
	b.WriteString("agentSpec:\n  workload:\n    manifests:\n")
	for _, name := range names {
		fmt.Fprintf(&b, "    - {apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: ns}, data: {x: %s}}\n", name, strings.Repeat("x", size))
	}
	return b.String()
}

func TestWorksHaveOCMsNamesLabelsAndOwner(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	desired, remove := worksFor(t, content)
	if len(desired) != 1 || len(remove) != 0 {
		t.Fatalf("got %d works, %v to remove", len(desired), remove)
	}
	digest := renderedFor(t, content, Cluster{Name: "cluster1"}).Digest
	yes := true
	want := metav1.ObjectMeta{
		Name: "addon-hello-deploy-0", Namespace: "cluster1",
		Labels: map[string]string{addonNameLabel: "hello", "addonflow.io/managed-by": "addonflow"},
		Annotations: map[string]string{
			specHashKey: `{"addondeploymentconfigs.addon.open-cluster-management.io/default/agent":"hash-of-agent",` +
				`"addontemplates.addon.open-cluster-management.io//hello-template":"hash-of-hello-template"}`,
			"addonflow.io/source": "team/source", "addonflow.io/revision": "v1:sha256:revision",
			"addonflow.io/digest": digest, "addonflow.io/parts": "1",
			"addonflow.io/marks": desired[0].Annotations[MarksAnnotation],
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "addon.open-cluster-management.io/v1alpha1", Kind: "ManagedClusterAddOn", Name: "hello", UID: "mca-uid",
			Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
	if diff := cmp.Diff(want, desired[0].ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	for _, raw := range raws(desired[0]) {
		var object map[string]any
		if err := json.Unmarshal([]byte(raw), &object); err != nil {
			t.Fatal(err)
		}
		got := rendertest.At(object, "metadata", "annotations", "addonflow.io/digest")
		if object["kind"] == "Deployment" && got != digest || object["kind"] != "Deployment" && got != nil {
			t.Errorf("%v carries %v", object["kind"], got)
		}
		if rendertest.At(object, "spec", "template", "metadata", "annotations") != nil {
			t.Error("the pod template carries a mark: its pods would restart")
		}
	}
}

func TestSpecHashWithoutGroup(t *testing.T) {
	got := specHashAnnotation([]ConfigHash{{ConfigReference: ConfigReference{Resource: "configmaps", Namespace: "a", Name: "b<"}, SpecHash: "h"}})
	if want := `{"configmaps/a/b\u003c":"h"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := specHashAnnotation(nil); got != "" {
		t.Errorf("got %q without configurations", got)
	}
}

func TestExistingWorksKeepWhatIsNotOurs(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	desired, _ := worksFor(t, content)
	existing := desired[0].DeepCopy()
	existing.ResourceVersion, existing.UID, existing.Finalizers = "7", "work-uid", []string{"f"}
	existing.Labels["team"] = "x"
	existing.Annotations["team"] = "x"
	existing.Annotations[v1alpha1.DigestAnnotation] = "old"
	existing.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn", Name: "hello", UID: "mca-uid"},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "foreign", UID: "x"},
	}
	slices.Reverse(existing.Spec.Workload.Manifests)
	before := existing.DeepCopy()
	again, remove := worksFor(t, content, existing)
	if diff := cmp.Diff(before, existing); diff != "" {
		t.Errorf("the existing work was changed:\n%s", diff)
	}
	got := again[0]
	if got.ResourceVersion != "7" || got.UID != "work-uid" || got.Labels["team"] != "x" || got.Annotations["team"] != "x" || len(got.Finalizers) != 1 || len(remove) != 0 {
		t.Errorf("metadata lost: %+v", got.ObjectMeta)
	}
	if diff := cmp.Diff(before.OwnerReferences, got.OwnerReferences); diff != "" {
		t.Errorf("owners are the same by UID (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(raws(before), raws(got)); diff != "" {
		t.Errorf("objects changed, or their order in the work (-want +got):\n%s", diff)
	}
}

func TestOwnerOfAFormerAddOnIsReplaced(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	desired, _ := worksFor(t, content)
	existing := desired[0].DeepCopy()
	existing.OwnerReferences[0].UID = "former"
	again, _ := worksFor(t, content, existing)
	if len(again[0].OwnerReferences) != 1 || again[0].OwnerReferences[0].UID != "mca-uid" {
		t.Errorf("got %v", again[0].OwnerReferences)
	}
}

func workNames(works []*workv1.ManifestWork) []string {
	out := []string{}
	for _, w := range works {
		out = append(out, w.Name)
	}
	return out
}

func TestWorksComeAndGo(t *testing.T) {
	const half = workRoom/2 + 1000
	three := contentOf(t, configMaps(half, "a", "b", "c"), "")
	first, _ := worksFor(t, three)
	if diff := cmp.Diff([]string{"addon-hello-deploy-0", "addon-hello-deploy-1", "addon-hello-deploy-2"}, workNames(first)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}

	withoutB := contentOf(t, configMaps(half, "a", "c"), "")
	second, remove := worksFor(t, withoutB, first...)
	if diff := cmp.Diff([]string{"addon-hello-deploy-0", "addon-hello-deploy-2"}, workNames(second)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"addon-hello-deploy-1"}, remove); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if second[0].Annotations[PartsAnnotation] != "2" {
		t.Errorf("parts: %v", second[0].Annotations)
	}

	// The gap is filled; an existing index is never used twice. OCM would use the number of
	// works, which is 2 here and taken.
	third, _ := worksFor(t, three, second...)
	if diff := cmp.Diff([]string{"addon-hello-deploy-1", "addon-hello-deploy-0", "addon-hello-deploy-2"}, workNames(third)); diff != "" {
		t.Errorf("new ones first (-want +got):\n%s", diff)
	}

	deleting := first[1].DeepCopy()
	now := metav1.Unix(1, 0)
	deleting.DeletionTimestamp = &now
	fourth, remove := worksFor(t, three, first[0], deleting, first[2])
	if diff := cmp.Diff([]string{"addon-hello-deploy-1", "addon-hello-deploy-0", "addon-hello-deploy-2"}, workNames(fourth)); diff != "" || len(remove) > 0 {
		t.Errorf("the name of a work being deleted is its successor's (-want +got):\n%s%v", diff, remove)
	}
}

func TestWorksOfOthersAreLeftAlone(t *testing.T) {
	work := func(name, namespace, addOn string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{addonNameLabel: addOn}}}
	}
	desired, remove := worksFor(
		t, contentOf(t, echo("x", ""), ""),
		work("addon-hello-deploy-0", "cluster2", "hello"),
		work("addon-hello-deploy-0", "cluster1", "other"),
		work("addon-hello-deploy-hosting-x-0", "cluster1", "hello"),
		work("addon-hello-pre-delete", "cluster1", "hello"),
		work("addon-hello-deploy-01", "cluster1", "hello"),
	)
	if diff := cmp.Diff([]string{"addon-hello-deploy-0"}, workNames(desired)); diff != "" || len(remove) > 0 {
		t.Errorf("(-want +got):\n%s%v", diff, remove)
	}
}

func TestDeleteOption(t *testing.T) {
	manifests := "workload: {manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: 'a-{{CLUSTER_NAME}}', namespace: old, annotations: {addon.open-cluster-management.io/deletion-orphan: ''}}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: old}}]}"
	rule := func(group, resource, name string) workv1.OrphaningRule {
		return workv1.OrphaningRule{Group: group, Resource: resource, Namespace: "new", Name: name}
	}
	selectively := func(rules ...workv1.OrphaningRule) *workv1.DeleteOption {
		return &workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan", SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: rules}}
	}
	annotated := rule("apps", "deployments", "a-cluster1")
	cases := map[string]struct {
		reason, option string
		want           *workv1.DeleteOption
	}{
		"annotation":   {"alone", "", selectively(annotated)},
		"foreground":   {"is the default", "deleteOption: {propagationPolicy: Foreground}", selectively(annotated)},
		"orphan":       {"leaves everything", "deleteOption: {propagationPolicy: Orphan}", &workv1.DeleteOption{PropagationPolicy: "Orphan"}},
		"both":         {"are joined, and follow the namespace", "deleteOption: {propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: [{resource: configmaps, namespace: old, name: b}]}}", selectively(rule("", "configmaps", "b"), annotated)},
		"the same one": {"stands once", "deleteOption: {propagationPolicy: SelectivelyOrphan, selectivelyOrphans: {orphaningRules: [{group: apps, resource: deployments, namespace: old, name: 'a-{{CLUSTER_NAME}}'}]}}", selectively(annotated)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			desired, _ := worksFor(t, contentOf(t, "agentSpec: {"+manifests+", "+c.option+"}", "{agentInstallNamespace: new}"))
			if diff := cmp.Diff(c.want, desired[0].Spec.DeleteOption); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestManifestConfigsOfTheClustersTemplate(t *testing.T) {
	template := `agentSpec:
  executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: a, name: b}}}
  workload: {manifests: [
    {apiVersion: apps/v1, kind: Deployment, metadata: {name: "d-{{CLUSTER_NAME}}", namespace: old}},
    {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: old}}]}
  manifestConfigs:
  - {resourceIdentifier: {group: apps, resource: deployments, namespace: old, name: "d-{{CLUSTER_NAME}}"}, updateStrategy: {type: ServerSideApply}}
  - {resourceIdentifier: {resource: configmaps, namespace: "*", name: c}, updateStrategy: {type: CreateOnly}}
`
	desired, _ := worksFor(t, contentOf(t, template, "{agentInstallNamespace: new}"))
	spec := desired[0].Spec
	id := workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "new", Name: "d-cluster1"}
	if len(spec.ManifestConfigs) != 3 {
		t.Fatalf("got %v", spec.ManifestConfigs)
	}
	if ours := spec.ManifestConfigs[0]; ours.ResourceIdentifier != id || ours.UpdateStrategy != nil || len(ours.FeedbackRules) == 0 {
		t.Errorf("ours is to be first, for exactly the workload: %v", ours)
	}
	if theirs := spec.ManifestConfigs[1]; theirs.ResourceIdentifier != id || theirs.UpdateStrategy.Type != workv1.UpdateStrategyTypeServerSideApply {
		t.Errorf("the template's entry is to name the object as rendered: %v", theirs)
	}
	if spec.ManifestConfigs[2].ResourceIdentifier.Namespace != "*" {
		t.Errorf("a wildcard stays: %v", spec.ManifestConfigs[2])
	}
	if spec.Executor == nil || spec.Executor.Subject.ServiceAccount.Name != "b" {
		t.Errorf("executor: %v", spec.Executor)
	}
}

func TestManifestTooLarge(t *testing.T) {
	content := contentOf(t, configMaps(10, "small")+strings.Split(configMaps(WorkLimit, "large"), "manifests:\n")[1], "")
	_, _, err := renderedFor(t, content, Cluster{Name: "cluster1"}).Works(owner, nil)
	var invalid *InvalidError
	if !errors.As(err, &invalid) || invalid.Findings[0].Reason != flaw.ReasonManifestTooLarge {
		t.Fatalf("got %v", err)
	}
	if want := fmt.Sprintf("ConfigMap ns/large has %d bytes, the hub accepts 512000", WorkLimit+100); len(invalid.Findings[0].Message) != len(want) {
		t.Errorf("got %q", invalid.Findings[0].Message)
	}
	found := newRenderer(t, content).Check()
	if len(found) != 1 || found[0].Reason != flaw.ReasonManifestTooLarge || found[0].Field != "spec.agentSpec.workload.manifests[1]" {
		t.Errorf("Check says %v", found)
	}
}

func TestObjectNamesThatDependOnTheCluster(t *testing.T) {
	content := contentOf(t, `agentSpec: {workload: {manifests: [
		{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{CLUSTER_NAME}}", namespace: ns}, data: {a: x}},
		{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: ns}, data: {a: x}},
		{apiVersion: v1, kind: ConfigMap, metadata: {name: different, namespace: ns}, data: {a: "{{CLUSTER_NAME}}"}}]}}`, "")
	r := newRenderer(t, content)
	for cluster, want := range map[string]int{"cluster1": 3, "same": 2} {
		got, err := r.Render(Cluster{Name: cluster})
		if err != nil {
			t.Fatal(err)
		}
		objects, err := got.Objects()
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) != want || objects[0].GetName() != cluster {
			t.Errorf("%s: got %d objects, the first %s", cluster, len(objects), objects[0].GetName())
		}
	}
	if _, err := r.Render(Cluster{Name: "different"}); err == nil {
		t.Error("two different manifests of one object are accepted")
	}
}
