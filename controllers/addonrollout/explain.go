package addonrollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
)

// The operator's defaults of --park-after, --removal-grace-period and --pre-delete-timeout.
const (
	DefaultParkAfter    = 10 * time.Minute
	DefaultRemovalGrace = 5 * time.Minute
	DefaultHookTimeout  = 10 * time.Minute
)

// Inspector explains one rollout repeatedly, for one caller at a time. It keeps the renderers of the last plan and
// their results, so that a cluster is rendered again only if its revision or its inputs changed.
type Inspector struct {
	hub       client.Client
	key       client.ObjectKey
	renderers *renderers
	compared  plan.Memory
}

// NewInspector returns an Inspector that has rendered nothing yet. c may read uncached.
func NewInspector(c client.Client, key client.ObjectKey, charts chart.Engines) *Inspector {
	return &Inspector{hub: c, key: key, renderers: newRenderers(c, charts)}
}

// Inspector returns an Inspector that reads with c, and uses the renderings of the turns of this process.
func (r *Reconciler) Inspector(c client.Client, key client.ObjectKey) *Inspector {
	i := NewInspector(c, key, r.Charts)
	i.renderers.warm = r.renderers
	return i
}

// Inspection is a plan and the objects from which it was made.
type Inspection struct {
	plan plan.Plan
	// shown renders changes. It has no bounds of the tenant; those are in the plan.
	shown *renderers
}

// Inspect returns the plan that the operator would make of the rollout now, and writes nothing. It
// uses the same reads and the same planner, with the caller's own credentials. The operator's flags and
// the bounds of the tenant come from the last status; without a status, the defaults are used.
//
// The error is a read error, an error of rollout.New, or says that the rollout has no target yet. With a
// *MissingError the plan is valid: clusters whose AddOnRevision is missing are held in it.
func (s *Inspector) Inspect(ctx context.Context) (Inspection, error) {
	i, err := s.explained(ctx)
	if err != nil {
		return Inspection{}, err
	}
	if err := nameLeft(&i.plan.Planned, i.plan.Observed.Target.Digest); err != nil {
		return Inspection{}, err
	}
	if err := nameUnwritten(&i.plan); err != nil {
		return Inspection{}, err
	}
	return i, nameMissing(&i.plan)
}

// Plan returns the plan.
func (i *Inspection) Plan() rollout.Plan { return i.plan.Planned }

// explained observes and plans.
func (s *Inspector) explained(ctx context.Context) (Inspection, error) {
	var ro v1alpha1.AddOnRollout
	if err := s.hub.Get(ctx, s.key, &ro); err != nil {
		return Inspection{}, fmt.Errorf("cannot read rollout %s: %w", s.key.Name, err)
	}
	if ro.Spec.Target == nil {
		return Inspection{}, fmt.Errorf("rollout %s has no target yet: its source has not declared the add-on", s.key.Name)
	}
	r := New(Options{
		Client: s.hub, Live: s.hub, Clock: clock.RealClock{},
		ParkAfter:    published(ro.Status.ParkAfter, DefaultParkAfter),
		RemovalGrace: published(ro.Status.RemovalGracePeriod, DefaultRemovalGrace),
		HookTimeout:  DefaultHookTimeout,
	})
	r.renderers, r.inspects = s.renderers, true
	mem := newMemory()
	mem.plan = s.compared
	o, err := r.observe(ctx, &ro, mem, rights{bounds: (*render.Bounds)(ro.Status.TargetBounds)})
	if err != nil {
		return Inspection{}, err
	}
	p, err := plan.Preview(o, reportedConflict(&ro))
	s.compared = p.Memory.Compared()
	return Inspection{p, newRenderers(s.hub, s.renderers.charts)}, err
}

// reportedConflict is the conflict in the operator's status; nil: none. Only the turn of a rollout sees which writer
// took over a field. So this is for display, and for dependent add-ons, which wait until the conflict is gone.
func reportedConflict(ro *v1alpha1.AddOnRollout) error {
	for _, condition := range []string{meta.StalledCondition, meta.ReconcilingCondition} {
		if c := conditions.Get(ro, condition); c != nil && c.Reason == v1alpha1.OwnershipConflictReason {
			return errors.New(c.Message)
		}
	}
	return nil
}

// nameLeft adds the clusters that left and have a record of the target. Their stage still counts them, although no
// placement selects them or their ManagedCluster is deleted.
func nameLeft(plan *rollout.Plan, target string) error {
	records, err := rollout.Records(plan.Ledger)
	if err != nil {
		return err
	}
	for _, r := range records {
		at, known := slices.BinarySearchFunc(plan.Clusters, r.Cluster, func(c rollout.ClusterPlan, name string) int { return strings.Compare(c.Name, name) })
		if r.Revision != target || known && plan.Clusters[at].State != rollout.Gone && plan.Clusters[at].State != rollout.Ignored {
			continue
		}
		if !known {
			plan.Clusters = slices.Insert(plan.Clusters, at, rollout.ClusterPlan{Name: r.Cluster})
		}
		left := &plan.Clusters[at]
		left.Stage, left.State = r.Stage, r.State
		left.Reason = cmp.Or(left.Reason, "it left the add-on") + "; its stage counts it until it is selected again or new content is committed"
	}
	return nil
}

// nameUnwritten adds to the reason of a cluster why its works could not be written. It reads this from the condition of
// the ManagedClusterAddOn, unless the record of the cluster has the refusal already. If the ManagedClusterAddOn itself
// cannot be created, the condition is on the rollout and names the first such clusters.
func nameUnwritten(p *plan.Plan) error {
	records, err := rollout.Records(p.Planned.Ledger)
	if err != nil {
		return err
	}
	said := map[string]bool{}
	for _, r := range records {
		said[r.Cluster] = r.Refusal != ""
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		written := conditions.Get(p.Observed.Rollout, v1alpha1.ClustersWrittenCondition)
		if c.AddOn == nil && c.Install && !said[c.Name] && written != nil && written.Reason == v1alpha1.ApplyFailedReason {
			reason := reasonOf(&p.Planned, c.Name)
			*reason = join(*reason, "not installed: "+written.Message)
		}
		if c.AddOn == nil || said[c.Name] || !unapplied(c.AddOn) {
			continue
		}
		why := apimeta.FindStatusCondition(c.AddOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied).Message
		reason := reasonOf(&p.Planned, c.Name)
		*reason = join(*reason, strings.TrimPrefix(why, failedToApply+": "))
	}
	return nil
}

// reasonOf is the reason of a cluster in a plan that has it.
func reasonOf(planned *rollout.Plan, cluster string) *string {
	at, _ := slices.BinarySearchFunc(planned.Clusters, cluster, func(c rollout.ClusterPlan, name string) int { return strings.Compare(c.Name, name) })
	return &planned.Clusters[at].Reason
}

// MissingError names the AddOnRevisions that a rollout needs and the hub does not have.
type MissingError struct {
	// Target is set if the target is one of the missing revisions: then no cluster is admitted.
	Target bool
	// Details are, per revision, its name and what is wrong with it, sorted.
	Details []string
}

// Error lists the revisions.
func (e *MissingError) Error() string { return strings.Join(e.Details, "; ") }

// nameMissing adds the missing AddOnRevision to the reason of every cluster that is held
// because of it. The plan already reports a missing revision of the target. The error is a
// *MissingError or a read error.
func nameMissing(p *plan.Plan) error {
	target := p.Observed.Target.Digest
	missing := map[string]string{}
	if _, err := p.Observed.Renderer(target); errors.Is(err, plan.ErrRevisionMissing) {
		missing[target] = err.Error()
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		revision := c.Planned.Revision
		if revision == "" || revision == rollout.Mixed || revision == rollout.Foreign {
			continue
		}
		_, err := p.Repairs(c, revision)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, plan.ErrRevisionMissing):
			return err
		}
		missing[revision] = err.Error()
		if revision != target {
			reason := reasonOf(&p.Planned, c.Name)
			*reason = join(*reason, "keeps its content: "+err.Error())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &MissingError{Target: missing[target] != "", Details: slices.Sorted(maps.Values(missing))}
}

// join appends a reason to another one, which may be empty.
func join(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// published returns the value of a flag from the operator's status, or usual if the status has none.
func published(flag *metav1.Duration, usual time.Duration) time.Duration {
	if flag == nil {
		return usual
	}
	return flag.Duration
}
