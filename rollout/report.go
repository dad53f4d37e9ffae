package rollout

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// act turns what was decided into actions; removals stand there already.
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
		if u.entry != nil && u.c.Blocked == "" && !p.at(u.c, u.entry.revision) {
			p.actions = append(p.actions, Action{
				Cluster: u.c.Name, Kind: Move, Revision: u.entry.revision, Reason: u.reason,
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

// report is the plan but for the ledger. An unknown group turns it into a hold.
func (p *planner) report() Plan {
	p.count()
	plan := Plan{
		Admitted: p.moved + len(p.grants), Actions: p.actions,
		Clusters: p.clusterPlans(), Stages: p.stageStatuses(), Counts: p.counts(),
		Progressions: p.progressions(),
		Guard:        p.guard, GuardHint: p.guardHint(), RecheckAt: p.recheck,
	}
	plan.Undivided = len(p.spec.Stages) == 0 && len(plan.Stages) == 1 && plan.Stages[0].Name == everybody
	for _, u := range append(p.failing(), p.overdue()...) {
		plan.Failing = append(plan.Failing, v1alpha1.ClusterReason{Cluster: u.c.Name, Reason: u.cause()})
	}
	v := p.judge(plan.Counts)
	plan.Overdue = p.overdueText()
	plan.Phase, plan.Message, plan.Outcome, plan.Halted = v.phase, v.message, v.outcome, v.halted
	if plan.Overdue != "" {
		plan.Message += ", " + plan.Overdue
	}
	if err := p.unknownGroup; err != nil {
		plan.Phase, plan.Message, plan.Outcome = v1alpha1.PhaseHeld, heldFor(err), Pending
		return plan
	}
	earned := v.phase == v1alpha1.PhaseSucceeded && v.complete && plan.Counts.Updated > 0
	plan.Succeeded = earned && !p.ended()
	return plan
}

// shown is the state as it is told: one that is held back was not lost.
func (u *unit) shown() State {
	if u.state == Unreachable && u.c.Away != "" {
		return HeldBack
	}
	return u.state
}

// clusterPlans tells of every cluster, by name.
func (p *planner) clusterPlans() []ClusterPlan {
	plans := make([]ClusterPlan, len(p.units))
	for i := range p.units {
		u := &p.units[i]
		cp := ClusterPlan{
			Name: u.c.Name, Stage: u.step.title(), State: u.shown(), Reason: u.reason,
			Revision: p.keeps(u), SoakingUntil: u.until, SelectedBy: p.selectedBy(u),
		}
		if u.state.InFlight() {
			cp.Deadline = u.deadline
		}
		if u.leaving {
			cp.State = Removing
		}
		plans[i] = cp
	}
	return plans
}

// keeps is the revision that the cluster's works are repaired to. One whose works at the
// target cannot be written stays at what it runs; where its works were deleted, that was
// the stable revision.
func (p *planner) keeps(u *unit) string {
	switch {
	case u.entry == nil || u.leaving:
		return u.c.Running
	case u.c.Blocked == "" || u.state != Failed:
		return u.entry.revision
	case u.c.Running == "":
		return p.stable
	}
	return u.c.Running
}

// counts are over everybody, each cluster in one of them.
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
	return c
}

func (u *unit) countIn(c *v1alpha1.Counts) {
	c.Total++
	switch {
	case u.state.InFlight():
		c.InFlight++
	case u.failedBefore() && u.c.Reachable:
		c.Waiting++
	case u.failedBefore():
		c.Parked++
	case u.state == Failed || u.state == TimedOut:
		c.Failed++
	case u.state == Parked || u.state == Unreachable:
		c.Parked++
	case u.state == Succeeded || u.state == Unchanged:
		c.Updated++
	default:
		c.Waiting++
	}
}

// Phases of a stage.
const (
	// StageWaiting: the stage before it is not complete, or nobody was admitted yet.
	StageWaiting = "Waiting"
	// StageProgressing: clusters are in flight.
	StageProgressing = "Progressing"
	// StageSoaking: everybody in flight is verified and soaks.
	StageSoaking = "Soaking"
	// StageComplete: verified and soaked, failed within the budget, or parked.
	StageComplete = "Complete"
	// StageFailed: the failure budget is spent.
	StageFailed = "Failed"
	// StageHeld: something other than the stage before it holds it.
	StageHeld = "Held"
	// StageNothingToDo: the target changes nothing for its clusters.
	StageNothingToDo = "NothingToDo"
)

func (p *planner) stageStatuses() []v1alpha1.StageStatus {
	var all []v1alpha1.StageStatus
	for _, t := range p.tracks {
		for i, s := range t.steps {
			c := s.tally
			st := v1alpha1.StageStatus{
				Name: s.name, Phase: p.stagePhase(t, i), Message: p.detail(s),
				Counts: v1alpha1.Counts{
					Total: c.total, Updated: c.updated, InFlight: c.flying,
					Failed: c.failed, Parked: c.parked, Waiting: c.waiting, Removing: c.leaving,
				},
			}
			if st.Phase != StageFailed {
				st.Message += s.refusedText()
			}
			if !c.until.IsZero() {
				until := metav1.NewTime(c.until)
				st.SoakingUntil = &until
			}
			all = append(all, st)
		}
	}
	return all
}

// stagePhase is where step i stands. Once the rollout has ended, nobody waits for those of
// it that are not available.
func (p *planner) stagePhase(t *track, i int) string {
	phase := t.phase(i)
	if phase == StageWaiting && p.ended() && t.steps[i].tally.waiting == 0 {
		return StageComplete
	}
	return phase
}

func (t *track) phase(i int) string {
	s := t.steps[i]
	c := s.tally
	switch {
	case t.breached(i):
		return StageFailed
	case t.complete(i) && c.changed+c.failed+c.parked == 0 && len(s.parted) == 0:
		return StageNothingToDo
	case t.complete(i):
		return StageComplete
	case c.flying > 0 && c.flying == c.soaking:
		return StageSoaking
	case c.flying > 0:
		return StageProgressing
	case s.hold != "":
		return StageHeld
	default:
		return StageWaiting
	}
}

// Why returns what the plan says of one cluster; false when it does not know it.
func (p Plan) Why(cluster string) (ClusterPlan, bool) {
	i, ok := slices.BinarySearchFunc(p.Clusters, cluster, func(c ClusterPlan, name string) int {
		return strings.Compare(c.Name, name)
	})
	if !ok {
		return ClusterPlan{}, false
	}
	return p.Clusters[i], true
}
