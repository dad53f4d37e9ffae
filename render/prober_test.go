package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// probing returns the prober of a type, without expressions.
func probing(t *testing.T, kind v1alpha1.ProberType) Prober {
	t.Helper()
	p, err := NewProber(&v1alpha1.Health{Prober: kind})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	deploymentStuck = `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
		conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: timed out, lastUpdateTime: "2024-01-01T00:00:00Z"}]}}`
	deploymentWaiting = "{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}"
	daemonsWaiting    = "{metadata: {generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 1, numberAvailable: 1}}"
	notEchoed         = "{metadata: {generation: 2, annotations: {addonflow.io/digest: old}}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}"
	jobFailed         = `{metadata: {generation: 1}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: enough}]}}`
	jobRunning        = "{metadata: {generation: 1}, status: {active: 1}}"
	replicasWaiting   = "{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, availableReplicas: 1}}"
	statefulWaiting   = "{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, currentRevision: r, updateRevision: s}}"
)

// What each prober checks. With each of them, the digest must be echoed.
func TestProbersAskForTheirPartAndTheDigest(t *testing.T) {
	const yes, no, failed = "verified", "waiting", "failed"
	all := []v1alpha1.ProberType{
		v1alpha1.ProberWorkloadAvailability, v1alpha1.ProberDeploymentAvailability, v1alpha1.ProberLease,
		v1alpha1.ProberWork, v1alpha1.ProberNone,
	}
	cases := map[string]struct {
		reason, kind, live string
		want               []string // in the order of all
	}{
		"runs":                {"nothing is missing", "Deployment", healthyDeployment, []string{yes, yes, yes, yes, yes}},
		"old content":         {"the digest is asked by every prober", "Deployment", notEchoed, []string{no, no, no, no, no}},
		"old pod left":        {"the old pod is available, the new one never is", "Deployment", deploymentWaiting, []string{no, no, no, yes, yes}},
		"gave up":             {"failed now, not at the deadline", "Deployment", deploymentStuck, []string{failed, failed, failed, yes, yes}},
		"DaemonSet waits":     {"is no Deployment", "DaemonSet", daemonsWaiting, []string{no, yes, no, yes, yes}},
		"StatefulSet waits":   {"counts, unlike in OCM", "StatefulSet", statefulWaiting, []string{no, yes, no, yes, yes}},
		"Job running":         {"counts, unlike in OCM", "Job", jobRunning, []string{no, yes, no, yes, yes}},
		"Job failed":          {"in its own words", "Job", jobFailed, []string{failed, yes, failed, yes, yes}},
		"ReplicaSet waits":    {"counts, unlike in OCM", "ReplicaSet", replicasWaiting, []string{no, yes, no, yes, yes}},
		"controller waits":    {"counts, unlike in OCM", "ReplicationController", replicasWaiting, []string{no, yes, no, yes, yes}},
		"Pod never starts":    {"its image cannot be pulled", "Pod", "{status: {phase: Pending, conditions: [{type: Ready, status: \"False\"}]}}", []string{no, yes, no, yes, yes}},
		"Pod ready":           {"older API servers report no generation of it", "Pod", "{status: {phase: Running, conditions: [{type: Ready, status: \"True\"}]}}", []string{yes, yes, yes, yes, yes}},
		"Pod ended":           {"well", "Pod", "{status: {phase: Succeeded}}", []string{yes, yes, yes, yes, yes}},
		"Pod failed":          {"in its own words", "Pod", "{status: {phase: Failed, reason: Evicted, message: no memory}}", []string{failed, yes, failed, yes, yes}},
		"CronJob old content": {"is asked for its content alone", "CronJob", "{metadata: {generation: 1, annotations: {addonflow.io/digest: old}}}", []string{no, no, no, no, no}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			work := report(t, workOf(t, c.kind, "{}", "[]"), c.live)
			for i, kind := range all {
				o := probing(t, kind).Observe(Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}, Available: leaseUpdated()})
				got := no
				switch {
				case o.Failed:
					got = failed
				case o.Verified:
					got = yes
				}
				if got != c.want[i] {
					t.Errorf("%s: prober %s: %s, want %s (%s)", c.reason, kind, got, c.want[i], o.Reason)
				}
				if o.Verified != (o.Reason == "") {
					t.Errorf("prober %s: verified %v with reason %q", kind, o.Verified, o.Reason)
				}
			}
		})
	}
}

func leaseUpdated() *metav1.Condition {
	return &metav1.Condition{
		Type: "Available", Status: metav1.ConditionTrue,
		Reason: "ManagedClusterAddOnLeaseUpdated", Message: "hello add-on is available.",
	}
}

// No prober is weaker than a work whose current version is applied and available.
func TestNoProberIsWeakerThanTheWork(t *testing.T) {
	for _, kind := range []v1alpha1.ProberType{v1alpha1.ProberWork, v1alpha1.ProberNone, v1alpha1.ProberLease, v1alpha1.ProberDeploymentAvailability} {
		for name, change := range map[string]func(*workv1.ManifestWork){
			"not applied":     func(w *workv1.ManifestWork) { w.Status.Conditions[0].Status = metav1.ConditionFalse },
			"applied stale":   func(w *workv1.ManifestWork) { w.Status.Conditions[0].ObservedGeneration-- },
			"not available":   func(w *workv1.ManifestWork) { w.Status.Conditions[1].Status = metav1.ConditionFalse },
			"available stale": func(w *workv1.ManifestWork) { w.Status.Conditions[1].ObservedGeneration-- },
			"part missing":    func(w *workv1.ManifestWork) { w.Annotations[PartsAnnotation] = "2" },
		} {
			work := report(t, workOf(t, "Deployment", "{}", "[]"), healthyDeployment)
			change(work)
			if o := probing(t, kind).Observe(Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}, Available: leaseUpdated()}); o.Verified {
				t.Errorf("prober %s verifies a work that is %s", kind, name)
			}
		}
	}
}

func TestLeaseProberAsksTheWorkloadsToo(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: "Available", Status: status, Reason: reason, Message: message}
	}
	cases := map[string]struct {
		reason   string
		lease    *metav1.Condition
		verified bool
		want     string
	}{
		"renewed":   {"by an agent of the new content: no other pod is left", leaseUpdated(), true, ""},
		"absent":    {"no report", nil, false, "the klusterlet has not reported the agent's lease"},
		"our own":   {"a word of ours is no lease", condition(metav1.ConditionTrue, "ProbeAvailable", "hello add-on is available."), false, "the klusterlet has not reported the agent's lease"},
		"stopped":   {"not renewed", condition(metav1.ConditionFalse, "ManagedClusterAddOnLeaseUpdateStopped", "hello add-on is not available."), false, "lease: hello add-on is not available."},
		"not found": {"the agent renews none", condition(metav1.ConditionUnknown, "ManagedClusterAddOnLeaseNotFound", "no\nlease"), false, "lease: no lease"},
	}
	work := report(t, workOf(t, "Deployment", "{}", "[]"), healthyDeployment)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := probing(t, v1alpha1.ProberLease).Observe(Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}, Available: c.lease})
			if o.Verified != c.verified || o.Reason != c.want || o.Failed || !o.Current {
				t.Errorf("%s: got %+v", c.reason, o)
			}
		})
	}
}

// Available uses OCM's words, letter for letter.
func TestAvailableAsOCMWordsIt(t *testing.T) {
	available := Availability{Status: metav1.ConditionTrue, Reason: "ProbeAvailable", Message: "hello add-on is available."}
	degraded := func(words string) Availability {
		a := available
		a.Degraded = words
		return a
	}
	unavailable := func(words string) Availability {
		return Availability{Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "Probe addon unavailable with err " + words}
	}
	noResult := Availability{Status: metav1.ConditionUnknown, Reason: "NoProbeResult", Message: "Probe results are not returned"}
	notApplied := Availability{Status: metav1.ConditionUnknown, Reason: "WorkNotApplied", Message: "Addon manifestWork is not applied yet"}
	const (
		workload   = v1alpha1.ProberWorkloadAvailability
		deployment = v1alpha1.ProberDeploymentAvailability
	)
	change := func(f func(*workv1.ManifestWork)) func(*workv1.ManifestWork) { return f }
	cases := map[string]struct {
		reason, kind, live string
		prober             v1alpha1.ProberType
		change             func(*workv1.ManifestWork)
		want               Availability
	}{
		"runs":            {"all of it", "Deployment", healthyDeployment, workload, nil, available},
		"none ready":      {"of one", "Deployment", "{metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1}}", workload, nil, unavailable("desiredNumberReplicas is 1 but readyReplica is 0 for deployments ns/w")},
		"one ready":       {"is available, and degraded", "Deployment", "{metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, readyReplicas: 1, availableReplicas: 1}}", workload, nil, degraded("Deployment w: 1 of 3 replicas ready")},
		"old pod serves":  {"while the new content gave up", "Deployment", deploymentStuck, workload, nil, degraded("Deployment w: ProgressDeadlineExceeded: timed out")},
		"wants none":      {"OCM asks no zero-replica Deployment", "Deployment", "{metadata: {generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}", workload, nil, available},
		"DaemonSet":       {"with all of them", "DaemonSet", daemonsWaiting, workload, nil, unavailable("desiredNumberReplicas is 3 but readyReplica is 1 for daemonsets ns/w")},
		"not asked":       {"a DaemonSet is no Deployment", "DaemonSet", daemonsWaiting, deployment, nil, available},
		"StatefulSet":     {"counts like a Deployment", "StatefulSet", statefulWaiting, workload, nil, degraded("StatefulSet w: 1 of 2 replicas ready")},
		"Job failed":      {"is unavailable", "Job", jobFailed, workload, nil, unavailable("Job w: BackoffLimitExceeded: enough")},
		"Job running":     {"is on its way", "Job", jobRunning, workload, nil, available},
		"Work":            {"asks no pods", "Deployment", deploymentStuck, v1alpha1.ProberWork, nil, Availability{Status: metav1.ConditionTrue, Reason: "WorkApplied", Message: "Addon manifestWork is applied"}},
		"Lease":           {"is the klusterlet's to write", "Deployment", healthyDeployment, v1alpha1.ProberLease, nil, Availability{}},
		"None":            {"is the user's to write", "Deployment", healthyDeployment, v1alpha1.ProberNone, nil, Availability{}},
		"stale feedback":  {"of other content is no result", "Deployment", notEchoed, workload, nil, noResult},
		"unseen":          {"by its controller is no result", "Deployment", strings.Replace(healthyDeployment, "observedGeneration: 1", "observedGeneration: 0", 1), workload, nil, noResult},
		"no feedback":     {"partial feedback is not health", "Deployment", healthyDeployment, workload, change(func(w *workv1.ManifestWork) { w.Status.ResourceStatus.Manifests = nil }), noResult},
		"never applied":   {"no condition", "Deployment", healthyDeployment, workload, change(func(w *workv1.ManifestWork) { w.Status = workv1.ManifestWorkStatus{} }), notApplied},
		"stale condition": {"OCM believes it", "Deployment", healthyDeployment, workload, change(func(w *workv1.ManifestWork) { w.Generation++ }), notApplied},
		"objects missing": {"in the agent's words", "Deployment", healthyDeployment, workload, change(func(w *workv1.ManifestWork) {
			w.Status.Conditions[1].Status, w.Status.Conditions[1].Message = metav1.ConditionFalse, "1 of 1 resources are not available"
		}), Availability{Status: metav1.ConditionFalse, Reason: "WorkNotApplied", Message: "1 of 1 resources are not available"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			work := report(t, workOf(t, c.kind, "{}", "[]"), c.live)
			if c.change != nil {
				c.change(work)
			}
			got := probing(t, c.prober).Available(Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
	none := Availability{Status: metav1.ConditionUnknown, Reason: "WorkNotFound", Message: "Addon manifestWork is not found"}
	if diff := cmp.Diff(none, Prober{}.Available(Report{AddOn: "hello"})); diff != "" {
		t.Errorf("without works (-want +got):\n%s", diff)
	}
}

func TestProbersThatAreRefused(t *testing.T) {
	expr := v1alpha1.HealthCheckExpr{APIVersion: "v1", Kind: "ConfigMap", Current: "feedback.x == 1"}
	for name, c := range map[string]struct {
		health v1alpha1.Health
		want   string
	}{
		"unknown":        {v1alpha1.Health{Prober: "work"}, `spec.health.prober: unknown prober "work"`},
		"no expressions": {v1alpha1.Health{Prober: v1alpha1.ProberCEL}, "spec.health.healthCheckExprs: prober CEL needs at least one"},
		"ignored":        {v1alpha1.Health{Prober: v1alpha1.ProberWork, HealthCheckExprs: []v1alpha1.HealthCheckExpr{expr}}, "spec.health.healthCheckExprs: prober Work would ignore them"},
		"ignored too":    {v1alpha1.Health{HealthCheckExprs: []v1alpha1.HealthCheckExpr{expr}}, "spec.health.healthCheckExprs: prober WorkloadAvailability would ignore them"},
	} {
		if _, err := NewProber(&c.health); !errors.Is(err, ErrInvalidHealth) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
