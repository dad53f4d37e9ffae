package rollout

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// act turns the decisions into actions. The actions of removals are in the list already.
func (p *planner) act() {
	for i := range p.units {
		u := &p.units[i]
		if !u.member || u.leaving {
			continue
		}
		if (u.c.Installed == NotInstalled || u.c.Installed == "") && !p.suspended() {
			p.actions = append(p.actions, Action{
				Cluster: u.c.Name, Kind: Install, Reason: u.installReason(),
			})
		}
		if r := u.record; p.writes(u) && p.barred(u.c, r.Revision) == "" && !p.at(u.c, r.Revision) {
			p.actions = append(p.actions, Action{
				Cluster: u.c.Name, Kind: Move, Revision: r.Revision, Reason: u.reason,
			})
		}
	}
	slices.SortStableFunc(p.actions, func(a, b Action) int { return strings.Compare(a.Cluster, b.Cluster) })
}

func (u *unit) installReason() string {
	if u.labelled {
		return "its labels select it"
	}
	return "an install placement selects it"
}

// report returns the plan without the ledger. With an unknown group the phase is Held.
func (p *planner) report() Plan {
	p.count()
	p.askDuring()
	plan := Plan{
		Admitted: len(p.admissions) + p.retargeted + p.removal.Reserved, Actions: p.actions,
		Clusters: p.clusterPlans(), Stages: p.stageStatuses(), Counts: p.counts(),
		Progressions: p.progressions(),
		Guard:        p.removal.Guard, GuardHint: p.removal.Hint, Promoted: p.promotions, Asks: p.asks, Passed: p.passed, RecheckAt: p.recheck,
	}
	plan.Undivided = len(p.spec.Stages) == 0 && len(plan.Stages) == 1 && plan.Stages[0].Name == wholeFleet
	for _, u := range p.failing() {
		plan.Failing = append(plan.Failing, v1alpha1.ClusterReason{Cluster: u.c.Name, Reason: u.cause()})
	}
	plan.Failing = append(plan.Failing, p.removal.Overdue[:min(len(p.removal.Overdue), shownFailures)]...)
	v := p.judge(plan.Counts)
	plan.Overdue = p.removal.OverdueText()
	plan.Phase, plan.Message, plan.Outcome, plan.Halted, plan.Abandoned = v.phase, v.message, v.outcome, v.halted, v.abandoned
	if plan.Overdue != "" {
		plan.Message += ", " + plan.Overdue
	}
	if err := p.unknownGroup; err != nil {
		plan.Phase, plan.Message, plan.Outcome = v1alpha1.PhaseHeld, heldFor(err), Pending
		return plan
	}
	earned := v.phase == v1alpha1.PhaseSucceeded && v.complete && plan.Counts.Updated > 0
	plan.Succeeded = earned && !p.in.Ended
	return plan
}

// clusterPlans returns the plan of every cluster, by name.
func (p *planner) clusterPlans() []ClusterPlan {
	plans := make([]ClusterPlan, len(p.units))
	for i := range p.units {
		u := &p.units[i]
		cp := ClusterPlan{
			Name: u.c.Name, Stage: u.step.title(), State: u.state, Reason: u.reason,
			Revision: p.keeps(u), SoakingUntil: u.until, SelectedBy: p.selectedBy(u),
		}
		if u.state.InFlight() {
			cp.Deadline, cp.NotApplied = u.record.deadline(p.observation(u), p.pace(u, u.step)), u.refusal()
		}
		if u.leaving {
			cp.State = Removing
		}
		plans[i] = cp
	}
	return plans
}

// writes reports whether the works of a cluster follow its record. They do while the cluster is in flight. They also
// do while the hub refuses the works of a failed cluster, because the operator keeps trying. Content that is being
// quarantined is not written.
func (p *planner) writes(u *unit) bool {
	r := u.record
	if r != nil && r.Revision == p.target && p.in.Withdrawn {
		return false
	}
	return r.InFlight() || r != nil && r.Revision == p.target && r.Refusal != ""
}

// keeps is the revision to which the works of the cluster are repaired: the revision of its record, if the works
// follow the record and can be written; otherwise the revision that the cluster runs. If the target could not be
// written to a cluster and its works were deleted, it is the stable revision.
func (p *planner) keeps(u *unit) string {
	r := u.record
	switch {
	case u.leaving || r == nil:
	case p.writes(u) && p.barred(u.c, r.Revision) == "":
		return r.Revision
	case u.c.Running == "" && r.State == NotWritten && r.Revision == p.target && !p.writable(u.c):
		return p.stable
	}
	return u.c.Running
}

// counts adds each cluster to one of the counts.
func (p *planner) counts() v1alpha1.Counts {
	var c v1alpha1.Counts
	for i := range p.units {
		u := &p.units[i]
		switch {
		case u.leaving || u.state == Removing:
			c.Removing++
		case !u.member:
			if u.named && u.state == Ignored {
				c.Ignored++
			}
		case u.state == Unstaged || u.step == nil && p.spec.Removal == nil && len(p.tracks) > 0:
			c.Unstaged++
		default:
			u.countIn(&c)
		}
	}
	left := map[*unit]bool{} // a failure whose stage was removed counts in several steps
	for _, s := range p.steps {
		for _, u := range s.former {
			if u.record.failed() && !u.member && u.state != Removing && !left[u] {
				left[u] = true
				c.Failed++ // the cluster left, and still counts as failed
			}
		}
	}
	return c
}

func (u *unit) countIn(c *v1alpha1.Counts) {
	c.Total++
	switch u.state {
	case Admitted, Updating, Soaking, Lost:
		c.InFlight++
	case Failed, TimedOut:
		c.Failed++
	case Parked:
		c.Parked++
	case Held:
		c.Held++
	case Done, Unchanged:
		c.Updated++
	default:
		c.Waiting++
	}
}

func (p *planner) stageStatus(t *track, i int, s *step) v1alpha1.StageStatus {
	c := s.tally
	held, excused := int32(len(c.held)), int32(len(c.excused)) //nolint:gosec // at most as many as there are clusters
	st := v1alpha1.StageStatus{
		Name: s.name, Phase: t.phase(i), Message: p.detail(s),
		Counts: v1alpha1.Counts{
			Total: c.total, Updated: c.updated, InFlight: c.flying,
			Failed: c.failed - c.again + excused, Parked: c.parked - held, Held: held, Waiting: c.waiting, Removing: c.leaving,
		},
	}
	open := st.Phase == StageWaiting || st.Phase == StageProgressing || st.Phase == StageSoaking
	switch {
	case open && p.in.Ended && !s.unverified():
		st.Phase = StageComplete // clusters that catch up are not part of the rollout
	case (open || st.Phase == StageHeld) && p.in.Aborted != "" && c.flying == 0:
		st.Phase = StageHeld
		st.Message += ", " + p.in.Aborted
	}
	if st.Phase != StageFailed {
		st.Message += s.refusedText()
	}
	if !c.until.IsZero() {
		until := metav1.NewTime(c.until)
		st.SoakingUntil = &until
	}
	return st
}

// Why returns the plan of one cluster; false: the plan has no such cluster.
func (p Plan) Why(cluster string) (ClusterPlan, bool) {
	i, ok := slices.BinarySearchFunc(p.Clusters, cluster, func(c ClusterPlan, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !ok {
		return ClusterPlan{}, false
	}
	return p.Clusters[i], true
}
