package spoke

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// statefulSet follows the StatefulSet controller: one pod per ordinal, updated
// from the highest down, one at a time.
type statefulSet struct {
	world      *World
	name       string
	wanted     appsv1.StatefulSetSpec
	spec       appsv1.StatefulSetSpec // the one observed
	generation int64
	observed   int64
	next       podSet   // the template wanted
	target     podSet   // the template observed
	settled    string   // hash of the last revision that was rolled out wholly
	pods       []podSet // by ordinal, each with pods 1 and ready 0 or 1
}

func (s *statefulSet) want(live *unstructured.Unstructured, generation int64) error {
	var typed appsv1.StatefulSet
	if err := decode(live, &typed); err != nil {
		return err
	}
	next, err := s.world.podSetFor(typed.Spec.Template)
	if err != nil {
		return err
	}
	s.name, s.wanted, s.generation, s.next = typed.Name, typed.Spec, generation, next
	return nil
}

func (s *statefulSet) step() bool {
	if s.observed != s.generation {
		s.observed, s.spec, s.target = s.generation, s.wanted, s.next
		if s.settled == "" {
			s.settled = s.target.hash
		}
		s.move()
		return true
	}
	if s.becomeReady() || s.move() {
		return true
	}
	if s.settled != s.target.hash && s.partition() == 0 && s.updated() == len(s.pods) && s.ready() == len(s.pods) {
		s.settled = s.target.hash
		return true
	}
	return false
}

func (s *statefulSet) becomeReady() bool {
	changed := false
	for i := range s.pods {
		if p := &s.pods[i]; p.starts && p.ready == 0 {
			p.ready, changed = 1, true
		}
	}
	return changed
}

// move creates, removes or replaces a pod. With OrderedReady a pod that is not ready stops
// everything, even a revert, as in Kubernetes.
func (s *statefulSet) move() bool {
	ordered := s.spec.PodManagementPolicy != appsv1.ParallelPodManagement
	desired := s.desired()
	if len(s.pods) > desired {
		s.pods = s.pods[:desired]
		return true
	}
	if ordered && s.ready() < len(s.pods) {
		return false
	}
	if len(s.pods) < desired {
		missing := desired - len(s.pods)
		if ordered {
			missing = 1
		}
		for range missing {
			s.pods = append(s.pods, s.fresh(len(s.pods)))
		}
		return true
	}
	return s.replaceOne()
}

func (s *statefulSet) replaceOne() bool {
	if s.spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return false
	}
	for i := len(s.pods) - 1; i >= s.partition(); i-- {
		if s.pods[i].hash != s.target.hash {
			s.pods[i] = s.fresh(i)
			return true
		}
		if s.pods[i].ready == 0 {
			return false
		}
	}
	return false
}

// fresh is a new pod. Below the partition Kubernetes would create one of the old revision,
// which this model does not keep.
func (s *statefulSet) fresh(int) podSet {
	p := s.target
	p.pods, p.ready = 1, 0
	return p
}

func (s *statefulSet) desired() int { return count(s.spec.Replicas, 1) }

func (s *statefulSet) partition() int {
	if rolling := s.spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return count(rolling.Partition, 0)
	}
	return 0
}

func (s *statefulSet) ready() int {
	n := 0
	for _, p := range s.pods {
		n += p.ready
	}
	return n
}

func (s *statefulSet) of(hash string) int {
	n := 0
	for _, p := range s.pods {
		if p.hash == hash {
			n++
		}
	}
	return n
}

func (s *statefulSet) updated() int { return s.of(s.target.hash) }

func (s *statefulSet) complete() bool {
	if s.observed != s.generation || len(s.pods) != s.desired() || s.ready() != s.desired() {
		return false
	}
	heldBack := s.spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	return heldBack || s.updated() >= s.desired()-s.partition()
}

// giveUp does nothing: a StatefulSet has no deadline.
func (s *statefulSet) giveUp() {}

// dropUnready replaces pods in place: they are created again at once with their ordinals, of
// the current revision.
func (s *statefulSet) dropUnready() {
	for i := range s.pods {
		if s.pods[i].ready == 0 {
			s.pods[i] = s.fresh(i)
		}
	}
}

func (s *statefulSet) status() (map[string]any, error) {
	if s.observed == 0 {
		return nil, nil
	}
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: s.observed,
		Replicas:           shown(len(s.pods)),
		ReadyReplicas:      shown(s.ready()),
		AvailableReplicas:  shown(s.ready()),
		CurrentReplicas:    shown(s.of(s.settled)),
		UpdatedReplicas:    shown(s.updated()),
		CurrentRevision:    s.name + "-" + s.settled,
		UpdateRevision:     s.name + "-" + s.target.hash,
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
}

func (s *statefulSet) summary() Workload {
	w := Workload{Images: s.next.images, Desired: count(s.wanted.Replicas, 1), Pods: len(s.pods), Ready: s.ready(), Updated: s.of(s.next.hash)}
	for _, p := range s.pods {
		if p.ready > 0 {
			w.ReadyImages = append(w.ReadyImages, p.images...)
		}
	}
	return w
}
