package spoke

import (
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// deployment follows the Deployment controller. Its status is about the spec that the
// controller has last observed.
type deployment struct {
	world *World
	rollout
	wanted     appsv1.DeploymentSpec
	spec       appsv1.DeploymentSpec // the one observed
	name       string
	generation int64
	observed   int64
	next       podSet
	timedOut   bool
}

func (d *deployment) want(live *unstructured.Unstructured, generation int64) error {
	var typed appsv1.Deployment
	if err := decode(live, &typed); err != nil {
		return err
	}
	next, err := d.world.podSetFor(typed.Spec.Template)
	if err != nil {
		return err
	}
	d.name, d.wanted, d.generation, d.next = typed.Name, typed.Spec, generation, next
	return nil
}

func (d *deployment) step() bool {
	if d.observed != d.generation {
		d.observed, d.spec = d.generation, d.wanted
		d.timedOut = false
		d.retarget(d.next)
		d.move()
		return true
	}
	return d.becomeReady() || d.move()
}

func (d *deployment) move() bool {
	if d.spec.Paused {
		return false
	}
	desired := d.desired()
	if d.spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return d.recreate(desired)
	}
	surge, unavailable := d.budget()
	return d.scale(desired, surge, unavailable)
}

// budget resolves surge (rounded up) and unavailability (rounded down). With both zero nothing
// could move, so Kubernetes then allows one unavailable pod.
func (d *deployment) budget() (surge, unavailable int) {
	rolling := d.spec.Strategy.RollingUpdate
	if rolling == nil {
		rolling = &appsv1.RollingUpdateDeployment{}
	}
	surge = fraction(rolling.MaxSurge, "25%", d.desired(), up)
	unavailable = min(fraction(rolling.MaxUnavailable, "25%", d.desired(), down), d.desired())
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

func (d *deployment) desired() int { return count(d.spec.Replicas, 1) }

func (d *deployment) complete() bool {
	return d.observed == d.generation && d.done()
}

func (d *deployment) done() bool {
	pods, ready := d.total()
	return pods == d.desired() && ready == pods && d.current().pods == pods
}

// giveUp honours the two ways in which a Deployment has no deadline.
func (d *deployment) giveUp() {
	endless := d.spec.ProgressDeadlineSeconds != nil && *d.spec.ProgressDeadlineSeconds == math.MaxInt32
	d.timedOut = d.observed == d.generation && !d.spec.Paused && !endless
}

func (d *deployment) status() (map[string]any, error) {
	if d.observed == 0 {
		return nil, nil
	}
	pods, ready := d.total()
	status := appsv1.DeploymentStatus{
		ObservedGeneration:  d.observed,
		Replicas:            shown(pods),
		UpdatedReplicas:     shown(d.current().pods),
		ReadyReplicas:       shown(ready),
		AvailableReplicas:   shown(ready),
		UnavailableReplicas: shown(pods - ready),
		Conditions:          []appsv1.DeploymentCondition{d.available(ready), d.progressing()},
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
}

func (d *deployment) available(ready int) appsv1.DeploymentCondition {
	_, unavailable := d.budget()
	if ready >= d.desired()-unavailable {
		return appsv1.DeploymentCondition{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue,
			Reason: "MinimumReplicasAvailable", Message: "Deployment has minimum availability.",
		}
	}
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse,
		Reason: "MinimumReplicasUnavailable", Message: "Deployment does not have minimum availability.",
	}
}

func (d *deployment) progressing() appsv1.DeploymentCondition {
	condition := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	replicaSet := d.name + "-" + d.current().hash
	switch {
	case d.done():
		condition.Reason = "NewReplicaSetAvailable"
		condition.Message = fmt.Sprintf("ReplicaSet %q has successfully progressed.", replicaSet)
	case d.spec.Paused:
		condition.Status, condition.Reason, condition.Message = corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused"
	case d.timedOut:
		condition.Status, condition.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
		condition.Message = fmt.Sprintf("ReplicaSet %q has timed out progressing.", replicaSet)
	default:
		condition.Reason = "ReplicaSetUpdated"
		condition.Message = fmt.Sprintf("ReplicaSet %q is progressing.", replicaSet)
	}
	return condition
}

func (d *deployment) summary() Workload {
	w := Workload{Images: d.next.images, Desired: count(d.wanted.Replicas, 1)}
	if d.observed == 0 {
		return w
	}
	w.Pods, w.Ready = d.total()
	w.ReadyImages = d.readyImages()
	if d.current().hash == d.next.hash {
		w.Updated = d.current().pods
	}
	return w
}

func decode(live *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, into); err != nil {
		return fmt.Errorf("%s in version %q cannot be handled as a %s: %w",
			live.GetKind(), live.GroupVersionKind().Version, live.GetKind(), err)
	}
	return nil
}
