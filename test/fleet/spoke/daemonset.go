package spoke

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// daemonSet follows the DaemonSet controller on a fixed number of nodes.
type daemonSet struct {
	world *World
	rollout
	wanted     appsv1.DaemonSetSpec
	spec       appsv1.DaemonSetSpec // the one observed
	generation int64
	observed   int64
	next       podSet
}

func (d *daemonSet) want(live *unstructured.Unstructured, generation int64) error {
	var typed appsv1.DaemonSet
	if err := decode(live, &typed); err != nil {
		return err
	}
	next, err := d.world.podSetFor(typed.Spec.Template)
	if err != nil {
		return err
	}
	d.wanted, d.generation, d.next = typed.Spec, generation, next
	return nil
}

func (d *daemonSet) step() bool {
	if d.observed != d.generation {
		d.observed, d.spec = d.generation, d.wanted
		d.retarget(d.next)
		d.move()
		return true
	}
	return d.becomeReady() || d.move()
}

// move replaces old pods within the budget. With OnDelete it only fills nodes without a pod.
func (d *daemonSet) move() bool {
	nodes := d.world.opts.Nodes
	if d.spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		pods, _ := d.total()
		if pods >= nodes {
			return false
		}
		d.current().pods += nodes - pods
		return true
	}
	surge, unavailable := 0, intstr.FromInt32(1)
	if rolling := d.spec.UpdateStrategy.RollingUpdate; rolling != nil {
		surge = fraction(rolling.MaxSurge, "0%", nodes, up)
		if rolling.MaxUnavailable != nil {
			unavailable = *rolling.MaxUnavailable
		} else if surge > 0 {
			unavailable = intstr.FromInt32(0)
		}
	}
	return d.scale(nodes, surge, fraction(&unavailable, "", nodes, up))
}

func (d *daemonSet) complete() bool {
	if d.observed != d.generation {
		return false
	}
	pods, ready := d.total()
	if pods != d.world.opts.Nodes || ready != pods {
		return false
	}
	return d.spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || d.current().pods == pods
}

// giveUp does nothing: a DaemonSet has no deadline.
func (d *daemonSet) giveUp() {}

func (d *daemonSet) status() (map[string]any, error) {
	if d.observed == 0 {
		return nil, nil
	}
	nodes := d.world.opts.Nodes
	pods, ready := d.total()
	status := appsv1.DaemonSetStatus{
		ObservedGeneration:     d.observed,
		DesiredNumberScheduled: shown(nodes),
		CurrentNumberScheduled: shown(min(pods, nodes)),
		UpdatedNumberScheduled: shown(min(d.current().pods, nodes)),
		NumberReady:            shown(min(ready, nodes)),
		NumberAvailable:        shown(min(ready, nodes)),
		NumberUnavailable:      shown(max(0, nodes-ready)),
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
}

func (d *daemonSet) summary() Workload {
	w := Workload{Images: d.next.images, Desired: d.world.opts.Nodes}
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
