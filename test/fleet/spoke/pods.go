package spoke

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
)

// podSet is the pods of one template: a ReplicaSet, or a DaemonSet's share.
type podSet struct {
	hash   string
	images []string
	starts bool
	fails  bool // of a Job or a Pod that ends
	pods   int
	ready  int
}

// rollout moves pods from old templates to the current one, within a surge and an
// unavailability. Deployments and DaemonSets differ only in the numbers.
//
// Invariant: 0 <= ready <= pods in every set; sets holds the current one last.
type rollout struct {
	sets []*podSet
}

func (r *rollout) current() *podSet { return r.sets[len(r.sets)-1] }

func (r *rollout) total() (pods, ready int) {
	for _, s := range r.sets {
		pods += s.pods
		ready += s.ready
	}
	return pods, ready
}

// retarget makes a template the current one and keeps its existing pods, which makes a revert
// quick.
func (r *rollout) retarget(next podSet) {
	for i, s := range r.sets {
		if s.hash == next.hash {
			r.sets = append(slices.Delete(r.sets, i, i+1), s)
			return
		}
	}
	r.sets = append(r.sets, &next)
}

// becomeReady lets every pod that can start be ready.
func (r *rollout) becomeReady() bool {
	changed := false
	for _, s := range r.sets {
		if s.starts && s.ready < s.pods {
			s.ready, changed = s.pods, true
		}
	}
	return changed
}

// scale does what the Deployment controller does in one sync: first the new pods, within
// desired+surge in total, then the old ones, unready before ready, keeping desired-unavailable
// ready.
//
// Worked example, desired 4, surge 1, unavailable 1, the new image bad: 4 old -> 1 new 3 old ->
// 2 new 3 old, and no further.
func (r *rollout) scale(desired, surge, unavailable int) bool {
	r.forgetEmpty()
	changed := false
	cur := r.current()
	total, _ := r.total()
	if grow := min(desired-cur.pods, desired+surge-total); grow > 0 {
		cur.pods += grow
		changed = true
	}
	if cur.pods > desired {
		cur.pods, changed = desired, true
		cur.ready = min(cur.ready, desired)
	}
	total, _ = r.total()
	budget := total - (desired - unavailable) - (cur.pods - cur.ready)
	return r.retire(budget, desired-unavailable) || changed
}

// retire removes old pods: unready ones count against the budget only, ready ones also against
// what must stay available.
func (r *rollout) retire(budget, minReady int) bool {
	if budget <= 0 {
		return false
	}
	changed := false
	for _, s := range r.sets[:len(r.sets)-1] {
		if n := min(budget, s.pods-s.ready); n > 0 {
			s.pods, budget, changed = s.pods-n, budget-n, true
		}
	}
	_, ready := r.total()
	for _, s := range r.sets[:len(r.sets)-1] {
		if n := min(ready-minReady, s.ready); n > 0 {
			s.pods, s.ready, ready, changed = s.pods-n, s.ready-n, ready-n, true
		}
	}
	return changed
}

// recreate is the other strategy: all old pods are deleted before a new one is created.
func (r *rollout) recreate(desired int) bool {
	old := false
	for _, s := range r.sets[:len(r.sets)-1] {
		if s.pods > 0 {
			s.pods, s.ready, old = 0, 0, true
		}
	}
	if old {
		return true
	}
	return r.scale(desired, 0, desired)
}

// forgetEmpty changes nothing that is visible.
func (r *rollout) forgetEmpty() {
	last := r.current()
	r.sets = slices.DeleteFunc(r.sets, func(s *podSet) bool { return s != last && s.pods == 0 })
}

// dropUnready removes what is not ready; the controller makes it again.
func (r *rollout) dropUnready() {
	for _, s := range r.sets {
		s.pods = s.ready
	}
}

func (r *rollout) readyImages() []string {
	var images []string
	for _, s := range r.sets {
		if s.ready > 0 {
			images = append(images, s.images...)
		}
	}
	return images
}

// podSetFor describes a template's pods before there are any. The hash is of the template as
// sent; an explicit default changes it, unlike on a real server.
func (w *World) podSetFor(template corev1.PodTemplateSpec) (podSet, error) {
	content, err := json.Marshal(template)
	if err != nil {
		return podSet{}, fmt.Errorf("cannot hash the pod template: %w", err)
	}
	sum := fnv.New32a()
	sum.Write(content)
	s := podSet{hash: rand.SafeEncodeString(strconv.FormatUint(uint64(sum.Sum32()), 10)), starts: true}
	for _, container := range slices.Concat(template.Spec.Containers, template.Spec.InitContainers) {
		s.images = append(s.images, container.Image)
		s.starts = s.starts && w.opts.ImageStarts(container.Image)
		s.fails = s.fails || strings.HasSuffix(container.Image, ":fails")
	}
	return s, nil
}

// fraction resolves a number or a percentage of desired.
func fraction(value *intstr.IntOrString, fallback string, desired int, rounding rounding) int {
	v := intstr.FromString(fallback)
	if value != nil {
		v = *value
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, desired, rounding == up)
	if err != nil {
		return 0
	}
	return max(0, n)
}

type rounding int

const (
	up rounding = iota
	down
)

// shown is a count of pods or nodes, or an ordinal, as status has it.
func shown(n int) int32 {
	return int32(n) //nolint:gosec // G115: no simulated cluster has two billion pods
}

func count(n *int32, fallback int) int {
	if n == nil {
		return fallback
	}
	return int(*n)
}
