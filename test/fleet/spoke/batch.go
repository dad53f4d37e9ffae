package spoke

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// workloadFor returns the model for an object's kind; nil for kinds that no controller acts on
// here, such as CronJob and ConfigMap.
func (w *World) workloadFor(object *unstructured.Unstructured) workload {
	gvk := object.GroupVersionKind()
	switch gvk.Group + "/" + gvk.Kind {
	case "apps/Deployment":
		return &deployment{world: w}
	case "apps/DaemonSet":
		return &daemonSet{world: w}
	case "apps/StatefulSet":
		return &statefulSet{world: w}
	case "batch/Job":
		return &job{world: w}
	case "/Pod":
		return &pod{world: w}
	}
	return nil
}

// job starts its pods in one step. In the next they succeed, or fail with an image that fails.
// With an image that never starts they stay active, as with an image that cannot be pulled.
type job struct {
	world     *World
	spec      batchv1.JobSpec
	pods      podSet
	active    int
	succeeded int
	failed    bool
}

func (j *job) want(live *unstructured.Unstructured, _ int64) error {
	var typed batchv1.Job
	if err := decode(live, &typed); err != nil {
		return err
	}
	pods, err := j.world.podSetFor(typed.Spec.Template)
	if err != nil {
		return err
	}
	j.spec, j.pods = typed.Spec, pods
	return nil
}

func (j *job) completions() int { return count(j.spec.Completions, 1) }

func (j *job) suspended() bool { return j.spec.Suspend != nil && *j.spec.Suspend }

func (j *job) step() bool {
	switch {
	case j.suspended() || j.complete() || j.failed:
		return false
	case j.active == 0:
		j.active = min(count(j.spec.Parallelism, 1), j.completions())
		return j.active > 0
	case j.pods.fails:
		j.active, j.failed = 0, true
		return true
	case j.pods.starts:
		j.active, j.succeeded = 0, j.completions()
		return true
	}
	return false
}

func (j *job) complete() bool { return j.succeeded >= j.completions() }

// giveUp does nothing: a Job that cannot pull its image waits.
func (j *job) giveUp() {}

func (j *job) dropUnready() { j.active = 0 }

func (j *job) status() (map[string]any, error) {
	status := batchv1.JobStatus{Active: shown(j.active), Succeeded: shown(j.succeeded)}
	if j.complete() {
		status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonCompletionsReached},
		}
	}
	if j.failed {
		status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded},
			{
				Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded,
				Message: "Job has reached the specified backoff limit",
			},
		}
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
}

func (j *job) summary() Workload {
	return Workload{Images: j.pods.images, Desired: j.completions(), Pods: j.active, Updated: j.active + j.succeeded, Ready: j.succeeded}
}

// pod is a bare Pod. If it is not to be restarted, it ends after it ran.
type pod struct {
	world *World
	pods  podSet
	ends  bool
	phase corev1.PodPhase
}

func (p *pod) want(live *unstructured.Unstructured, _ int64) error {
	var typed corev1.Pod
	if err := decode(live, &typed); err != nil {
		return err
	}
	pods, err := p.world.podSetFor(corev1.PodTemplateSpec{Spec: typed.Spec})
	if err != nil {
		return err
	}
	p.pods = pods
	p.phase = corev1.PodPending
	p.ends = typed.Spec.RestartPolicy == corev1.RestartPolicyNever || typed.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
	return nil
}

func (p *pod) step() bool {
	switch {
	case !p.pods.starts:
		return false
	case p.phase == corev1.PodPending:
		p.phase = corev1.PodRunning
	case p.phase == corev1.PodRunning && p.ends && p.pods.fails:
		p.phase = corev1.PodFailed
	case p.phase == corev1.PodRunning && p.ends:
		p.phase = corev1.PodSucceeded
	default:
		return false
	}
	return true
}

func (p *pod) complete() bool {
	if p.ends {
		return p.phase == corev1.PodSucceeded
	}
	return p.phase == corev1.PodRunning
}

// giveUp does nothing: a Pod has no deadline.
func (p *pod) giveUp() {}

// dropUnready does nothing: no controller would create the Pod again.
func (p *pod) dropUnready() {}

func (p *pod) status() (map[string]any, error) {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
	if p.phase == corev1.PodRunning {
		ready = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	}
	status := corev1.PodStatus{Phase: p.phase, Conditions: []corev1.PodCondition{ready}}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
}

func (p *pod) summary() Workload {
	w := Workload{Images: p.pods.images, Desired: 1, Pods: 1, Updated: 1}
	if p.phase == corev1.PodRunning {
		w.Ready, w.ReadyImages = 1, p.pods.images
	}
	return w
}
