package addonrollout

import (
	"context"
	"fmt"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// adopt sees to a cluster whose works OCM wrote, and that runs what the fleet runs: it
// says what OCM's addon-manager says no more, what the cluster is configured with and how
// it is, and lets its agent ask for what it asked for. No work is written: our marks come
// with the next content.
func (d *round) adopt(ctx context.Context, m *member, p *rollout.ClusterPlan, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	renderer, err := d.adopted(ctx, m)
	switch {
	case err != nil:
		return err
	case renderer == nil && d.waits(p):
		return d.await(ctx, addOn)
	case renderer == nil:
		return nil
	}
	key, mark := client.ObjectKeyFromObject(d.o.rollout), markOf(d.o, m, p, addOn, d.Agents.Outcome(d.agentOf(m)))
	if d.synced.is(key, m.name, mark) {
		return nil
	}
	rendered, err := renderer.Render(m.renderInput())
	if err != nil {
		return worksFailed(failedToRender, fmt.Errorf("cannot render: %w", err))
	}
	registered, err := d.accessOf(m, addOn, rendered)
	if err != nil {
		return err
	}
	held, err := d.holdBack(ctx, addOn, rendered.Finalizers())
	if err != nil {
		return err
	}
	mv := d.moveOf(m, p, held, rendered)
	mv.Supported, mv.Access = renderer.Supported(), registered
	mv.State, mv.Adopted = addonstatus.Done, true
	mv.Refused, mv.HostingRefused = m.worksRefused(d.o.rollout.Name)
	mv.Available = d.o.prober.Available(m.report(d.o.rollout.Name))
	written, err := d.writeStatus(ctx, held, mv)
	if err == nil && written == addOn {
		d.synced.set(key, m.name, mark)
	}
	return err
}

// adopted returns the renderer of what a cluster runs that OCM deployed to; nil where that
// is neither the target's nor the stable revision's content.
func (d *round) adopted(ctx context.Context, m *member) (*render.Renderer, error) {
	digests := []string{d.o.rollout.Spec.Target.Digest}
	if s := d.o.rollout.Status.Stable; s != nil && s.Digest != digests[0] {
		digests = append(digests, s.Digest)
	}
	for _, digest := range digests {
		c, err := d.o.content(ctx, digest)
		if err != nil {
			return nil, err
		}
		if d.takenOver(d.o.rollout, m, c.renderer) {
			return c.renderer, nil
		}
	}
	return nil, nil
}
