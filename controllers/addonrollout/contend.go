package addonrollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// contend looks for objects of the target that another add-on of AddonFlow's deploys to the
// same cluster with other content. Within one commit that is refused before anything is
// written; two sources, or a commit that renames an add-on, show it on the hub only. Works
// that nobody of ours wrote are left out: a take-over has both for a moment.
//
// An object belongs to the add-on whose work had it first. That one goes on,
// and the rollout of the other is woken, to say so. The other is refused the target where
// it has yet to get it; where it runs it already it is overruled.
func (r *Reconciler) contend(ctx context.Context, o *observation, target content) error {
	if target.renderer == nil {
		return nil
	}
	others, err := r.worksOfOthers(ctx, o.rollout.Name)
	if err != nil || len(others) == 0 {
		return err
	}
	key, yielding := client.ObjectKeyFromObject(o.rollout), map[client.ObjectKey]bool{}
	for _, m := range o.members {
		if m.hindered != nil || m.refused != nil || m.departs() || len(others[m.name]) == 0 {
			continue
		}
		rendered, err := target.renderer.Render(m.renderInput())
		if err != nil {
			continue // refuse has judged it
		}
		mark := contentionMark(rendered, m.works, others[m.name])
		if r.apart.is(key, m.name, mark) {
			continue
		}
		if !m.contend(rendered, others[m.name], yielding) {
			r.apart.set(key, m.name, mark)
		}
	}
	for other := range yielding {
		r.wake(other)
	}
	return nil
}

// contend notes what stands between the member and what was rendered for it, and enters
// the rollouts that have to give way to it. False: no object is another add-on's as well.
func (m *member) contend(rendered render.Rendered, others []*workv1.ManifestWork, yielding map[client.ObjectKey]bool) bool {
	found := false
	for _, w := range others {
		c, contends := rendered.Contends(w, m.works)
		switch {
		case !contends:
			continue
		case c.Yields:
			namespace, _, _ := strings.Cut(w.Annotations[v1alpha1.SourceAnnotation], "/")
			yielding[client.ObjectKey{Namespace: namespace, Name: addOnOfWork(w)}] = true
		case m.refused != nil || m.overruled != nil: // it names the first
		case len(m.works) > 0 && m.health.Digest == rendered.Digest:
			m.overruled = contention(c, w)
		default:
			m.refused = contention(c, w)
		}
		found = true
	}
	return found
}

// worksOfOthers are the works that AddonFlow wrote for other add-ons, by their namespace.
// One that lost OCM's label may be this add-on's own, and is left out.
func (r *Reconciler) worksOfOthers(ctx context.Context, addOn string) (map[string][]*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	theirs, err := labels.Parse(fmt.Sprintf("%s=%s,%s,%s!=%s", v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue, addOnNameLabel, addOnNameLabel, addOn))
	if err != nil {
		return nil, fmt.Errorf("cannot select works of other add-ons: %w", err)
	}
	if err := r.Client.List(ctx, &list, client.MatchingLabelsSelector{Selector: theirs}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list works of other add-ons: %w", err)
	}
	var others map[string][]*workv1.ManifestWork
	for i := range list.Items {
		w := &list.Items[i]
		if others == nil {
			others = map[string][]*workv1.ManifestWork{}
		}
		others[w.Namespace] = append(others[w.Namespace], w)
	}
	for _, works := range others {
		slices.SortFunc(works, func(a, b *workv1.ManifestWork) int { return strings.Compare(a.Name, b.Name) })
	}
	return others, nil
}

// contentionMark names everything that contend looks at: a version stands for a work.
func contentionMark(rendered render.Rendered, own, others []*workv1.ManifestWork) string {
	parts := append(make([]string, 0, 1+len(own)+len(others)), rendered.Digest)
	for _, w := range own {
		parts = append(parts, string(w.UID))
	}
	for _, w := range others {
		parts = append(parts, string(w.UID), w.ResourceVersion)
	}
	return strings.Join(parts, " ")
}

// contention is why a member is not to have an object that a work of another add-on has.
func contention(c render.Contention, w *workv1.ManifestWork) *refusal {
	why := fmt.Sprintf("%s: %s is deployed by add-on %s of source %s", v1alpha1.ObjectConflictReason, c.Object, addOnOfWork(w), w.Annotations[v1alpha1.SourceAnnotation])
	hint := "leave it out or rename it"
	if !c.Alone {
		hint = "leave it out, rename it, or declare it as that add-on does"
	}
	return &refusal{
		hindrance: hindrance{retry: true, message: why + " (ManifestWork " + w.Name + ", which had it first); " + hint + ", or remove that add-on from the cluster"},
		brief:     why, keeps: true, contended: true,
	}
}
