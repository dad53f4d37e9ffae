package render

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// drawReport draws any report that an agent may send about a work.
func drawReport(t *rapid.T, base *workv1.ManifestWork) (work *workv1.ManifestWork, current, echoed bool) {
	work, current = base.DeepCopy(), true
	for i := range work.Status.Conditions {
		c := &work.Status.Conditions[i]
		c.Status = rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}).Draw(t, c.Type)
		c.ObservedGeneration -= rapid.Int64Range(0, 1).Draw(t, c.Type+" is stale by")
		current = current && c.Status == metav1.ConditionTrue && c.ObservedGeneration == work.Generation
	}
	feedback := &work.Status.ResourceStatus.Manifests[0].StatusFeedbacks
	var kept []workv1.FeedbackValue
	for _, v := range feedback.Values {
		switch rapid.SampledFrom([]string{"kept", "kept", "kept", "dropped", "changed"}).Draw(t, v.Name) {
		case "kept":
			echoed = echoed || v.Name == valueDigest
			kept = append(kept, v)
		case "changed":
			n, text := rapid.Int64Range(-1, 3).Draw(t, "number"), "other"
			if v.Value.Type == workv1.Integer {
				v.Value.Integer = &n
			} else {
				v.Value.String = &text
			}
			kept = append(kept, v)
		}
	}
	if rapid.Bool().Draw(t, "gave up") {
		text := "ProgressDeadlineExceeded"
		kept = append(kept, workv1.FeedbackValue{Name: valueReason, Value: workv1.FieldValue{Type: workv1.String, String: &text}})
	}
	feedback.Values = kept
	return work, current, echoed
}

// Whatever the prober and the agent's report: content that was not echoed neither verifies nor
// fails, and no prober is weaker than Work.
func TestProbersJudgeThePresentContentOnly(t *testing.T) {
	base := report(t, workOf(t, "Deployment", "{}", "[]"), healthyDeployment)
	probers := map[v1alpha1.ProberType]Prober{v1alpha1.ProberCEL: {}}
	for _, kind := range []v1alpha1.ProberType{
		v1alpha1.ProberLease, v1alpha1.ProberWork, v1alpha1.ProberDeploymentAvailability, v1alpha1.ProberWorkloadAvailability, v1alpha1.ProberNone,
	} {
		probers[kind] = probing(t, kind)
	}
	var err error
	probers[v1alpha1.ProberCEL], err = NewProber(&v1alpha1.Health{Prober: v1alpha1.ProberCEL, HealthCheckExprs: []v1alpha1.HealthCheckExpr{{
		APIVersion: "apps/v1", Kind: "Deployment", Current: "feedback.ReadyReplicas >= 1", Failed: "feedback.Replicas > 2",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		work, current, echoed := drawReport(t, base)
		r := Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}}
		if rapid.Bool().Draw(t, "lease") {
			r.Available = leaseUpdated()
		}
		seen := map[v1alpha1.ProberType]Observation{}
		for kind, p := range probers {
			seen[kind] = p.Observe(r)
			believable(t, kind, seen[kind], current, echoed)
			if a := p.Available(r); a.Status == metav1.ConditionTrue && kind != v1alpha1.ProberWork && !echoed {
				t.Fatalf("%s says available of other content: %+v", kind, a)
			}
		}
		for stricter, weaker := range map[v1alpha1.ProberType]v1alpha1.ProberType{
			v1alpha1.ProberLease: v1alpha1.ProberWorkloadAvailability, v1alpha1.ProberWorkloadAvailability: v1alpha1.ProberDeploymentAvailability,
			v1alpha1.ProberDeploymentAvailability: v1alpha1.ProberWork, v1alpha1.ProberCEL: v1alpha1.ProberNone,
		} {
			if seen[stricter].Verified && !seen[weaker].Verified {
				t.Fatalf("%s verifies, %s does not: %s", stricter, weaker, seen[weaker].Reason)
			}
		}
	})
}

// believable compares an observation with the facts of the report.
func believable(t *rapid.T, kind v1alpha1.ProberType, o Observation, current, echoed bool) {
	t.Helper()
	switch {
	case o.Verified && (!current || !echoed):
		t.Fatalf("%s verifies, current %v, echoed %v: %+v", kind, current, echoed, o)
	case o.Failed && !echoed:
		t.Fatalf("%s fails content that was not echoed: %+v", kind, o)
	case o.Verified == (o.Reason != "") || o.Verified && o.Failed:
		t.Fatalf("%s contradicts itself: %+v", kind, o)
	}
}
