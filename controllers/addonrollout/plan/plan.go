package plan

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// ApplyErrorAfter is how long an apply error may last before it counts as a failure.
const ApplyErrorAfter = 10 * time.Minute

// Plan is everything that one turn decided. Nothing of it is stored or written yet.
type Plan struct {
	// Observed is what it was made from.
	Observed *Observation
	// Input of the planner, nil if it was not asked; Planned is its answer, and Refused its
	// error, with which there is an answer as well.
	Input   *rollout.Input
	Planned rollout.Plan
	Refused error
	// Clusters are the members in the order of Planned.Clusters.
	Clusters []Cluster
	// Next is the status to store, but for conditions and commit statuses.
	Next    v1alpha1.AddOnRolloutStatus
	Verdict Verdict
	// Err is why no cluster is admitted, if that is so; it is part of the verdict.
	Err error
	// Barred: nothing is written to clusters, because another owner writes there, or because
	// their health cannot be judged.
	Barred bool
	// Decisions to log and announce once the status is stored.
	Decisions Decisions
	// Accepted are the fields of other writers that are AddonFlow's from now on.
	Accepted []Accepted
	// Restored says in words which of them were written while the fence was down; "" for none.
	Restored string
	// Yielding are the rollouts that have to give up an object to this one.
	Yielding []types.NamespacedName
	// Memory for the next turn.
	Memory Memory
}

// Cluster is a member and what was decided for it.
type Cluster struct {
	Judged
	Planned rollout.ClusterPlan
	// Install and Remove a ManagedClusterAddOn, Move: write the works of another revision.
	Install, Move, Remove bool
}

// turn is one call of New or Preview: the observation and what is made of it.
type turn struct {
	*Observation
	// stored is the status to plan with: as stored, moved to the target of spec.
	stored         v1alpha1.AddOnRolloutStatus
	target, stable Content
	// leaves is the memory for the next turn.
	leaves   Memory
	yielding map[types.NamespacedName]bool
}

// New plans a turn. What only the user can change is part of the plan; the error is one to
// retry.
func New(o *Observation) (Plan, error) {
	p := Plan{Observed: o, Memory: o.Memory}
	stored := &o.Rollout.Status
	stamp := metav1.NewTime(o.Look.Wall).Rfc3339Copy()
	next := advance(*stored, *o.Rollout.Spec.Target, o.Succeeded, stamp)
	ledger, step := o.Memory.corrected(next.Ledger, o.Look)
	next.Ledger = ledger
	if step != 0 {
		p.Memory.applyErrors, p.Memory.stampsAhead = nil, nil
	}
	barred, err := p.ownership()
	if err != nil {
		return p, err
	}
	p.Barred = barred != nil
	contested := cmp.Or(barred, o.fenceDown())
	if contested == nil || errors.Is(contested, ErrOwnership) && stored.Target != nil {
		if err := p.decide(next, contested); err != nil {
			return p, err
		}
		next = conclude(next, p.Planned, stamp)
		p.Verdict = waitsFor(o, *p.Input, p.Planned)
	}
	if p.Err = cmp.Or(contested, p.Refused); p.Err != nil {
		known := false
		if p.Verdict, known = verdictOf(p.Err); !known {
			return p, p.Err
		}
	}
	if p.Err != nil && stored.Target == nil {
		// Nothing was planned: the status stays empty, so that it is rebuilt yet.
		next.Target, next.TargetSince, next.History = nil, nil, stored.History
	}
	if !p.planned() && next.Phase == v1alpha1.PhaseSucceeded && o.Rollout.Generation != stored.ObservedGeneration {
		next.Phase = v1alpha1.PhaseProgressing // the policy changed, and was not planned with yet
	}
	p.Next = next
	p.Decisions = p.decisions(step)
	p.Next.Journal = journal.Append(p.Next.Journal, stamp, slices.Concat(o.Memory.Unwritten, p.Decisions.Steps))
	p.Next.Outcome = string(p.Summaries()[0].State)
	p.Memory.Unwritten, p.Memory.last = nil, &lastLook{o.Look, p.Next.Ledger}
	return p, nil
}

// planned reports whether the planner was asked and had nothing to refuse.
func (p *Plan) planned() bool { return p.Input != nil && p.Refused == nil }

// Preview plans as far as the planner's answer goes, for explaining it. reported is a conflict that
// the observation does not show; nil: none. The error is one of the planner's, or one to retry.
func Preview(o *Observation, reported error) (Plan, error) {
	p := Plan{Observed: o}
	contested := cmp.Or(o.conflict(), o.fenceDown(), reported)
	if contested != nil && o.Rollout.Status.Target == nil {
		return p, contested
	}
	if o.InvalidHealth != nil {
		return p, o.InvalidHealth
	}
	next := advance(o.Rollout.Status, *o.Rollout.Spec.Target, o.Succeeded, metav1.NewTime(o.Look.Wall))
	if err := p.decide(next, contested); err != nil {
		return p, err
	}
	return p, p.Refused
}

// decide asks the planner. next is the status to plan with.
func (p *Plan) decide(next v1alpha1.AddOnRolloutStatus, contested error) error {
	t := &turn{Observation: p.Observed, stored: next, leaves: p.Memory, yielding: map[types.NamespacedName]bool{}}
	t.leaves.alike, t.leaves.apart = map[string]string{}, map[string]string{}
	in, judged, err := t.input()
	if err != nil {
		return err
	}
	if contested != nil {
		in.Contested = contested.Error()
	}
	t.date(in.Clusters)
	p.Input = &in
	p.Planned, p.Refused = rollout.New(in)
	p.Clusters = assigned(p.Planned, judged)
	p.Memory = t.leaves
	p.Yielding = slices.SortedFunc(maps.Keys(t.yielding), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

// assigned joins what was decided for each cluster with what it was decided from.
func assigned(planned rollout.Plan, judged []Judged) []Cluster {
	at := make(map[string]int, len(judged))
	for i := range judged {
		at[judged[i].Name] = i
	}
	clusters, of := make([]Cluster, len(planned.Clusters)), make(map[string]*Cluster, len(planned.Clusters))
	for i, c := range planned.Clusters {
		clusters[i] = Cluster{Judged: judged[at[c.Name]], Planned: c}
		of[c.Name] = &clusters[i]
	}
	for _, a := range planned.Actions {
		c := of[a.Cluster]
		switch a.Kind {
		case rollout.Install:
			c.Install = true
		case rollout.Move:
			c.Move = true
		case rollout.Remove:
			c.Remove = true
		}
	}
	return clusters
}

// input turns the observation into what the planner reads.
func (t *turn) input() (rollout.Input, []Judged, error) {
	ro := t.Rollout
	in := rollout.Input{
		Now:             t.Look.Wall,
		AddOn:           ro.Name,
		Spec:            ro.Spec,
		Suspended:       Suspended(ro),
		TargetProven:    t.Succeeded.has(ro.Spec.Target.Revision),
		Reverting:       t.stored.Reverting && !t.Succeeded.since(ro.Spec.Target.Revision, t.stored.TargetSince),
		Ended:           ended(ro),
		Rebuild:         ro.Status.Target == nil,
		ApplyErrorAfter: ApplyErrorAfter,
		Ledger:          t.stored.Ledger,
		Placements:      t.Placements,
		ParkAfter:       t.ParkAfter,
		RemovalGrace:    t.RemovalGrace,
		ApprovedRemoval: ro.Annotations[v1alpha1.ApproveRemovalAnnotation],
	}
	var err error
	if t.target, err = t.Revisions.content(ro.Spec.Target.Digest); err != nil {
		return in, nil, err
	}
	if ro.Spec.Removal == nil { // a removal needs no body
		in.TargetMissing = t.target.missing()
	}
	if t.stored.Stable != nil {
		in.Stable = t.stored.Stable.Digest
		// The watch may lag behind the note of a success that the status has already.
		in.TargetProven = in.TargetProven || in.Stable == ro.Spec.Target.Digest
		if t.stable, err = t.Revisions.content(in.Stable); err != nil {
			return in, nil, err
		}
	}
	judged := make([]Judged, len(t.Members))
	in.Clusters = make([]rollout.Cluster, len(t.Members))
	for i, m := range t.Members {
		if judged[i], err = t.judge(m); err != nil {
			return in, nil, err
		}
		in.Clusters[i] = t.cluster(&judged[i])
	}
	return in, judged, t.Revisions.Interrupted()
}

// ended reports whether the rollout of the target ended Succeeded under the policy that is
// declared now, as the stored status says.
func ended(ro *v1alpha1.AddOnRollout) bool {
	s := &ro.Status
	return s.Phase == v1alpha1.PhaseSucceeded && s.ObservedGeneration == ro.Generation &&
		s.Target != nil && s.Target.Digest == ro.Spec.Target.Digest &&
		s.Stable != nil && s.Stable.Digest == ro.Spec.Target.Digest
}

// Suspended reports whether the rollout is suspended by annotation. A release that is asked
// for suspends until it is carried out.
func Suspended(ro *v1alpha1.AddOnRollout) bool {
	return v1alpha1.SuspendedByAnnotation(ro.Annotations) || ro.ReleaseRequested()
}

// cluster is what the planner reads of one member.
func (t *turn) cluster(j *Judged) rollout.Cluster {
	c := rollout.Cluster{
		Name:           j.Name,
		Installed:      Installation(j.AddOn),
		Gone:           j.Cluster == nil || j.Cluster.DeletionTimestamp != nil,
		Running:        j.Running(),
		UpToDate:       j.AtTarget,
		UpToDateStable: j.AtStable,
		Health:         health(j),
		Blocked:        t.blocked(j),
		Refused:        j.refused(),
		Awaits:         j.awaits(),
		Unwritten:      t.Unwritten[j.Name],
		Departure:      plannedDeparture(j.Member, t.Rollout.Name, t.HookTimeout),
	}
	if c.Running == "" && j.ranOtherwise() {
		c.Running = rollout.Mixed
	}
	if j.AddOn != nil {
		c.SelectedBy = rollout.Selection(j.AddOn.Annotations[v1alpha1.SelectedByAnnotation])
	}
	if j.Cluster != nil {
		c.Labels, c.InstallDisabled = j.Cluster.Labels, InstallDisabled(j.Cluster)
	}
	c.Reachable, c.AvailableChanged = Reachable(j.Cluster)
	if c.Reachable && j.Hosts && j.Hosting.Cluster != nil {
		if c.Reachable, c.AvailableChanged = Reachable(j.Hosting.Cluster); !c.Reachable {
			c.Away = "hosting cluster " + j.Hosting.Name + " is not available"
		}
	}
	// Where neither the target nor what the cluster has can be rendered, no commit caused it:
	// the cluster is held back, and blocks no other.
	if j.Refused != nil && !j.Refused.keeps {
		c.Reachable, c.Away = false, j.Refused.brief
	}
	if j.Hindered != nil {
		c.Reachable, c.Away = false, j.Hindered.Message
	}
	return c
}

// health hands what the works say to the planner.
func health(j *Judged) rollout.Health {
	h := rollout.Health{Reason: j.Health.Reason, NotApplied: j.Health.NotApplied}
	switch {
	case j.Health.Failed:
		h.State = rollout.HealthFailed
	case j.Overruled != nil:
		h.State, h.Reason = rollout.HealthProgressing, j.Overruled.Message
	case j.Health.Verified:
		h.State = rollout.HealthVerified
	case j.Health.Current:
		h.State = rollout.HealthProgressing
	}
	return h
}

// Writable reports whether anything may be written to clusters.
func (p *Plan) Writable() bool { return !p.Barred && (len(p.Clusters) > 0 || p.Err == nil) }

// IsTarget reports whether a digest is that of the rollout's target.
func (p *Plan) IsTarget(digest string) bool { return p.Observed.Rollout.Spec.Target.Digest == digest }

// Admitted reports whether the works of the cluster may be moved to the plan's revision.
func (c *Cluster) Admitted() bool { return c.Planned.State.InFlight() || c.Move }

// Movable reports whether the plan names a revision for the cluster's works.
func (c *Cluster) Movable() bool {
	r := c.Planned.Revision
	return r != "" && r != rollout.Mixed && r != rollout.Foreign && c.Planned.State != rollout.Gone
}

// Waits reports whether the cluster's add-on says Configured=False: the target changes
// something there, and it is not its turn. Beside OCM's addon-manager waiting clusters are not
// written at all.
func (p *Plan) Waits(c *Cluster) bool {
	return !p.Observed.HidesTemplateHash && (c.Planned.State == rollout.Waiting || c.Planned.State == rollout.Parked)
}

// Retries reports whether something is in a member's way that may be gone soon, without
// anything that is watched for this rollout.
func (p *Plan) Retries() bool {
	return slices.ContainsFunc(p.Observed.Members, func(m *Member) bool { return m.Hindered != nil && m.Hindered.Retry }) ||
		slices.ContainsFunc(p.Clusters, func(c Cluster) bool { return c.Refused != nil && c.Refused.Retry || c.Overruled != nil })
}

// Repairs returns what a member that is at a revision is repaired with: its renderer, and if
// the body is missing the target's, if that renders what the works hold. Equal digests mean
// equal objects: the member is at the target then, whatever its works name, as after the add-on
// was released and taken up by another source.
func (p *Plan) Repairs(c *Cluster, digest string) (*render.Renderer, error) {
	renderer, err := p.Observed.Revisions.Renderer(digest)
	if !errors.Is(err, ErrRevisionMissing) {
		return renderer, err
	}
	target := p.Observed.Revisions[p.Observed.Rollout.Spec.Target.Digest].Renderer
	if target == nil || !c.upToDate(target, c.Had) {
		return nil, err
	}
	return target, nil
}

// RendererOf returns the renderer of what a cluster is to have. A cluster that the target does
// not move, because it renders what the works hold, has the target's configurations all the
// same. A cluster that the ledger admitted has those of the revision it was admitted to.
func (p *Plan) RendererOf(c *Cluster) (*render.Renderer, error) {
	renderer, err := p.Repairs(c, c.Planned.Revision)
	if err != nil || c.Admitted() || p.IsTarget(c.Planned.Revision) {
		return renderer, err
	}
	target, err := p.Observed.Revisions.content(p.Observed.Rollout.Spec.Target.Digest)
	if err != nil {
		return nil, err
	}
	if target.Renderer != nil && c.upToDate(target.Renderer, c.Had) {
		return target.Renderer, nil
	}
	return renderer, nil
}

// Published is the status of the ClusterManagementAddOn that the plan comes to, but for its
// times. False without a plan, and while the target has no body: what was published stays.
func (p *Plan) Published() (addonv1alpha1.ClusterManagementAddOnStatus, bool) {
	target := p.Observed.Revisions[p.Observed.Rollout.Spec.Target.Digest].Renderer
	if p.Err != nil || target == nil {
		return addonv1alpha1.ClusterManagementAddOnStatus{}, false
	}
	var stable *render.Renderer
	if s := p.Next.Stable; s != nil {
		stable = p.Observed.Revisions[s.Digest].Renderer
	}
	return addonstatus.Published(p.Planned.Progressions, target, stable), true
}
