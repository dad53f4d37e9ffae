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

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// ApplyErrorAfter is how long an apply error may last before it counts as a failure.
const ApplyErrorAfter = 10 * time.Minute

// Plan has everything that one turn decided. Nothing of it is stored or written yet.
type Plan struct {
	// Observed is the input of the plan.
	Observed *Observation
	Claims
	Decided
	// ClockSet: the operator's clock was set, so earlier measurements are void.
	ClockSet bool
	// Measures are the gates to measure.
	Measures []gates.Measure
	// Next is the status to store, without conditions and commit statuses.
	Next    v1alpha1.AddOnRolloutStatus
	Verdict Verdict
	// Err is why the rollout admits no cluster; nil: it may admit some. Verdict reports it.
	Err error
	// Answers to orders. QuarantineChanges are the changes of quarantine that orders and a rollback make; clusters
	// move in the next turn.
	Answers           []Answer
	QuarantineChanges []QuarantineChange
	// Unmarked are the revisions to mark as succeeded.
	Unmarked Succeeded
	// Decisions to log and announce once the status is stored.
	Decisions Decisions
	// Memory is passed to the next turn of this rollout. It may be lost.
	Memory Memory
}

// Decided is what the planner decided about every cluster.
type Decided struct {
	// Input is the planner's input; nil: the planner was not called. Planned is the planner's result, which is valid
	// even if Refused, the planner's error, is set.
	Input   *rollout.Input
	Planned rollout.Plan
	Refused error
	// Clusters are the members in the order of Planned.Clusters.
	Clusters []Cluster
	// Yielding are the rollouts that must give a contended object to this one.
	Yielding []types.NamespacedName

	// gates of the declared stages, and the memory for the next turn.
	gates  []gate
	memory Memory
}

// Cluster is a member and its decision.
type Cluster struct {
	Judged
	Planned rollout.ClusterPlan
	// Install: create the ManagedClusterAddOn. Move: write the works of another revision.
	// Remove: delete the ManagedClusterAddOn.
	Install, Move, Remove bool
}

// New plans a turn. Each phase reads only the results of the phases before it:
//
//	claims    which other owners and writers the add-on has
//	begin     the status to plan with, moved to the target and to the present clock
//	orders    the orders about the attempt: retry and abort
//	ask       the planner, with every cluster judged
//	conclude  the status to store, the orders about content, and whether the fleet moves back
//
// Problems that the user must fix are part of the plan. A returned error is retried.
func New(o *Observation) (Plan, error) {
	claims, err := o.claims()
	if err == nil {
		err = o.Revisions.Interrupted() // the references of an add-on could not be compared
	}
	if err != nil {
		return Plan{}, err
	}
	begun := o.begin()
	if c := claims.contested; c != nil && (!errors.Is(c, ErrOwnership) || o.Rollout.Status.Target == nil && !errors.Is(c, ErrContested)) {
		return o.plan(claims, begun, concluded{Decided: Decided{memory: begun.memory}, status: begun.status})
	}
	after := o.applyOrders(begun.status)
	decided, err := o.ask(begun, after, claims.contested)
	if err != nil {
		return Plan{}, err
	}
	if decided.Refused != nil && len(after.orders) > 0 {
		after = after.refused(o, begun.status, decided.Refused)
	}
	return o.plan(claims, begun, o.conclude(after, decided))
}

// begun is the status to plan with: the stored status, moved to the target and to the present clock. step is by how
// much the operator's clock was set since the last turn.
type begun struct {
	status v1alpha1.AddOnRolloutStatus
	memory Memory
	step   time.Duration
}

func (o *Observation) begin() begun {
	stored, b := o.Rollout.Status, begun{memory: o.Memory}
	times := o.Memory.retiming(stored.Ledger, o.Look)
	if b.step = times.step; b.step != 0 {
		b.memory.bad, b.memory.refusals = nil, nil
	}
	stored.Ledger, stored.TargetSince, stored.Stages = times.ledger(stored.Ledger), times.time(stored.TargetSince), times.stages(stored.Stages)
	b.status = movedToTarget(stored, o, o.stamp())
	b.status.History = o.remembered(b.status.History)
	return b
}

// InOrder is the time to store for a success or a quarantine that happens now. These times order the
// contents, so each is later than the last one, even if the clock was set back.
func (o *Observation) InOrder(now time.Time) metav1.Time {
	now = now.UTC().Truncate(time.Second)
	after := func(t time.Time) {
		if !now.After(t) {
			now = t.UTC().Add(time.Second)
		}
	}
	for _, s := range o.everSucceeded {
		if at, err := time.Parse(time.RFC3339, s.At); err == nil {
			after(at)
		}
	}
	for _, q := range o.Quarantined {
		after(q.Time.Time)
	}
	return metav1.NewTime(now)
}

// stamp is the time of the turn as objects store it.
func (o *Observation) stamp() metav1.Time { return metav1.NewTime(o.Look.Wall).Rfc3339Copy() }

// concluded has the consequences of the decisions about the clusters. If the content of the target is quarantined in
// this turn, some of these decisions are void.
type concluded struct {
	Decided
	status   v1alpha1.AddOnRolloutStatus
	verdict  Verdict
	measures []gates.Measure
	given    given
	changes  []QuarantineChange
}

func (o *Observation) conclude(h ordered, d Decided) concluded {
	h = h.promote(o.Target.Digest, d)
	next := statusAfter(h.status, d.Planned, o.way(d), o.stamp())
	if why := o.stranded(); why != "" {
		d.Planned.Succeeded = false
		next.Phase, next.Message, next.Stable, next.History = v1alpha1.PhaseFailed, why, h.status.Stable, h.status.History
		next.Stages = withheld(next.Stages)
		next.History = recorded(next, rollout.Failure, o.stamp())
	}
	next, given, changes := o.answerContentOrders(next, h)
	c := concluded{given: given}
	if next.Phase == v1alpha1.PhaseFailed && !o.Override.Returns() && o.Rollout.Spec.OnFailure == v1alpha1.OnFailureRollback {
		obstacle := o.obstacle(h.status.Stable)
		switch {
		case next.Aborted != nil:
			obstacle = "an aborted rollout stays as it is"
		case d.Planned.Abandoned:
			obstacle = "no cluster failed with it"
		case obstacle == "" && !o.anyUnproven(d.Planned.Ledger):
			obstacle = "every cluster has content that succeeded here"
		}
		if obstacle != "" {
			next.Message += "; not rolled back: " + obstacle
		} else {
			q := v1alpha1.Quarantine{Time: o.InOrder(o.Look.Wall), Reason: o.failureText(next.Message, d)}
			changes = slices.Insert(changes, 0, QuarantineChange{Revision: o.Target.Revision, Quarantine: &q})
			next.Phase = v1alpha1.PhaseRollingBack // the next turn moves the clusters back, so the user has nothing to do
		}
	}
	next.History = o.remembering(next.History, changes)
	if slices.ContainsFunc(changes, func(w QuarantineChange) bool { return w.Quarantine != nil }) {
		d = d.frozen()
		next.Ledger, next.Counts, next.Stages = d.Planned.Ledger, d.Planned.Counts, d.Planned.Stages
	}
	c.changes = slices.Concat(changes, o.restored(next.History)) // added later, so that they freeze nothing
	d.gates = d.asked(o.Look.Wall)
	next.Stages = withVerdicts(next.Stages, d.gates)
	c.Decided, c.status, c.measures, c.verdict = d, next, d.measures(o, next.Attempt), waitsFor(o, *d.Input, d.Planned, next)
	return c
}

// withheld are the stages of content that no cluster should have and that no cluster can leave: no stage is complete.
func withheld(stages []v1alpha1.StageStatus) []v1alpha1.StageStatus {
	stages = slices.Clone(stages)
	for i := range stages {
		if st := &stages[i]; st.Phase == rollout.StageComplete || st.Phase == rollout.StageNothingToDo {
			st.Phase = rollout.StageHeld
		}
	}
	return stages
}

// plan completes a turn: conditions of the status, its journal, and the memory for the next turn.
func (o *Observation) plan(claims Claims, b begun, c concluded) (Plan, error) {
	p := Plan{
		Observed: o, Claims: claims, Decided: c.Decided, ClockSet: b.step != 0,
		Measures: c.measures, Next: c.status, Verdict: c.verdict, Err: cmp.Or(claims.contested, c.Refused),
		Answers: c.given.answers, QuarantineChanges: c.changes, Unmarked: o.unmarked(c.Planned.Succeeded), Memory: c.memory,
	}
	stored, next := &o.Rollout.Status, &p.Next
	if p.Err != nil {
		known := false
		if p.Verdict, known = verdictOf(p.Err); !known {
			return Plan{}, p.Err
		}
		if p.Verdict.Stalled == v1alpha1.InvalidRolloutStrategyReason {
			p.Verdict.locate(o.Rollout)
		}
	}
	if !p.planned() && stored.Target == nil {
		// Nothing was planned: the status stays empty, so that a later turn rebuilds it.
		next.Target, next.TargetSince, next.History, next.Attempt = nil, nil, stored.History, stored.Attempt
	}
	if !p.planned() && next.Phase == v1alpha1.PhaseSucceeded && o.Rollout.Generation != stored.ObservedGeneration {
		next.Phase = v1alpha1.PhaseProgressing // the policy changed, and no plan used it yet
	}
	if mistaken := o.Mistaken(); mistaken != "" {
		next.Message += "; " + mistaken
	}
	for _, aside := range p.asides() {
		next.Message += "; " + aside
		if p.Verdict.Message != "" {
			p.Verdict.Message += "; " + aside
		}
	}
	p.Decisions = p.decisions(b.step, c.given.steps)
	next.Journal = journal.Append(next.Journal, o.stamp(), slices.Concat(o.Memory.Unwritten, p.Decisions.Steps))
	next.Outcome = string(p.Summaries()[0].State)
	if o.Override.Waits() {
		next.Outcome = string(rollout.Pending) // it is about the content that Git declares
	}
	p.Memory.Unwritten, p.Memory.last = nil, &lastLook{o.Look, next.Ledger}
	return p, nil
}

// anyUnproven reports whether a cluster was admitted to content that never succeeded here, or that was rolled back
// afterwards.
func (o *Observation) anyUnproven(l v1alpha1.Ledger) bool {
	records, err := rollout.Records(l)
	return err != nil || slices.ContainsFunc(records, func(r rollout.Record) bool { return o.Succeeded.at(r.Revision) == "" })
}

// frozen plans again without admissions: the content of the target is quarantined in this turn.
func (d Decided) frozen() Decided {
	in := *d.Input
	in.Withdrawn = true
	judged := make([]Judged, len(d.Clusters))
	for i := range d.Clusters {
		judged[i] = d.Clusters[i].Judged
	}
	d.Input = &in
	d.Planned, d.Refused = rollout.New(in)
	d.Clusters = assigned(d.Planned, judged)
	return d
}

// planned reports whether the planner was called and returned no error.
func (d *Decided) planned() bool { return d.Input != nil && d.Refused == nil }

// Preview computes only the planner's result, to explain it. reported is a conflict that the observation does not
// show; nil: none. The error is the planner's, or an error to retry.
func Preview(o *Observation, reported error) (Plan, error) {
	contested := cmp.Or(o.conflict(), o.fenceDown(), reported)
	if contested != nil && o.Rollout.Status.Target == nil {
		return Plan{}, contested
	}
	if o.InvalidHealth != nil {
		return Plan{}, o.InvalidHealth
	}
	begun := begun{status: movedToTarget(o.Rollout.Status, o, metav1.NewTime(o.Look.Wall)), memory: o.Memory}
	decided, err := o.ask(begun, ordered{status: begun.status}, contested)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Observed: o, Decided: decided, Memory: decided.memory}, decided.Refused
}

// turn is the state of one call of ask.
type turn struct {
	*Observation
	// stored is the status to plan with: the stored status, moved to the target of spec.
	stored         v1alpha1.AddOnRolloutStatus
	target, stable Content
	// records of the ledger, by cluster.
	records map[string]*rollout.Record
	// preceded: there was content before the target. It succeeded here, or a cluster runs it, even if OCM deployed
	// it.
	preceded bool
	// forNext is the memory for the next turn.
	forNext  Memory
	yielding map[types.NamespacedName]bool
	// measured are the results of measurements that count.
	measured []gates.Measured
}

func (o *Observation) ask(b begun, h ordered, contested error) (Decided, error) {
	t := &turn{Observation: o, stored: h.status, records: map[string]*rollout.Record{}, forNext: b.memory, yielding: map[types.NamespacedName]bool{}}
	t.forNext.alike, t.forNext.apart, t.forNext.intact = map[string]Fingerprint{}, map[string]Fingerprint{}, map[string]Fingerprint{}
	t.forNext.windows = map[windowKey]window{}
	records, _ := rollout.Records(h.status.Ledger) // the planner refuses a ledger with an error
	for i := range records {
		t.records[records[i].Cluster] = &records[i]
	}
	t.preceded = len(o.everSucceeded) > 0 || slices.ContainsFunc(o.Members, func(m *Member) bool {
		return !slices.Contains([]string{"", rollout.Mixed, o.Target.Digest}, m.Running())
	})
	in, judged, err := t.input()
	if err != nil {
		return Decided{}, err
	}
	in.Orders, in.Aborted = h.orders, aborted(h.status)
	if contested != nil {
		in.Contested = contested.Error()
	}
	t.date(in.Clusters)
	if b.step == 0 {
		t.measured = t.Measured
	}
	all := t.judgeGates()
	for i := range all {
		in.Gates = append(in.Gates, all[i].planned())
	}
	if room := len(all)*gateRoom + max(0, len(h.status.Stages)-stagesSpared)*stageRoom; room > 0 {
		in.LedgerLimit = max(1, rollout.DefaultLedgerLimit-room)
	}
	planned, refused := rollout.New(in)
	if planned.Phase == v1alpha1.PhaseFailed && !strings.HasPrefix(planned.Message, in.Aborted) {
		planned.Message = in.Aborted + "; " + planned.Message
	}
	return Decided{
		Input: &in, Planned: planned, Refused: refused, Clusters: assigned(planned, judged), gates: all, memory: t.forNext,
		Yielding: slices.SortedFunc(maps.Keys(t.yielding), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }),
	}, nil
}

// assigned joins the decision about each cluster with its member.
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

// input turns the observation into the planner's input.
func (t *turn) input() (rollout.Input, []Judged, error) {
	ro := t.Rollout
	in := rollout.Input{
		Now:             t.Look.Wall,
		AddOn:           ro.Name,
		Spec:            ro.Spec,
		Suspended:       Suspended(ro),
		TargetProven:    t.Succeeded.Has(t.Target.Revision),
		Reverting:       t.stored.Reverting,
		RollingBack:     t.Override.Returns(),
		Returned:        t.stored.Returned,
		Ended:           t.ended(),
		Rebuild:         ro.Status.Target == nil,
		ApplyErrorAfter: ApplyErrorAfter,
		Ledger:          t.stored.Ledger,
		Placements:      t.Placements,
		ParkAfter:       t.ParkAfter,
		RemovalGrace:    t.RemovalGrace,
		ApprovedRemoval: ro.Annotations[v1alpha1.ApproveRemovalAnnotation],
	}
	if t.stored.TargetSince != nil {
		in.TargetSince = t.stored.TargetSince.Time
	}
	var err error
	if t.target, err = t.Revisions.content(t.Target.Digest); err != nil {
		return in, nil, err
	}
	in.Spec.Target = &t.Target
	if ro.Spec.Removal == nil { // a removal needs no body
		in.TargetMissing = cmp.Or(t.stranded(), t.target.missing())
	}
	if t.stored.Stable != nil {
		in.Stable = t.stored.Stable.Digest
		in.TargetProven = in.TargetProven || in.Stable == t.Target.Digest // even if its revision was deleted
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

// ended reports whether the stored status says that the rollout of the target ended Succeeded under the present
// policy.
func (o *Observation) ended() bool {
	s := &o.Rollout.Status
	return (s.Phase == v1alpha1.PhaseSucceeded || s.Phase == v1alpha1.PhaseRolledBack) && s.ObservedGeneration == o.Rollout.Generation &&
		s.Target != nil && s.Target.Digest == o.Target.Digest &&
		s.Stable != nil && s.Stable.Digest == o.Target.Digest
}

// Suspended reports whether the rollout is suspended by annotation. A requested release suspends
// the rollout until it is complete.
func Suspended(ro *v1alpha1.AddOnRollout) bool {
	return v1alpha1.SuspendedByAnnotation(ro.Annotations) || ro.ReleaseRequested()
}

// cluster is the planner's input about one member.
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
		Waits:          t.waits(j.Name),
		NeededBy:       t.NeededBy[j.Name],
		Unwritten:      t.Refusals[j.Name],
		Unremoved:      t.Unremoved[j.Name],
		Departure:      plannedDeparture(j.Member, t.Rollout.Name, t.HookTimeout),
	}
	switch {
	case t.startsAnew(j):
		c.Running = rollout.Mixed
	case c.Running == rollout.Mixed:
		c.Running = t.mixed(j)
	}
	if j.AddOn != nil {
		c.SelectedBy = rollout.Selection(j.AddOn.Annotations[v1alpha1.SelectedByAnnotation])
	}
	if j.Cluster != nil {
		c.Labels, c.InstallDisabled = j.Cluster.Labels, InstallDisabled(j.Cluster)
		c.Held, c.HeldUntil = v1alpha1.HeldByAnnotation(j.Cluster.Annotations)
		if value := j.Cluster.Annotations[v1alpha1.HoldUntilAnnotation]; c.HeldUntil.IsZero() && value != "true" {
			c.HeldFor = brief.Line(value, 60)
		}
	}
	c.Reachable, c.AvailableChanged = Reachable(j.Cluster)
	if c.Reachable && j.Hosts && j.Hosting.Cluster != nil {
		if c.Reachable, c.AvailableChanged = Reachable(j.Hosting.Cluster); !c.Reachable {
			c.Away = "hosting cluster " + j.Hosting.Name + " is not available"
		}
	}
	// If neither the target nor the current content can be rendered for the cluster, the commit is not the cause. The
	// cluster is parked, even if it is available, and blocks no other.
	if j.Refused != nil && !j.Refused.byCommit {
		c.Reachable, c.Away = false, "content cannot be rendered: "+j.Refused.brief
	}
	if j.Hindered != nil {
		c.Reachable, c.Away = false, j.Hindered.Message
	}
	if j.Keeps != "" && c.Reachable {
		c.Reachable, c.Away = false, j.Keeps
	}
	return c
}

// health is the planner's input about the health of a member.
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

// Writable reports whether writes to clusters are allowed.
func (p *Plan) Writable() bool { return !p.Barred && (len(p.Clusters) > 0 || p.Err == nil) }

// IsTarget reports whether a digest is that of the rollout's target.
func (p *Plan) IsTarget(digest string) bool { return p.Observed.Target.Digest == digest }

// Admitted reports whether the works of the cluster may be moved to the plan's revision.
func (c *Cluster) Admitted() bool { return c.Planned.State.InFlight() || c.Move }

// Movable reports whether the plan names a revision for the cluster's works.
func (c *Cluster) Movable() bool {
	r := c.Planned.Revision
	return r != "" && r != rollout.Mixed && r != rollout.Foreign && c.Planned.State != rollout.Gone
}

// Waits reports whether the cluster's add-on is Configured=False: the target changes the cluster, and its turn has
// not come. If OCM's addon-manager runs on the same hub, nothing is written for a waiting cluster.
func (p *Plan) Waits(c *Cluster) bool {
	s := c.Planned.State
	return !p.Observed.HidesTemplateHash && (s == rollout.Waiting || s == rollout.Parked || s == rollout.Held)
}

// Retries reports whether a member has a problem that may end without an event of a watched
// object.
func (p *Plan) Retries() bool {
	return slices.ContainsFunc(p.Observed.Members, func(m *Member) bool { return m.Hindered != nil && m.Hindered.Retry }) ||
		slices.ContainsFunc(p.Clusters, func(c Cluster) bool { return c.Refused != nil && c.Refused.Retry || c.Overruled != nil })
}

// Repairs returns the renderer that repairs a member at a revision: the renderer of that revision. If its body is
// missing, the target's renderer is used, if it renders exactly the objects in the works. Equal digests mean equal
// objects. This happens after an add-on was released and taken over by another source.
func (p *Plan) Repairs(c *Cluster, digest string) (*render.Renderer, error) {
	renderer, err := p.Observed.Renderer(digest)
	if !errors.Is(err, ErrRevisionMissing) {
		return renderer, err
	}
	target := p.Observed.Revisions[p.Observed.Target.Digest].Renderer
	if target == nil || !c.upToDate(target, c.Had) {
		return nil, err
	}
	return target, nil
}

// RendererOf returns the renderer of the content that a cluster is to have. An admitted cluster has the content of
// its revision. If the target renders exactly the objects in the works, the cluster is not moved, but its status
// names the target's configurations.
func (p *Plan) RendererOf(c *Cluster) (*render.Renderer, error) {
	renderer, err := p.Repairs(c, c.Planned.Revision)
	if err != nil || c.Admitted() || p.IsTarget(c.Planned.Revision) {
		return renderer, err
	}
	target, err := p.Observed.Revisions.content(p.Observed.Target.Digest)
	if err != nil {
		return nil, err
	}
	if target.Renderer != nil && c.upToDate(target.Renderer, c.Had) {
		return target.Renderer, nil
	}
	return renderer, nil
}

// Published is the status of the ClusterManagementAddOn according to the plan, without its times. ok is false if
// there is no plan or the target has no body; then the published status stays unchanged.
func (p *Plan) Published() (addonv1alpha1.ClusterManagementAddOnStatus, bool) {
	target := p.Observed.Revisions[p.Observed.Target.Digest].Renderer
	if p.Err != nil || target == nil {
		return addonv1alpha1.ClusterManagementAddOnStatus{}, false
	}
	var stable *render.Renderer
	if s := p.Next.Stable; s != nil {
		stable = p.Observed.Revisions[s.Digest].Renderer
	}
	return addonstatus.Published(p.Planned.Progressions, target, stable), true
}
