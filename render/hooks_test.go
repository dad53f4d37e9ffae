package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// hookedTemplate has a ConfigMap, a hook by annotation, one by the label and one by the legacy
// label, and an object that only looks like a hook.
const hookedTemplate = `
agentSpec:
  executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: a, name: b}}}
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: ns, annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}}}
    - apiVersion: batch/v1
      kind: Job
      metadata: {name: "clean-{{CLUSTER_NAME}}", namespace: ns, annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}}
      spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: clean:v1}]}}}
    - {apiVersion: v1, kind: Pod, metadata: {name: label, namespace: ns, labels: {addon.open-cluster-management.io/addon-pre-delete: ""}}, spec: {containers: []}}
    - {apiVersion: v1, kind: Pod, metadata: {name: legacy, namespace: ns, labels: {open-cluster-management.io/addon-pre-delete: ""}}, spec: {containers: []}}
`

// hookWorksFor returns the hook works of cluster1.
func hookWorksFor(t *testing.T, c Content, cluster Cluster) []*workv1.ManifestWork {
	t.Helper()
	works, err := renderedFor(t, c, cluster).HookWorks(owner)
	if err != nil {
		t.Fatal(err)
	}
	return works
}

func TestHooksAreLeftOutOfTheDeployWorks(t *testing.T) {
	content := contentOf(t, hookedTemplate, "")
	deploy, _ := worksFor(t, content)
	if got := raws(deploy[0]); len(got) != 1 || !strings.Contains(got[0], `"settings"`) {
		t.Errorf("deployed: %v", got)
	}
	if len(deploy[0].OwnerReferences) != 0 {
		t.Errorf("a deletion in the foreground would take the work before the hooks ran: %v", deploy[0].OwnerReferences)
	}
	works := hookWorksFor(t, content, Cluster{Name: "cluster1"})
	if len(works) != 1 {
		t.Fatalf("got %d hook works", len(works))
	}
	digest := renderedFor(t, content, Cluster{Name: "cluster1"}).Digest
	want := metav1.ObjectMeta{
		Name: "addon-hello-pre-delete", Namespace: "cluster1",
		Labels: map[string]string{addonNameLabel: "hello", "addonflow.io/managed-by": "addonflow"},
		Annotations: map[string]string{
			"addonflow.io/source": "team/source", "addonflow.io/revision": "v1:sha256:revision", "addonflow.io/digest": digest,
		},
	}
	if diff := cmp.Diff(want, works[0].ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if got := raws(works[0]); len(got) != 3 || !strings.Contains(got[0], `"clean-cluster1"`) || strings.Count(strings.Join(got, ""), digest) != 3 {
		t.Errorf("the hooks, each marked with its content: %v", got)
	}
	configs := works[0].Spec.ManifestConfigs
	if id := (workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Namespace: "ns", Name: "clean-cluster1"}); configs[0].ResourceIdentifier != id {
		t.Errorf("asked of %v", configs[0].ResourceIdentifier)
	}
	for _, c := range configs {
		if len(c.FeedbackRules) != 2 || c.FeedbackRules[1].Type != workv1.WellKnownStatusType {
			t.Errorf("OCM's well-known status is to be asked of %s: %v", c.ResourceIdentifier.Name, c.FeedbackRules)
		}
	}
	if works[0].Spec.Executor == nil {
		t.Error("the template's executor runs its hooks, too")
	}
}

func TestHookWorkNames(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		work   metav1.ObjectMeta
		want   bool
	}{
		"managed":        {"", metav1.ObjectMeta{Name: "addon-hello-pre-delete", Namespace: "c"}, true},
		"hosting":        {"", metav1.ObjectMeta{Name: "addon-hello-pre-delete-hosting-c", Namespace: "h", Labels: map[string]string{"open-cluster-management.io/addon-namespace": "c"}}, true},
		"another's":      {"the label says so", metav1.ObjectMeta{Name: "addon-hello-pre-delete-hosting-c", Namespace: "h", Labels: map[string]string{"open-cluster-management.io/addon-namespace": "d"}}, false},
		"deploy":         {"", metav1.ObjectMeta{Name: "addon-hello-deploy-0", Namespace: "c"}, false},
		"of hello-pre":   {"names end alike", metav1.ObjectMeta{Name: "addon-hello-pre-delete-0", Namespace: "c"}, false},
		"another add-on": {"", metav1.ObjectMeta{Name: "addon-hello-pre-delete", Namespace: "c", Labels: map[string]string{addonNameLabel: "other"}}, false},
	} {
		work := &workv1.ManifestWork{ObjectMeta: c.work}
		if work.Labels[addonNameLabel] == "" {
			work.Labels = merged(work.Labels, map[string]string{addonNameLabel: "hello"})
		}
		if got := IsPreDeleteWork(work, "hello"); got != c.want {
			t.Errorf("%s (%s): got %v", name, c.reason, got)
		}
	}
}

// reported is the hook work of hookedTemplate with conditions and values.
func reported(t *testing.T, condition string, values map[string]map[string]string) *workv1.ManifestWork {
	t.Helper()
	work := hookWorksFor(t, contentOf(t, hookedTemplate, ""), Cluster{Name: "cluster1"})[0]
	work.Generation = 2
	for c := range strings.FieldsSeq(condition) {
		name, status, _ := strings.Cut(c, "=")
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{
			Type: name, Status: metav1.ConditionStatus(status), ObservedGeneration: 2, Message: "no such namespace",
		})
	}
	for i := range work.Spec.ManifestConfigs {
		id := work.Spec.ManifestConfigs[i].ResourceIdentifier
		condition := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{
			Group: id.Group, Resource: id.Resource, Namespace: id.Namespace, Name: id.Name,
		}}
		for name, value := range values[id.Name] {
			if value == "DIGEST" {
				value = work.Annotations[v1alpha1.DigestAnnotation]
			}
			condition.StatusFeedbacks.Values = append(condition.StatusFeedbacks.Values,
				workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &value}})
		}
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, condition)
	}
	return work
}

func TestHooksComplete(t *testing.T) {
	const here = "Applied=True Available=True"
	pod := func(phase string) map[string]string {
		return map[string]string{"addonflow.digest": "DIGEST", "PodPhase": phase}
	}
	job := func(values ...string) map[string]string {
		out := map[string]string{"addonflow.digest": "DIGEST"}
		for _, value := range values {
			name, said, _ := strings.Cut(value, "=")
			out[name] = said
		}
		return out
	}
	all := func(job, label, legacy map[string]string) map[string]map[string]string {
		return map[string]map[string]string{"clean-cluster1": job, "label": label, "legacy": legacy}
	}
	done := job("JobComplete=True")
	cases := map[string]struct {
		reason, conditions string
		values             map[string]map[string]string
		want               HookObservation
	}{
		"all":          {"", here, all(done, pod("Succeeded"), pod("Succeeded")), HookObservation{Completed: true}},
		"not applied":  {"the agent has not applied it yet", "", nil, HookObservation{Reason: "waiting for the agent to apply"}},
		"refused":      {"it may come yet", "Applied=False", nil, HookObservation{Reason: "not applied: no such namespace"}},
		"unavailable":  {"OCM asks for it", "Applied=True Available=False", all(done, pod("Succeeded"), pod("Succeeded")), HookObservation{Reason: "waiting for the agent to report"}},
		"running":      {"all of them must", here, all(done, pod("Running"), pod("Succeeded")), HookObservation{Reason: "Pod label has not completed"}},
		"not complete": {"", here, all(job("JobComplete=False"), pod("Succeeded"), pod("Succeeded")), HookObservation{Reason: "Job clean-cluster1 has not completed"}},
		"silent":       {"", here, all(nil, pod("Succeeded"), pod("Succeeded")), HookObservation{Reason: "Job clean-cluster1 has not been reported"}},
		"older": {
			"a Job of that name from before says nothing of this one", here,
			all(map[string]string{"addonflow.digest": "v1:old", "JobComplete": "True"}, pod("Succeeded"), pod("Succeeded")),
			HookObservation{Reason: "Job clean-cluster1 has not got its content"},
		},
		"failed job": {
			"in its own words, on one line", here,
			all(job("addonflow.failed=True", "addonflow.reason=BackoffLimitExceeded", "addonflow.message=too\nmany"), pod("Running"), pod("Succeeded")),
			HookObservation{Failed: true, Reason: "Job clean-cluster1 failed: BackoffLimitExceeded: too many"},
		},
		"failed pod": {"has nothing to say", here, all(done, pod("Succeeded"), pod("Failed")), HookObservation{Failed: true, Reason: "Pod legacy failed: no reason given"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ObserveHook(reported(t, c.conditions, c.values))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestHooksTooLarge(t *testing.T) {
	half := strings.Repeat("x", WorkLimit*2/3)
	hook := func(name string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: ns, annotations: {addon.open-cluster-management.io/addon-pre-delete: ''}}, spec: {containers: [{name: c, args: [" + half + "]}]}}"
	}
	content := contentOf(t, manifestsOfYAML("{apiVersion: v1, kind: Namespace, metadata: {name: ns}}, "+hook("a")+", "+hook("b")), "")
	found := newRenderer(t, content).Check()
	if len(found) != 1 || found[0].Reason != flaw.ReasonManifestTooLarge {
		t.Errorf("Check says %v", found)
	}
	if _, err := renderedFor(t, content, Cluster{Name: "cluster1"}).HookWorks(owner); err == nil {
		t.Error("a work that the hub refuses is returned")
	}
}

func TestFinalizers(t *testing.T) {
	const (
		hooks, hostingHooks, hosting = "addon.open-cluster-management.io/addon-pre-delete", "addon.open-cluster-management.io/hosting-addon-pre-delete", "addon.open-cluster-management.io/hosting-manifests-cleanup"
		deprecated, foreign          = "cluster.open-cluster-management.io/addon-pre-delete", "example.com/x"
	)
	onHost := manifestsOfYAML("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, annotations: {addon.open-cluster-management.io/hosted-manifest-location: hosting}}}")
	cases := map[string]struct {
		reason                     string
		template, host             string
		current, with, without, is []string
	}{
		"none":            {"nothing to clean up", echo("x", ""), "", []string{foreign}, []string{foreign}, []string{foreign}, nil},
		"hooks":           {"", hookedTemplate, "", nil, []string{hooks}, nil, []string{hooks}},
		"nothing hosted":  {"the annotation alone leaves nothing there", echo("x", ""), "h", []string{hosting, foreign}, []string{hosting, foreign}, []string{foreign}, nil},
		"hosted":          {"no owner reference takes its works away", onHost, "h", []string{foreign}, []string{foreign, hosting}, []string{foreign}, []string{hosting}},
		"deprecated":      {"is taken off on sight", hookedTemplate, "", []string{deprecated, foreign}, []string{foreign, hooks}, []string{foreign}, []string{hooks}},
		"no longer":       {"what is not asked for goes", echo("x", ""), "", []string{hooks, foreign, hosting}, []string{hooks, foreign, hosting}, []string{foreign}, nil},
		"hosted hooks":    {"run on either cluster", hostedTemplate, "h", nil, []string{hooks, hostingHooks, hosting}, nil, []string{hooks, hostingHooks, hosting}},
		"hosted, at home": {"all hooks run on the managed cluster", hostedTemplate, "", []string{hostingHooks}, []string{hostingHooks, hooks}, nil, []string{hooks}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			wanted := renderedFor(t, contentOf(t, c.template, ""), Cluster{Name: "cluster1", Hosting: c.host}).Finalizers()
			if diff := cmp.Diff(c.is, wanted); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.with, WithFinalizers(c.current, wanted)); diff != "" {
				t.Errorf("before the works are written, %s (-want +got):\n%s", c.reason, diff)
			}
			after := WithoutFinalizers(c.current, wanted)
			for _, f := range after {
				if HoldsAddOn(f) && f != hooks && f != hostingHooks && f != hosting {
					t.Errorf("%s is left", f)
				}
			}
			if again := WithoutFinalizers(WithFinalizers(c.current, wanted), wanted); !cmp.Equal(again, WithFinalizers(after, wanted)) {
				t.Errorf("%s: order matters: %v and %v", c.reason, again, WithFinalizers(after, wanted))
			}
		})
	}
}
