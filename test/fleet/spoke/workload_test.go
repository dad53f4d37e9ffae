package spoke

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// line is one step of a rollout as feedback shows it.
func line(s appsv1.DeploymentStatus) string {
	progressing := s.Conditions[1]
	return fmt.Sprintf("observed=%d total=%d updated=%d ready=%d %s/%s",
		s.ObservedGeneration, s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, progressing.Status, progressing.Reason)
}

// trace steps to the end and returns every state shown on the way.
func trace(t *testing.T, c *Cluster, work string) []string {
	t.Helper()
	var lines []string
	for {
		var status appsv1.DeploymentStatus
		statusOf(t, c, &status)
		lines = append(lines, line(status))
		if !c.Step(work) {
			return lines
		}
	}
}

func TestDeploymentTranscripts(t *testing.T) {
	cases := map[string]struct {
		reason   string
		replicas int
		more     string
		image    string
		want     []string
	}{
		"OneReplicaGood": {
			reason: "the old pod goes only when the new one is ready",
			image:  "hello:v2", replicas: 1,
			want: []string{
				"observed=1 total=1 updated=1 ready=1 True/NewReplicaSetAvailable",
				"observed=2 total=2 updated=1 ready=1 True/ReplicaSetUpdated",
				"observed=2 total=2 updated=1 ready=2 True/ReplicaSetUpdated",
				"observed=2 total=1 updated=1 ready=1 True/NewReplicaSetAvailable",
			},
		},
		"OneReplicaBad": {
			reason: "the new pod counts as updated at once, the old one stays ready",
			image:  "hello:bad", replicas: 1,
			want: []string{
				"observed=1 total=1 updated=1 ready=1 True/NewReplicaSetAvailable",
				"observed=2 total=2 updated=1 ready=1 True/ReplicaSetUpdated",
			},
		},
		"FourReplicasGood": {
			reason: "surge 1, unavailable 1",
			image:  "hello:v2", replicas: 4,
			want: []string{
				"observed=1 total=4 updated=4 ready=4 True/NewReplicaSetAvailable",
				"observed=2 total=4 updated=1 ready=3 True/ReplicaSetUpdated",
				"observed=2 total=4 updated=1 ready=4 True/ReplicaSetUpdated",
				"observed=2 total=4 updated=2 ready=3 True/ReplicaSetUpdated",
				"observed=2 total=4 updated=2 ready=4 True/ReplicaSetUpdated",
				"observed=2 total=4 updated=3 ready=3 True/ReplicaSetUpdated",
				"observed=2 total=4 updated=3 ready=4 True/ReplicaSetUpdated",
				"observed=2 total=4 updated=4 ready=3 True/ReplicaSetUpdated",
				"observed=2 total=4 updated=4 ready=4 True/NewReplicaSetAvailable",
			},
		},
		"FourReplicasBad": {
			reason: "what may be unavailable is given up, no more",
			image:  "hello:never-starts", replicas: 4,
			want: []string{
				"observed=1 total=4 updated=4 ready=4 True/NewReplicaSetAvailable",
				"observed=2 total=4 updated=1 ready=3 True/ReplicaSetUpdated",
				"observed=2 total=5 updated=2 ready=3 True/ReplicaSetUpdated",
			},
		},
		"RecreateBad": {
			reason: "with Recreate a bad image leaves nothing running",
			image:  "hello:bad", replicas: 2, more: "  strategy: {type: Recreate}\n",
			want: []string{
				"observed=1 total=2 updated=2 ready=2 True/NewReplicaSetAvailable",
				"observed=2 total=0 updated=0 ready=0 True/ReplicaSetUpdated",
				"observed=2 total=2 updated=2 ready=0 True/ReplicaSetUpdated",
			},
		},
		"Paused": {
			reason: "a paused Deployment takes note and does nothing",
			image:  "hello:v2", replicas: 1, more: "  paused: true\n",
			want: []string{
				"observed=1 total=1 updated=1 ready=1 True/NewReplicaSetAvailable",
				"observed=2 total=1 updated=0 ready=1 Unknown/DeploymentPaused",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Options{})
			before := workOf(t, 1, deploymentYAML(tc.replicas, "hello:v1", "d1"))
			apply(t, c, before)
			settle(t, c, before)
			after := workOf(t, 2, deploymentYAML(tc.replicas, tc.image, "d2")+tc.more)
			apply(t, c, after)
			got := trace(t, c, after.Name)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestBadImageIsStuckAndTimesOut(t *testing.T) {
	c := newCluster(Options{})
	good := workOf(t, 1, deploymentYAML(1, "hello:v1", "d1"))
	apply(t, c, good)
	settle(t, c, good)
	if c.Stuck(good.Name) {
		t.Error("a rollout that is through is stuck")
	}
	bad := workOf(t, 2, deploymentYAML(1, "hello:bad", "d2"))
	apply(t, c, bad)
	settle(t, c, bad)
	if !c.Stuck(bad.Name) {
		t.Fatal("an image that never starts is not stuck")
	}
	c.GiveUp(bad.Name)
	var status appsv1.DeploymentStatus
	statusOf(t, c, &status)
	available, progressing := status.Conditions[0], status.Conditions[1]
	if available.Status != corev1.ConditionTrue {
		t.Errorf("the old pod is ready, and Available is %s", available.Status)
	}
	if progressing.Status != corev1.ConditionFalse || progressing.Reason != "ProgressDeadlineExceeded" ||
		!strings.HasSuffix(progressing.Message, `" has timed out progressing.`) {
		t.Errorf("Progressing is %+v", progressing)
	}
	want := map[string]Workload{"Deployment/default/hello": {
		Images: []string{"hello:bad"}, ReadyImages: []string{"hello:v1"}, Digest: "d2", Generation: 2,
		Desired: 1, Pods: 2, Updated: 1, Ready: 1,
	}}
	if diff := cmp.Diff(want, c.Running()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	reverted := workOf(t, 3, deploymentYAML(1, "hello:v1", "d1"))
	apply(t, c, reverted)
	settle(t, c, reverted)
	statusOf(t, c, &status)
	if got, want := line(status), "observed=3 total=1 updated=1 ready=1 True/NewReplicaSetAvailable"; got != want {
		t.Errorf("after the revert: %s, want %s", got, want)
	}
}

func TestGenerationFollowsTheSpecAlone(t *testing.T) {
	c := newCluster(Options{})
	for i, step := range []struct {
		manifest string
		want     int64
	}{
		{deploymentYAML(1, "hello:v1", "d1"), 1},
		{deploymentYAML(1, "hello:v1", "d2"), 1},
		{deploymentYAML(2, "hello:v1", "d2"), 2},
		{deploymentYAML(2, "hello:v2", "d3"), 3},
	} {
		apply(t, c, workOf(t, int64(i+1), step.manifest))
		if got := c.Running()["Deployment/default/hello"].Generation; got != step.want {
			t.Errorf("step %d: generation %d, want %d", i, got, step.want)
		}
	}
	var status appsv1.DeploymentStatus
	statusOf(t, c, &status)
	if status.ObservedGeneration != 0 {
		t.Errorf("observed %d before the controller acted", status.ObservedGeneration)
	}
}

func TestDaemonSet(t *testing.T) {
	for name, tc := range map[string]struct {
		image, more    string
		updated, ready int32
		stuck          bool
	}{
		"Good":     {image: "hello:v2", updated: 5, ready: 5},
		"Bad":      {image: "hello:bad", updated: 1, ready: 4, stuck: true},
		"BadWide":  {image: "hello:bad", more: "  updateStrategy: {rollingUpdate: {maxUnavailable: 40%}}\n", updated: 2, ready: 3, stuck: true},
		"BadSurge": {image: "hello:bad", more: "  updateStrategy: {rollingUpdate: {maxSurge: 1}}\n", updated: 1, ready: 5, stuck: true},
		"OnDelete": {image: "hello:bad", more: "  updateStrategy: {type: OnDelete}\n", updated: 0, ready: 5},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Options{Nodes: 5})
			first := workOf(t, 1, workloadYAML("DaemonSet", "hello:v1", "d1", tc.more))
			apply(t, c, first)
			settle(t, c, first)
			second := workOf(t, 2, workloadYAML("DaemonSet", tc.image, "d2", tc.more))
			apply(t, c, second)
			settle(t, c, second)
			var status appsv1.DaemonSetStatus
			statusOf(t, c, &status)
			if status.UpdatedNumberScheduled != tc.updated || status.NumberAvailable != tc.ready || status.DesiredNumberScheduled != 5 {
				t.Errorf("updated %d, available %d: %+v", status.UpdatedNumberScheduled, status.NumberAvailable, status)
			}
			if c.Stuck(second.Name) != tc.stuck {
				t.Errorf("stuck: %v", c.Stuck(second.Name))
			}
		})
	}
}

func TestStatefulSet(t *testing.T) {
	set := func(image, more string) string {
		return workloadYAML("StatefulSet", image, "d", "  replicas: 3\n  serviceName: hello\n"+more)
	}
	for name, tc := range map[string]struct {
		reason, more   string
		images         []string
		updated, ready int32
		whole, stuck   bool
	}{
		"Good": {reason: "all pods, then the revision", images: []string{"hello:v2"}, updated: 3, ready: 3, whole: true},
		"Bad":  {reason: "the highest ordinal stops everything", images: []string{"hello:bad"}, updated: 1, ready: 2, stuck: true},
		"Reverted": {
			reason: "an ordered set waits for a pod that will never be ready",
			images: []string{"hello:bad", "hello:v1"}, updated: 2, ready: 2, whole: true, stuck: true,
		},
		"RevertedParallel": {
			reason: "a parallel set replaces it", more: "  podManagementPolicy: Parallel\n",
			images: []string{"hello:bad", "hello:v1"}, updated: 3, ready: 3, whole: true,
		},
		"Partition": {
			reason: "ordinals below the partition stay, and that is complete",
			more:   "  updateStrategy: {rollingUpdate: {partition: 2}}\n",
			images: []string{"hello:v2"}, updated: 1, ready: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Options{})
			work := workOf(t, 1, set("hello:v1", tc.more))
			apply(t, c, work)
			settle(t, c, work)
			for i, image := range tc.images {
				work = workOf(t, int64(i+2), set(image, tc.more))
				apply(t, c, work)
				settle(t, c, work)
			}
			var status appsv1.StatefulSetStatus
			statusOf(t, c, &status)
			if status.UpdatedReplicas != tc.updated || status.ReadyReplicas != tc.ready {
				t.Errorf("%s: %+v", tc.reason, status)
			}
			if (status.CurrentRevision == status.UpdateRevision) != tc.whole || c.Stuck(work.Name) != tc.stuck {
				t.Errorf("%s: stuck %v, %+v", tc.reason, c.Stuck(work.Name), status)
			}
		})
	}
}

func TestDeletingThePodFreesAStatefulSet(t *testing.T) {
	c := newCluster(Options{})
	work := workOf(t, 1)
	for i, image := range []string{"hello:v1", "hello:bad", "hello:v1"} {
		work = workOf(t, int64(i+1), workloadYAML("StatefulSet", image, "d", "  replicas: 2\n"))
		apply(t, c, work)
		settle(t, c, work)
	}
	c.DropUnready()
	settle(t, c, work)
	if c.Stuck(work.Name) {
		t.Error("still stuck")
	}
}

func TestJob(t *testing.T) {
	job := func(image string) string {
		return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: hello, namespace: default},
			spec: {template: {spec: {containers: [{name: hello, image: %q}], restartPolicy: Never}}}}`, image)
	}
	c := newCluster(Options{})
	work := workOf(t, 1, job("hello:v1"))
	apply(t, c, work)
	settle(t, c, work)
	var status batchv1.JobStatus
	statusOf(t, c, &status)
	if status.Succeeded != 1 || status.Conditions[1].Type != batchv1.JobComplete {
		t.Errorf("%+v", status)
	}
	results := c.Apply(workOf(t, 2, job("hello:v2")))
	if err := results[0].Err; err == nil || !strings.Contains(err.Error(), "field is immutable") {
		t.Errorf("a Job's template is immutable: %v", err)
	}

	c = newCluster(Options{})
	work = workOf(t, 1, job("hello:bad"))
	apply(t, c, work)
	settle(t, c, work)
	if !c.Stuck(work.Name) {
		t.Error("a Job whose image never starts completed")
	}
}

// TestRolloutInvariants drives random sequences of changes through the Deployment model and
// checks the promises of Kubernetes.
func TestRolloutInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster(Options{})
		replicas := rapid.IntRange(1, 12).Draw(rt, "replicas")
		work := workOf(t, 1, deploymentYAML(replicas, "hello:v0", "d"))
		apply(t, c, work)
		settle(t, c, work)
		minReady, maxPods := replicas-replicas/4, replicas+(replicas+3)/4
		last := ""
		for i := range rapid.IntRange(1, 6).Draw(rt, "changes") {
			last = rapid.SampledFrom([]string{"hello:v0", "hello:v1", "hello:v2", "hello:bad"}).Draw(rt, "image")
			work = workOf(t, int64(i+2), deploymentYAML(replicas, last, "d"))
			apply(t, c, work)
			for range rapid.IntRange(0, 30).Draw(rt, "steps") {
				c.Step(work.Name)
				got := c.Running()["Deployment/default/hello"]
				if got.Ready < minReady || got.Pods > maxPods || got.Ready > got.Pods {
					rt.Fatalf("%d replicas: %+v", replicas, got)
				}
			}
		}
		settle(t, c, work)
		if c.Stuck(work.Name) != (last == "hello:bad") {
			rt.Fatalf("%s ended %+v", last, c.Running())
		}
	})
}

func TestJobAndPodThatEnd(t *testing.T) {
	job := `{apiVersion: batch/v1, kind: Job, metadata: {name: hello, namespace: default},
		spec: {template: {spec: {containers: [{name: hello, image: "hello:fails"}], restartPolicy: Never}}}}`
	c := newCluster(Options{})
	work := workOf(t, 1, job)
	apply(t, c, work)
	settle(t, c, work)
	var status batchv1.JobStatus
	statusOf(t, c, &status)
	if status.Succeeded != 0 || len(status.Conditions) != 2 || status.Conditions[1].Type != batchv1.JobFailed {
		t.Errorf("a Job whose image fails: %+v", status)
	}
	for image, want := range map[string]corev1.PodPhase{"hello:v1": corev1.PodSucceeded, "hello:fails": corev1.PodFailed, "hello:bad": corev1.PodPending} {
		c := newCluster(Options{})
		work := workOf(t, 1, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: hello, namespace: default},
			spec: {containers: [{name: hello, image: %q}], restartPolicy: Never}}`, image))
		apply(t, c, work)
		settle(t, c, work)
		var status corev1.PodStatus
		statusOf(t, c, &status)
		if status.Phase != want {
			t.Errorf("a Pod that is not restarted, with image %s: %s", image, status.Phase)
		}
	}
}
