package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// content is what a revision holds. The zero value is no revision.
type content struct {
	digest string
	// renderer is nil while the revision has no body; missing says so in words.
	renderer *render.Renderer
	missing  string
}

// content returns what the revision of a digest holds; a body that is missing is no error.
func (o *observation) content(ctx context.Context, digest string) (content, error) {
	renderer, err := o.revisions.get(ctx, digest)
	if missing, ok := errors.AsType[*missingRevision](err); ok {
		return content{digest: digest, missing: missing.words()}, nil
	}
	return content{digest: digest, renderer: renderer}, err
}

// repairs returns what a member that is at a revision is repaired with: its renderer, and
// where the body is missing the target's, if that renders what the works hold. Equal
// digests mean equal objects: the member is at the target then, whatever its works name,
// as after the add-on was let go of and taken up by another source.
func (o *observation) repairs(ctx context.Context, m *member, digest string) (*render.Renderer, error) {
	renderer, err := o.revisions.get(ctx, digest)
	if m == nil || !errors.Is(err, errRevisionMissing) {
		return renderer, err
	}
	target, other := o.content(ctx, o.rollout.Spec.Target.Digest)
	if other != nil || target.renderer == nil || !upToDate(m, target.renderer) {
		return nil, err
	}
	return target.renderer, nil
}

// rendererOf returns the renderer of what a member is to have. A member that the target does
// not move, because it renders what the works hold, has the target's configurations all the
// same. A member that the ledger admitted has those of the revision it was admitted to.
func (o *observation) rendererOf(ctx context.Context, m *member, p *rollout.ClusterPlan) (*render.Renderer, error) {
	renderer, err := o.repairs(ctx, m, p.Revision)
	target := o.rollout.Spec.Target.Digest
	if err != nil || admitted(p) || p.Revision == target {
		return renderer, err
	}
	c, err := o.content(ctx, target)
	if err != nil {
		return nil, err
	}
	if c.renderer != nil && upToDate(m, c.renderer) {
		return c.renderer, nil
	}
	return renderer, nil
}

// missingRevision is errRevisionMissing of one AddOnRevision.
type missingRevision struct {
	name string
	// why it is as good as missing although it is there; "" where it is not.
	why string
}

// Error names the revision.
func (e *missingRevision) Error() string {
	if e.why == "" {
		return errRevisionMissing.Error() + ": " + e.name
	}
	return errRevisionMissing.Error() + ": " + e.name + " " + e.why
}

// Is tells that it is errRevisionMissing.
func (e *missingRevision) Is(target error) bool { return target == errRevisionMissing }

// words say it to a user: one that is in the way has to go before it can come back.
func (e *missingRevision) words() string {
	if e.why == "" {
		return "revision " + e.name + " is missing"
	}
	return "revision " + e.name + " " + e.why + " (delete it)"
}

// upToDate reports whether a member's works are what the content renders for it. Without
// a body the works' own word is all there is.
func (c content) upToDate(m *member) bool {
	if c.digest != "" && c.renderer == nil {
		return m.health.Revision == c.digest
	}
	return c.renderer != nil && upToDate(m, c.renderer)
}

// waitsFor is what a plan that could be made waits for besides the turn of its clusters:
// a revision that is missing, a guard, somebody who looks after what failed after the
// success.
func waitsFor(ro *v1alpha1.AddOnRollout, in rollout.Input, plan rollout.Plan) verdict {
	v := verdict{}
	switch {
	case in.TargetMissing != "":
		v = verdict{waiting: v1alpha1.RevisionMissingReason, message: missingMessage(ro, in, plan)}
	case plan.Halted:
		v = verdict{stalled: v1alpha1.RolloutFailedReason, message: plan.Message}
	case ro.DeletionTimestamp != nil && ro.Spec.Removal == nil && !ro.Releasing():
		v = keptVerdict(in, plan)
	case plan.Guard != "":
		return verdict{waiting: v1alpha1.DeletionGuardReason, message: guardMessage(plan)}
	case plan.Phase == v1alpha1.PhaseHeld && plan.Outcome == rollout.Pending && absent(in.Placements):
		return verdict{waiting: v1alpha1.ReferenceNotFoundReason, message: plan.Message}
	case plan.Phase == v1alpha1.PhaseHeld && plan.Outcome == rollout.Pending && !allSettled(in.Placements):
		return verdict{waiting: v1alpha1.PlacementUndecidedReason, message: plan.Message}
	}
	if plan.Guard != "" {
		v.message += "; " + guardMessage(plan)
	}
	return v
}

// keptVerdict says of a rollout that somebody deletes why it is still there, and goes on.
func keptVerdict(in rollout.Input, plan rollout.Plan) verdict {
	have := 0
	for i := range in.Clusters {
		if c := &in.Clusters[i]; c.Installed != "" && c.Installed != rollout.NotInstalled {
			have++
		}
	}
	message := fmt.Sprintf("%s; being deleted, and kept while a cluster has the add-on (now %s): take it out of Git, or release it", plan.Message, counted(have))
	if plan.Phase == v1alpha1.PhaseFailed {
		return verdict{stalled: v1alpha1.RolloutFailedReason, message: message}
	}
	return verdict{waiting: v1alpha1.DeletionGuardReason, message: message}
}

// absent tells whether a placement that the policy names does not exist.
func absent(placements []rollout.Placement) bool {
	return slices.ContainsFunc(placements, func(p rollout.Placement) bool { return p.Existence != rollout.Exists })
}

// missingMessage says which revision is missing, whom it holds, and what brings it back.
func missingMessage(ro *v1alpha1.AddOnRollout, in rollout.Input, plan rollout.Plan) string {
	held := slices.DeleteFunc(slices.Clone(plan.Clusters), func(c rollout.ClusterPlan) bool {
		return c.Revision != ro.Spec.Target.Digest || c.State == rollout.Removing || c.State == rollout.Gone
	})
	return fmt.Sprintf("%s: %s; source %s brings it back when it is read and declares the same content: addonflow reconcile source %s -n %s",
		in.TargetMissing, heldText(held), ro.Spec.Target.Source, ro.Spec.Target.Source, ro.Namespace)
}

// heldText counts those that run what is missing and names the first of them.
func heldText(held []rollout.ClusterPlan) string {
	if len(held) == 0 {
		return "no cluster runs it, and no cluster is admitted"
	}
	var names []string
	for _, c := range held[:min(brief.Shown, len(held))] {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("held at what they run, without repair: %s (%s), and no cluster is admitted", counted(len(held)), brief.NamesOf(len(held), names))
}

// counted is "1 cluster" or "3 clusters".
func counted(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}
