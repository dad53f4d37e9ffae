package addonrollout

import (
	"context"
	"fmt"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// contend refuses the target to members on which another add-on of AddonFlow's deploys
// one of its objects already. Within one commit that is refused before anything is
// written; two sources, or a commit that renames an add-on, show it on the hub only.
// Works that nobody of ours wrote are left out: a take-over has both for a moment.
func (r *Reconciler) contend(ctx context.Context, o *observation, target content) error {
	if target.renderer == nil {
		return nil
	}
	for _, m := range o.members {
		if m.hindered != nil || m.refused != nil || m.departs() || target.upToDate(m) {
			continue
		}
		others, err := r.worksOfOthers(ctx, o.rollout.Name, m.name)
		if err != nil {
			return err
		}
		if len(others) == 0 {
			continue
		}
		rendered, err := target.renderer.Render(m.renderInput())
		if err != nil {
			continue // refuse has judged it
		}
		m.refused = contention(rendered, others)
	}
	return nil
}

// worksOfOthers are the works on a cluster that AddonFlow wrote for other add-ons.
func (r *Reconciler) worksOfOthers(ctx context.Context, addOn, cluster string) ([]*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	err := r.Client.List(ctx, &list, client.InNamespace(cluster),
		client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("cannot list works on %s: %w", cluster, err)
	}
	var others []*workv1.ManifestWork
	for i := range list.Items {
		// One that lost OCM's label may be this add-on's own.
		if w := &list.Items[i]; addOnOfWork(w) != addOn && addOnOfWork(w) != "" {
			others = append(others, w)
		}
	}
	return others, nil
}

// contention is the refusal of a rendering that another add-on's work contends; nil if
// none does.
func contention(rendered render.Rendered, others []*workv1.ManifestWork) *refusal {
	for _, w := range others {
		object := rendered.Contends(w)
		if object == "" {
			continue
		}
		why := fmt.Sprintf("ObjectConflict: %s is deployed by add-on %s of source %s", object, addOnOfWork(w), w.Annotations[v1alpha1.SourceAnnotation])
		return &refusal{
			hindrance: hindrance{retry: true, message: why + " (ManifestWork " + w.Name + "); rename it, or remove that add-on from the cluster"},
			brief:     why, keeps: true, contended: true,
		}
	}
	return nil
}
