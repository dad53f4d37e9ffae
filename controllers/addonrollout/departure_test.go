package addonrollout

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
)

var deletedAt = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

// leaver is a member whose ManagedClusterAddOn is being deleted, with a deploy work.
func leaver(finalizers ...string) *member {
	return &member{
		name: "c1", cluster: availableCluster("c1"),
		addOn: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "hello", DeletionTimestamp: &deletedAt, Finalizers: finalizers,
		}},
		works: []*workv1.ManifestWork{workNamed("c1", "addon-hello-deploy-0")},
	}
}

func availableCluster(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}},
	}
}

func workNamed(namespace, name string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{addonv1alpha1.AddonLabelKey: "hello"},
	}}
	if namespace != "c1" {
		w.Labels[addonv1alpha1.AddonNamespaceLabelKey] = "c1"
	}
	return w
}

// hookWork is a work with one hook, which reported this phase of its Pod.
func hookWork(namespace, name, phase string) *workv1.ManifestWork {
	w := workNamed(namespace, name)
	w.Annotations = map[string]string{v1alpha1.DigestAnnotation: "d"}
	id := workv1.ResourceIdentifier{Resource: "pods", Namespace: "ns", Name: "clean"}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{ResourceIdentifier: id}}
	for _, c := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
	}
	text := func(name, value string) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &value}}
	}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta:    workv1.ManifestResourceMeta{Resource: "pods", Namespace: "ns", Name: "clean"},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{text("addonflow.digest", "d"), text("PodPhase", phase)}},
	}}
	return w
}

const (
	hookFinalizer        = addonv1alpha1.AddonPreDeleteHookFinalizer
	hostingHookFinalizer = addonv1alpha1.AddonHostingPreDeleteHookFinalizer
	hostingFinalizer     = addonv1alpha1.AddonHostingManifestFinalizer
)

func TestDepartureRunsHooksFirst(t *testing.T) {
	cases := map[string]struct {
		reason string
		member func() *member
		done   bool
		words  string
		waived string
	}{
		"no hooks":   {"hosted works only", func() *member { return leaver(hostingFinalizer) }, true, "", ""},
		"before":     {"", func() *member { return leaver(hookFinalizer) }, false, "pre-delete hook is about to run", ""},
		"deprecated": {"is held like any other", func() *member { return leaver(addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer) }, false, "pre-delete hook is about to run", ""},
		"running": {"", func() *member {
			m := leaver(hookFinalizer)
			m.hooks = append(m.hooks, hookWork("c1", "addon-hello-pre-delete", "Running"))
			return m
		}, false, "pre-delete hook: Pod clean has not completed", ""},
		"failed": {"", func() *member {
			m := leaver(hookFinalizer)
			m.hooks = append(m.hooks, hookWork("c1", "addon-hello-pre-delete", "Failed"))
			return m
		}, false, "pre-delete hook: Pod clean failed: no reason given", ""},
		"completed": {"", func() *member {
			m := leaver(hookFinalizer)
			m.hooks = append(m.hooks, hookWork("c1", "addon-hello-pre-delete", "Succeeded"))
			return m
		}, true, "", ""},
		"of a former life": {"its work must go first", func() *member {
			m := leaver(hookFinalizer)
			w := hookWork("c1", "addon-hello-pre-delete", "Succeeded")
			w.DeletionTimestamp = &deletedAt
			m.hooks = append(m.hooks, w)
			return m
		}, false, "pre-delete hook: waiting for its former work to be gone", ""},
		"one of two": {"OCM takes either for both", func() *member {
			m := leaver(hookFinalizer, hostingHookFinalizer, hostingFinalizer)
			m.hosting, m.hostedAt = addonstatus.Hosting{Hosted: true, Name: "h", Cluster: availableCluster("h")}, availableCluster("h")
			m.hooks = append(m.hooks, hookWork("c1", "addon-hello-pre-delete", "Succeeded"), hookWork("h", "addon-hello-pre-delete-hosting-c1", "Running"))
			return m
		}, false, "pre-delete hook on the hosting cluster: Pod clean has not completed", ""},
		"not available": {"it runs on return", func() *member {
			m := leaver(hookFinalizer)
			m.cluster.Status.Conditions[0].Status = metav1.ConditionUnknown
			return m
		}, false, "pre-delete hook: the cluster is not available", ""},
		"leaves the hub": {"it still answers", func() *member {
			m := leaver(hookFinalizer)
			m.cluster.DeletionTimestamp = &deletedAt
			return m
		}, false, "pre-delete hook is about to run", ""},
		"left the hub": {"nobody is there to run it", func() *member {
			m := leaver(hookFinalizer)
			m.cluster.DeletionTimestamp = &deletedAt
			m.cluster.Status.Conditions[0].Status = metav1.ConditionUnknown
			return m
		}, true, "", "cluster c1 is leaving the hub and not available"},
		"no cluster": {"", func() *member {
			m := leaver(hookFinalizer)
			m.cluster = nil
			return m
		}, true, "", "cluster c1 is not a managed cluster of the hub"},
		"no hosting cluster": {"told, not silent", func() *member {
			m := leaver(hostingHookFinalizer, hostingFinalizer)
			m.hosting = addonstatus.Hosting{Hosted: true, Name: "typo"}
			return m
		}, true, "", "hosting cluster typo is not a managed cluster of the hub"},
		"skipped": {"by the user", func() *member {
			m := leaver(hookFinalizer)
			m.addOn.Annotations = map[string]string{v1alpha1.SkipPreDeleteAnnotation: "true"}
			return m
		}, true, "", "skipped by annotation addonflow.io/skip-pre-delete"},
		"not skipped": {"any other value is none", func() *member {
			m := leaver(hookFinalizer)
			m.addOn.Annotations = map[string]string{v1alpha1.SkipPreDeleteAnnotation: ""}
			return m
		}, false, "pre-delete hook is about to run", ""},
		"never deployed": {"nothing to clean up after", func() *member {
			m := leaver(hookFinalizer)
			m.works = nil
			return m
		}, true, "", ""},
		"going already": {"a deletion took the works first", func() *member {
			m := leaver(hookFinalizer)
			m.works[0].DeletionTimestamp = &deletedAt
			return m
		}, true, "", "what it cleans up after is being deleted already"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := c.member()
			dep := m.departing("hello")
			if dep.done() != c.done || dep.reason() != c.words {
				t.Errorf("%s: done %v, %q", c.reason, dep.done(), dep.reason())
			}
			if got := strings.Join(dep.waivers(m.addOn), "; "); got != c.waived {
				t.Errorf("%s: waived because %q", c.reason, got)
			}
		})
	}
}

func TestHookTimeoutIsReported(t *testing.T) {
	m := leaver(hookFinalizer)
	m.hooks = []*workv1.ManifestWork{hookWork("c1", "addon-hello-pre-delete", "Running")}
	const timeout = 10 * time.Minute
	const notYet = "hook manifestWork addon-hello-pre-delete is not completed."
	for after, want := range map[time.Duration]string{
		time.Minute: notYet,
		timeout: notYet + " pre-delete hook: Pod clean has not completed. Nothing is removed until it completes; " +
			`to remove the add-on without it, set the annotation addonflow.io/skip-pre-delete: "true"`,
	} {
		c, wrong := hookCondition(m, m.departing("hello"), "hello", timeout, deletedAt.Add(after))
		if c.Type != "HookManifestCompleted" || c.Status != metav1.ConditionFalse || c.Reason != "HookManifestIsNotCompleted" || c.Message != want {
			t.Errorf("after %s: %+v", after, c)
		}
		if wrong != (after >= timeout) {
			t.Errorf("after %s: an event: %v", after, wrong)
		}
	}
	if d := plannedDeparture(m, "hello", timeout); !d.OverdueAt.Equal(deletedAt.Add(timeout)) {
		t.Errorf("overdue at %s", d.OverdueAt)
	}
	m.hooks[0] = hookWork("c1", "addon-hello-pre-delete", "Failed")
	if d := plannedDeparture(m, "hello", timeout); !d.OverdueAt.Equal(deletedAt.Time) {
		t.Errorf("a hook that failed is overdue at once, not at %s", d.OverdueAt)
	}
	m.hooks[0] = hookWork("c1", "addon-hello-pre-delete", "Succeeded")
	c, _ := hookCondition(m, m.departing("hello"), "hello", timeout, deletedAt.Add(time.Hour))
	if c.Status != metav1.ConditionTrue || c.Reason != "HookManifestIsCompleted" || c.Message != "hook manifestWork addon-hello-pre-delete is completed." {
		t.Errorf("completed: %+v", c)
	}
}

func TestHostingClusterValidity(t *testing.T) {
	h := availableCluster("h")
	annotated := func(value string) *member {
		return &member{name: "c1", addOn: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{addonv1alpha1.HostingClusterNameAnnotationKey: value},
		}}}
	}
	clusters := map[string]*clusterv1.ManagedCluster{"h": h}
	cases := map[string]struct {
		reason, problem, condition string
		member                     *member
	}{
		"default":  {"", "", "", &member{name: "c1", addOn: &addonv1alpha1.ManagedClusterAddOn{}}},
		"valid":    {"", "", "True HostingClusterValid: hosting cluster h is a managed cluster of the hub", annotated("h")},
		"typo":     {"", "hosting cluster hh is not a managed cluster of the hub", "False HostingClusterInvalid: hosting cluster hh is not a managed cluster of the hub", annotated("hh")},
		"empty":    {"is a name, too", "hosting cluster  is not a managed cluster of the hub", "False HostingClusterInvalid: hosting cluster  is not a managed cluster of the hub", annotated("")},
		"by label": {"the cluster's annotation is copied at install", "", "True HostingClusterValid: hosting cluster h is a managed cluster of the hub", &member{name: "c1", cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{addonv1alpha1.HostingClusterNameAnnotationKey: "h"}}}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			where := hostingOf(c.member, clusters)
			if got := where.Problem(); got != c.problem {
				t.Errorf("%s: problem %q", c.reason, got)
			}
			said := ""
			if condition := where.Condition(); condition != nil {
				said = string(condition.Status) + " " + condition.Reason + ": " + condition.Message
			}
			if said != c.condition {
				t.Errorf("%s: %q", c.reason, said)
			}
		})
	}
	h.DeletionTimestamp = &deletedAt
	if got := hostingOf(annotated("h"), clusters).Problem(); got != "hosting cluster h is being deleted" {
		t.Errorf("a hosting cluster that leaves: %q", got)
	}
}

func TestHookRunsWhereTheAddOnIsHosted(t *testing.T) {
	m := leaver(hostingHookFinalizer, hostingFinalizer)
	m.hosting = addonstatus.Hosting{Hosted: true, Name: "typo"}
	if got := m.hostedBy("hello"); got != "typo" {
		t.Errorf("without works: %q", got)
	}
	m.works = append(m.works, workNamed("h", "addon-hello-deploy-hosting-c1-0"))
	if got := m.hostedBy("hello"); got != "h" {
		t.Errorf("the works say where it is: %q", got)
	}
}
