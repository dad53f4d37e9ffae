package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// writtenWork is a work that AddonFlow wrote, whose Deployment has arguments of a size.
func writtenWork(t *testing.T, size int) *workv1.ManifestWork {
	t.Helper()
	works, _ := worksFor(t, contentOf(t, helloTemplate, helloAgent))
	m := &works[0].Spec.Workload.Manifests[0]
	edited := strings.Replace(string(m.Raw), "--v=4", strings.Repeat("x", size), 1)
	if edited == string(m.Raw) {
		t.Fatalf("no argument to replace in %s", m.Raw)
	}
	m.Raw = []byte(edited)
	return works[0]
}

func TestAbridgedWorkHasIdentitiesAndMarksAndNoContent(t *testing.T) {
	small, large := writtenWork(t, 1), writtenWork(t, 10_000)
	was := identitiesOf(large)
	marks := markedIn(large)
	for _, w := range []*workv1.ManifestWork{small, large} {
		NewAbridger().Abridge(w)
	}
	if got := identitiesOf(large); fmt.Sprint(got) != fmt.Sprint(was) {
		t.Errorf("got %v, want %v", got, was)
	}
	if got := markedIn(large); got != marks || marks == 0 {
		t.Errorf("%d objects carry the digest, want %d", got, marks)
	}
	for i := range large.Spec.Workload.Manifests {
		if a, b := small.Spec.Workload.Manifests[i].Raw, large.Spec.Workload.Manifests[i].Raw; len(a) != len(b) {
			t.Errorf("the size depends on that of the content: %d and %d bytes", len(a), len(b))
		}
	}
	once := large.DeepCopy()
	NewAbridger().Abridge(large)
	for i := range large.Spec.Workload.Manifests {
		if !bytes.Equal(large.Spec.Workload.Manifests[i].Raw, once.Spec.Workload.Manifests[i].Raw) {
			t.Errorf("abridged twice: %s", large.Spec.Workload.Manifests[i].Raw)
		}
	}
}

// TestAbridgedWorkCannotBeWritten: a write of a cached work would replace the objects on the cluster.
func TestAbridgedWorkCannotBeWritten(t *testing.T) {
	w := writtenWork(t, 1)
	NewAbridger().Abridge(w)
	if text, err := json.Marshal(w); err == nil {
		t.Errorf("encoded: %s", text)
	}
}

func TestWorkOfAnotherWriterIsNotAbridged(t *testing.T) {
	w := writtenWork(t, 1)
	delete(w.Annotations, v1alpha1.DigestAnnotation)
	was := w.DeepCopy()
	NewAbridger().Abridge(w)
	if !bytes.Equal(w.Spec.Workload.Manifests[0].Raw, was.Spec.Workload.Manifests[0].Raw) {
		t.Errorf("got %s", w.Spec.Workload.Manifests[0].Raw)
	}
}

// deploymentWork is the work of a cluster whose Deployment reports these fields.
func deploymentWork(t *testing.T, cluster, live string) *workv1.ManifestWork {
	t.Helper()
	content := contentOf(t, podTemplate("apps/v1", "Deployment", "{containers: [{name: c, args: ['{{CLUSTER_NAME}}']}]}"), "")
	works, _, err := renderedFor(t, content, Cluster{Name: cluster}).Works(Owner{Name: "hello", Namespace: cluster}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report(t, works[0], live)
}

// progressing adds the condition of a Deployment to what it reports.
func progressing(reason, message string) string {
	return strings.TrimSuffix(healthyDeployment, "}") + fmt.Sprintf(
		", conditions: [{type: Progressing, reason: %s, message: %q, lastUpdateTime: '2026-01-02T03:04:05Z'}]}", reason, message)
}

// TestAbridgedFeedbackProvesTheSame: what is abridged decides nothing, and names nothing that a user reads.
func TestAbridgedFeedbackProvesTheSame(t *testing.T) {
	for name, w := range map[string]*workv1.ManifestWork{
		"healthy":       deploymentWork(t, "c1", healthyDeployment),
		"complete":      deploymentWork(t, "c1", progressing("NewReplicaSetAvailable", "ReplicaSet w-1 has successfully progressed.")),
		"failed":        deploymentWork(t, "c1", progressing("ProgressDeadlineExceeded", "ReplicaSet w-1 has timed out progressing.")),
		"other content": deploymentWork(t, "c1", "metadata: {annotations: {addonflow.io/digest: other}}\n"+healthyDeployment[len("metadata: {generation: 1}\n"):]),
	} {
		t.Run(name, func(t *testing.T) {
			want, failure := observed([]*workv1.ManifestWork{w}), reportedFailures([]workPart{{existing: w}})
			for range 2 { // a watch may abridge an object twice
				NewAbridger().Abridge(w)
				if got := observed([]*workv1.ManifestWork{w}); got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if got := reportedFailures([]workPart{{existing: w}}); got != failure {
					t.Errorf("got failure %q, want %q", got, failure)
				}
			}
		})
	}
}

// TestNoAgentCanReportTheMarkOfItsOwnDigest: the API server stores text, and decodes it.
func TestNoAgentCanReportTheMarkOfItsOwnDigest(t *testing.T) {
	w := deploymentWork(t, "c1", healthyDeployment)
	NewAbridger().Abridge(w)
	if o := observed([]*workv1.ManifestWork{w}); !o.Verified {
		t.Fatal(o.Reason)
	}
	text, err := json.Marshal(w.Status)
	if err != nil {
		t.Fatal(err)
	}
	w.Status = workv1.ManifestWorkStatus{}
	if err := json.Unmarshal(text, &w.Status); err != nil {
		t.Fatal(err)
	}
	NewAbridger().Abridge(w)
	if o := observed([]*workv1.ManifestWork{w}); o.Verified {
		t.Errorf("verified by a mark that an agent reported: %+v", o)
	}
}

// TestAbridgedFeedbackIsEqualOnAllClusters, so that their works share it.
func TestAbridgedFeedbackIsEqualOnAllClusters(t *testing.T) {
	one := deploymentWork(t, "c1", progressing("NewReplicaSetAvailable", "ReplicaSet w-1 has successfully progressed."))
	other := deploymentWork(t, "c2", progressing("NewReplicaSetAvailable", "ReplicaSet w-2 has successfully progressed."))
	if one.Annotations[v1alpha1.DigestAnnotation] == other.Annotations[v1alpha1.DigestAnnotation] {
		t.Fatal("the clusters have one digest")
	}
	NewAbridger().Abridge(one)
	NewAbridger().Abridge(other)
	if diff := cmp.Diff(one.Status, other.Status); diff != "" {
		t.Error(diff)
	}
}

// TestAbridgedFeedbackProvesNoOtherContent: the operator remembers a work that it wrote with the status of the work before.
func TestAbridgedFeedbackProvesNoOtherContent(t *testing.T) {
	before, written := deploymentWork(t, "c1", healthyDeployment), deploymentWork(t, "c2", healthyDeployment)
	NewAbridger().Abridge(before)
	if o := observed([]*workv1.ManifestWork{before}); !o.Verified {
		t.Fatal(o.Reason)
	}
	written.Status = StatusOf(before)
	if o := observed([]*workv1.ManifestWork{written}); o.Current || o.Verified {
		t.Errorf("verified by the digest of the content before: %+v", o)
	}
}

// TestExpressionsReadTheDigestOfAnAbridgedWork as the agent reported it.
func TestExpressionsReadTheDigestOfAnAbridgedWork(t *testing.T) {
	w := deploymentWork(t, "c1", healthyDeployment)
	NewAbridger().Abridge(w)
	feedback, _ := readable(w, &w.Status.ResourceStatus.Manifests[0])[feedbackVariable].(map[string]any)
	if got := feedback[valueDigest]; got != w.Annotations[v1alpha1.DigestAnnotation] {
		t.Errorf("got %v", got)
	}
}
