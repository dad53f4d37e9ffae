package addonrollout

import (
	"context"
	"errors"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// refusal is why the target cannot be rendered for a member.
type refusal struct {
	hindrance
	// brief is the message without what is the same for every cluster.
	brief string
	// keeps: what the member has can be rendered for it.
	keeps bool
	// contended: another add-on deploys one of its objects there.
	contended bool
}

// refuse notes whom the target cannot be rendered for.
func (o *observation) refuse(ctx context.Context, target, stable content) error {
	if target.renderer == nil {
		return nil
	}
	for _, m := range o.members {
		if m.hindered != nil {
			continue
		}
		in := m.renderInput()
		err := target.renderer.Refuses(in)
		if err == nil {
			continue
		}
		m.refused = &refusal{hindrance: hindrance{message: err.Error()}, brief: err.Error()}
		if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
			m.refused.brief = invalid.Brief()
		}
		has, err := o.has(ctx, m, stable)
		if err != nil {
			return err
		}
		m.refused.keeps = has.renderer != nil && has.digest != target.digest && has.renderer.Refuses(in) == nil
	}
	return nil
}

// has is the content that a member runs, by its works' word, and that of the stable
// revision where they say nothing.
func (o *observation) has(ctx context.Context, m *member, stable content) (content, error) {
	switch digest := running(m); digest {
	case "", rollout.Mixed, rollout.Foreign, stable.digest:
		return stable, nil
	default:
		return o.content(ctx, digest)
	}
}

// repair restores the works of a member that the target cannot be rendered for to what
// they were, where somebody changed or deleted them. Where what it runs renders to
// something else by now they are left alone: that would be a move without an admission.
func (d *round) repair(ctx context.Context, m *member, p *rollout.ClusterPlan, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if !movable(p) || d.isTarget(p.Revision) || m.hostingProblem() != "" || m.refused.contended && len(m.works) == 0 {
		return nil
	}
	renderer, err := d.o.revisions.get(ctx, p.Revision)
	if err != nil {
		return err
	}
	rendered, err := renderer.Render(m.renderInput())
	if err != nil {
		return worksFailed(failedToRender, err)
	}
	if len(m.works) > 0 && rendered.Digest != m.health.Digest {
		return nil
	}
	_, err = d.writeWorks(ctx, m, addOn, p, rendered)
	return err
}
