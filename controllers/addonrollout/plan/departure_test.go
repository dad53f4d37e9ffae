package plan

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
func leaver(finalizers ...string) *Member {
	return &Member{
		Name: "c1", Cluster: availableCluster("c1"),
		AddOn: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "hello", DeletionTimestamp: &deletedAt, Finalizers: finalizers,
		}},
		Works: []*workv1.ManifestWork{workNamed("c1", "addon-hello-deploy-0")},
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
		member func() *Member
		done   bool
		words  string
		waived string
	}{
		"no hooks":   {"hosted works only", func() *Member { return leaver(hostingFinalizer) }, true, "", ""},
		"before":     {"", func() *Member { return leaver(hookFinalizer) }, false, "pre-delete hook is about to run", ""},
		"deprecated": {"is held like any other", func() *Member { return leaver(addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer) }, false, "pre-delete hook is about to run", ""},
		"running": {"", func() *Member {
			m := leaver(hookFinalizer)
			m.Hooks = append(m.Hooks, hookWork("c1", "addon-hello-pre-delete", "Running"))
			return m
		}, false, "pre-delete hook: Pod clean has not completed", ""},
		"failed": {"", func() *Member {
			m := leaver(hookFinalizer)
			m.Hooks = append(m.Hooks, hookWork("c1", "addon-hello-pre-delete", "Failed"))
			return m
		}, false, "pre-delete hook: Pod clean failed: no reason given", ""},
		"completed": {"", func() *Member {
			m := leaver(hookFinalizer)
			m.Hooks = append(m.Hooks, hookWork("c1", "addon-hello-pre-delete", "Succeeded"))
			return m
		}, true, "", ""},
		"of a former life": {"its work must go first", func() *Member {
			m := leaver(hookFinalizer)
			w := hookWork("c1", "addon-hello-pre-delete", "Succeeded")
			w.DeletionTimestamp = &deletedAt
			m.Hooks = append(m.Hooks, w)
			return m
		}, false, "pre-delete hook: waiting for its former work to be deleted", ""},
		"one of two": {"OCM takes either for both", func() *Member {
			m := leaver(hookFinalizer, hostingHookFinalizer, hostingFinalizer)
			m.Hosting, m.HostedAt = addonstatus.Hosting{Hosted: true, Name: "h", Cluster: availableCluster("h")}, availableCluster("h")
			m.Hooks = append(m.Hooks, hookWork("c1", "addon-hello-pre-delete", "Succeeded"), hookWork("h", "addon-hello-pre-delete-hosting-c1", "Running"))
			return m
		}, false, "pre-delete hook on the hosting cluster: Pod clean has not completed", ""},
		"not available": {"it runs on return", func() *Member {
			m := leaver(hookFinalizer)
			m.Cluster.Status.Conditions[0].Status = metav1.ConditionUnknown
			return m
		}, false, "pre-delete hook: the cluster is not available", ""},
		"leaves the hub": {"it still answers", func() *Member {
			m := leaver(hookFinalizer)
			m.Cluster.DeletionTimestamp = &deletedAt
			return m
		}, false, "pre-delete hook is about to run", ""},
		"left the hub": {"no agent is there to run it", func() *Member {
			m := leaver(hookFinalizer)
			m.Cluster.DeletionTimestamp = &deletedAt
			m.Cluster.Status.Conditions[0].Status = metav1.ConditionUnknown
			return m
		}, true, "", "cluster c1 is leaving the hub and not available"},
		"no cluster": {"", func() *Member {
			m := leaver(hookFinalizer)
			m.Cluster = nil
			return m
		}, true, "", "cluster c1 is not a managed cluster of the hub"},
		"no hosting cluster": {"reported, not silent", func() *Member {
			m := leaver(hostingHookFinalizer, hostingFinalizer)
			m.Hosting = addonstatus.Hosting{Hosted: true, Name: "typo"}
			return m
		}, true, "", "hosting cluster typo is not a managed cluster of the hub"},
		"skipped": {"by the user", func() *Member {
			m := leaver(hookFinalizer)
			m.AddOn.Annotations = map[string]string{v1alpha1.SkipPreDeleteAnnotation: "true"}
			return m
		}, true, "", "skipped by annotation addonflow.io/skip-pre-delete"},
		"not skipped": {"any other value is none", func() *Member {
			m := leaver(hookFinalizer)
			m.AddOn.Annotations = map[string]string{v1alpha1.SkipPreDeleteAnnotation: ""}
			return m
		}, false, "pre-delete hook is about to run", ""},
		"never deployed": {"nothing to clean up after", func() *Member {
			m := leaver(hookFinalizer)
			m.Works = nil
			return m
		}, true, "", ""},
		"going already": {"a deletion took the works first", func() *Member {
			m := leaver(hookFinalizer)
			m.Works[0].DeletionTimestamp = &deletedAt
			return m
		}, true, "", "the objects that it cleans up are already being deleted"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := c.member()
			dep := m.departing("hello")
			if dep.Done() != c.done || dep.reason() != c.words {
				t.Errorf("%s: done %v, %q", c.reason, dep.Done(), dep.reason())
			}
			if got := strings.Join(dep.Waivers(m.AddOn), "; "); got != c.waived {
				t.Errorf("%s: waived because %q", c.reason, got)
			}
		})
	}
}

func TestHookTimeoutIsReported(t *testing.T) {
	m := leaver(hookFinalizer)
	m.Hooks = []*workv1.ManifestWork{hookWork("c1", "addon-hello-pre-delete", "Running")}
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
	m.Hooks[0] = hookWork("c1", "addon-hello-pre-delete", "Failed")
	if d := plannedDeparture(m, "hello", timeout); !d.OverdueAt.Equal(deletedAt.Time) {
		t.Errorf("a hook that failed is overdue at once, not at %s", d.OverdueAt)
	}
	m.Hooks[0] = hookWork("c1", "addon-hello-pre-delete", "Succeeded")
	c, _ := hookCondition(m, m.departing("hello"), "hello", timeout, deletedAt.Add(time.Hour))
	if c.Status != metav1.ConditionTrue || c.Reason != "HookManifestIsCompleted" || c.Message != "hook manifestWork addon-hello-pre-delete is completed." {
		t.Errorf("completed: %+v", c)
	}
}

func TestHookRunsWhereTheAddOnIsHosted(t *testing.T) {
	m := leaver(hostingHookFinalizer, hostingFinalizer)
	m.Hosting = addonstatus.Hosting{Hosted: true, Name: "typo"}
	if got := m.HostedBy("hello"); got != "typo" {
		t.Errorf("without works: %q", got)
	}
	m.Works = append(m.Works, workNamed("h", "addon-hello-deploy-hosting-c1-0"))
	if got := m.HostedBy("hello"); got != "h" {
		t.Errorf("the works say where it is: %q", got)
	}
}
