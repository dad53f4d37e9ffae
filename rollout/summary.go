package rollout

import "github.com/addonflow/addonflow/api/v1alpha1"

// Outcome is the state of a commit status.
type Outcome string

const (
	// Pending: the outcome is not known yet.
	Pending Outcome = "pending"
	// Success: the clusters were moved, with failures within the budget.
	Success Outcome = "success"
	// Failure: the failure budget is spent.
	Failure Outcome = "failure"
)

// Summary is the text of one commit status. It has no running clock, so that it changes only after an event.
type Summary struct {
	// Context is "" for the add-on, otherwise the name of the stage.
	Context     string
	State       Outcome
	Description string
	// Percent of the clusters that are updated. The pace of posts depends on it.
	Percent int
}

// RemovalContext is the part of a context for clusters that wait to be removed.
// No stage can have that name.
const RemovalContext = "removal_guard"

// RemovalOver is the last status of RemovalContext.
func RemovalOver() Summary {
	return Summary{Context: RemovalContext, State: Success, Description: "no cluster waits to be removed", Percent: 100}
}

// OverdueContext is the part of a context that names clusters whose removal takes too
// long. No stage can have that name.
const OverdueContext = "pre_delete_hooks"

// Summarise returns the commit statuses of a plan: first the add-on, then each stage. If a strategy has only one
// step, that step is left out, because it repeats the add-on.
//
// RemovalContext says why a removal is held. It is separate, because clusters leave after the final status of a
// commit. It is pending while a cluster waits to be removed. When no plan has it any more, the caller ends it with
// RemovalOver.
//
// Clusters whose removal takes too long are a failure in OverdueContext, not in the context of the add-on. The caller
// ends it with a success.
//
// When the whole rollout has an outcome, every stage has one. A stage that did not start, because another one failed
// or the user aborted the rollout, is a failure.
func Summarise(p Plan) []Summary {
	said := []Summary{{State: p.Outcome, Description: p.Message, Percent: percent(p.Counts)}}
	failed := "" // the first stage so far that failed
	for _, st := range p.Stages {
		if failed == "" && st.Phase == StageFailed {
			failed = st.Name
		}
		if !p.Undivided {
			said = append(said, summariseStage(st, p.Outcome, failed))
		}
	}
	if p.Guard != "" && p.Guard != p.Message {
		said = append(said, Summary{Context: RemovalContext, State: Pending, Description: p.Guard})
	}
	if p.Overdue != "" {
		said = append(said, Summary{Context: OverdueContext, State: Failure, Description: p.Overdue, Percent: percent(p.Counts)})
	}
	return said
}

func summariseStage(st v1alpha1.StageStatus, whole Outcome, failed string) Summary {
	s := Summary{Context: st.Name, State: Pending, Description: st.Message, Percent: percent(st.Counts)}
	switch {
	case st.Phase == StageFailed && whole == Failure:
		s.State = Failure
	case whole == Success || st.Phase == StageComplete:
		s.State = Success
	case st.Phase == StageNothingToDo:
		s.State, s.Description = Success, "nothing to change"
		if st.Counts.Total == 0 {
			s.Description = "no cluster in this stage"
		}
	case (st.Phase == StageWaiting || st.Phase == StageHeld) && whole == Failure && st.Counts.InFlight == 0:
		s.State = Failure
		switch {
		case failed == "": // no stage before it failed: its message has the reason
		case st.Counts.Updated > 0:
			s.Description = st.Message + "; " + failed + " failed"
		default:
			s.Description = "not started: " + failed + " failed"
		}
	}
	return s
}

func percent(c v1alpha1.Counts) int {
	if c.Total == 0 {
		return 100
	}
	return int(c.Updated) * 100 / int(c.Total)
}
