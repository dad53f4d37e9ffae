package journal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Rollout returns the decisions about the target, the stages and the whole rollout that
// lie between two statuses.
func Rollout(before, next v1alpha1.AddOnRolloutStatus) []Decision {
	out := aboutTarget(before, next)
	stages := before.Stages
	if !sameTarget(before.Target, next.Target) {
		stages = nil
	}
	halted := false
	for _, stage := range next.Stages {
		was := stageNamed(stages, stage.Name)
		if before.Attempt != next.Attempt {
			was.Gates = nil // their verdicts are of another attempt
		}
		gates := aboutGates(was.Gates, stage)
		out = append(out, gates...)
		d := aboutStage(was.Phase, stage)
		if d.Kind == "" || d.Kind == StageHeld && len(gates) > 0 { // the gate says what holds it
			continue
		}
		if d.Kind == Halted {
			halted = true
			d.Reason = next.Message
		}
		out = append(out, d)
	}
	if d := aboutPhase(before, next); d.Kind != "" && (d.Kind != Halted || !halted) {
		out = append(out, d)
	}
	for i := range out {
		if out[i].Commit == "" && next.Target != nil {
			out[i].Commit, out[i].Revision = next.Target.Commit, next.Target.Digest
		}
	}
	return out
}

// InOrder returns the decisions of one turn in the order of their causes: orders and a new target; then stage by stage
// the observations of its clusters, its gates, its start, its admissions and its end; then the decisions about the
// whole rollout. A rollout resumes before the first stage that starts or admits clusters.
func InOrder(decisions []Decision, stages []v1alpha1.StageStatus) []Decision {
	stageOf := func(d Decision) int {
		return slices.IndexFunc(stages, func(s v1alpha1.StageStatus) bool { return s.Name == d.Stage })
	}
	resumes := len(stages)
	for _, d := range decisions {
		if d.Kind == StageStarted || d.Kind == Admitted {
			resumes = min(resumes, stageOf(d))
		}
	}
	place := func(d Decision) int {
		switch {
		case slices.Contains([]Kind{ClockStepped, Ordered, Superseded, Started, Reverted, RollbackStarted, RemovalStarted}, d.Kind):
			return -2 // before the clusters of no stage
		case d.Stage == "" && d.Kind == Resumed:
			return resumes
		case d.Stage == "" && slices.Contains([]Kind{Held, Suspended, Halted, Succeeded, RolledBack, RemovalEnded}, d.Kind):
			return len(stages)
		}
		return stageOf(d)
	}
	sorted := slices.Clone(decisions)
	slices.SortStableFunc(sorted, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(rank(a.Kind), rank(b.Kind)))
	})
	return sorted
}

// sameTarget reports whether two targets are of the same content.
func sameTarget(a, b *v1alpha1.Target) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest
}

// aboutTarget says that the target changed.
func aboutTarget(before, next v1alpha1.AddOnRolloutStatus) []Decision {
	if next.Target == nil || sameTarget(before.Target, next.Target) {
		return nil
	}
	var out []Decision
	if old := before.Target; old != nil && !ended(before) {
		out = append(out, Decision{
			Kind: Superseded, Commit: old.Commit, Revision: old.Digest,
			From: string(before.Phase), Reason: "by " + next.Target.Commit,
		})
	}
	replaces := ""
	if old := cmp.Or(before.Target, next.Stable); old != nil && !sameTarget(old, next.Target) { // a status that was lost names no target
		replaces = "replaces " + cmp.Or(old.Commit, old.Revision)
	}
	start := Decision{Kind: Started, Reason: cmp.Or(replaces, "the first content of this add-on")}
	if next.Reverting {
		start.Kind, start.Reason = Reverted, strings.TrimSuffix("to content that succeeded here before; "+replaces, "; ")
	}
	if o := next.Override; o.Returns() {
		start.Kind, start.Reason = RollbackStarted, "from "+o.Leaves().Commit+": "+o.Reason
	}
	return append(out, start)
}

// ended reports whether the rollout of a status had ended. A rollout that failed and is about to be
// rolled back has ended.
func ended(s v1alpha1.AddOnRolloutStatus) bool {
	return s.Phase == v1alpha1.PhaseRollingBack && !s.Override.Returns() || s.Phase == v1alpha1.PhaseSucceeded || s.Phase == v1alpha1.PhaseRolledBack ||
		s.Phase == v1alpha1.PhaseFailed || s.Phase == v1alpha1.PhaseRemoved
}

// stageNamed is the stage of a name; its zero: there is no such stage.
func stageNamed(stages []v1alpha1.StageStatus, name string) v1alpha1.StageStatus {
	for _, s := range stages {
		if s.Name == name {
			return s
		}
	}
	return v1alpha1.StageStatus{}
}

// aboutGates are the changes of the verdicts of a stage's gates. The Waiting of a gate in during is left out, because
// a reader can do nothing about it.
func aboutGates(before []v1alpha1.GateStatus, stage v1alpha1.StageStatus) []Decision {
	var out []Decision
	for _, g := range stage.Gates {
		was := v1alpha1.GateStatus{}
		for _, known := range before {
			if known.Name == g.Name && known.When == g.When && known.Since != nil {
				was = known
			}
		}
		kind := map[v1alpha1.GateState]Kind{
			v1alpha1.GateWaiting: GateWaits, v1alpha1.GatePassed: GatePassed, v1alpha1.GateFailed: GateFailed, v1alpha1.GateError: GateError,
		}[g.State]
		if g.Since == nil || g.State == was.State || kind == GateWaits && g.When == v1alpha1.GateDuring {
			continue
		}
		out = append(out, Decision{Kind: kind, Stage: stage.Name, From: string(was.State), To: string(g.State), Reason: verdict(g)})
	}
	return out
}

// verdict names a gate, and the reason of its verdict.
func verdict(g v1alpha1.GateStatus) string {
	text := string(g.Type) + " " + g.Name
	if g.Reason != "" {
		text += ": " + g.Reason
	}
	return text
}

// GatesRemoved returns a decision for each gate that had failed and that the policy no longer has, for the same content
// and attempt. It names the commit of the policy, and the stage of the gate, even if the policy removed the stage, too.
func GatesRemoved(before, next v1alpha1.AddOnRolloutStatus, spec v1alpha1.AddOnRolloutSpec) []Decision {
	if !sameTarget(before.Target, next.Target) || before.Attempt != next.Attempt {
		return nil
	}
	var out []Decision
	for _, stage := range before.Stages {
		for _, g := range stage.Gates {
			same := func(x v1alpha1.GateStatus) bool { return x.Name == g.Name && x.When == g.When }
			if g.State != v1alpha1.GateFailed || declares(spec, stage.Name, g) || slices.ContainsFunc(stageNamed(next.Stages, stage.Name).Gates, same) {
				continue
			}
			out = append(out, Decision{
				Kind: GateRemoved, Commit: spec.PolicyCommit, Stage: stage.Name, From: string(g.State),
				Reason: "the policy no longer has " + verdict(g),
			})
		}
	}
	return out
}

// declares reports whether a policy has a gate of a stage.
func declares(spec v1alpha1.AddOnRolloutSpec, stage string, g v1alpha1.GateStatus) bool {
	named := func(x v1alpha1.Gate) bool { return x.Name == g.Name }
	return slices.ContainsFunc(spec.Stages, func(s v1alpha1.Stage) bool {
		switch {
		case s.Name != stage || s.Gates == nil:
			return false
		case g.When == v1alpha1.GateBefore:
			return slices.ContainsFunc(s.Gates.Before, named)
		}
		return slices.ContainsFunc(s.Gates.During, named)
	})
}

// aboutStage is the decision between two phases of a stage; its kind is "" for none.
func aboutStage(was string, stage v1alpha1.StageStatus) Decision {
	d := Decision{Stage: stage.Name, Count: int(stage.Counts.Total), From: was, To: stage.Phase, Reason: stage.Message}
	begun := was == rollout.StageProgressing || was == rollout.StageSoaking
	switch stage.Phase {
	case was:
	case rollout.StageProgressing, rollout.StageSoaking:
		switch {
		case was == rollout.StageFailed:
			d.Kind = Resumed
		case !begun && was != rollout.StageComplete:
			d.Kind = StageStarted
		}
	case rollout.StageComplete:
		if was != "" && was != rollout.StageNothingToDo { // otherwise the target changed none of its clusters
			d.Kind = StageCompleted
		}
	case rollout.StageFailed:
		d.Kind = Halted
	case rollout.StageHeld:
		d.Kind = StageHeld
	}
	return d
}

// aboutPhase is the decision between two phases of a rollout; its kind is "" for none.
func aboutPhase(before, next v1alpha1.AddOnRolloutStatus) Decision {
	was := before.Phase
	if !sameTarget(before.Target, next.Target) {
		was = ""
	}
	d := Decision{From: string(was), To: string(next.Phase), Reason: next.Message}
	if was == next.Phase {
		return Decision{}
	}
	switch next.Phase {
	case v1alpha1.PhaseSucceeded:
		d.Kind = Succeeded
	case v1alpha1.PhaseRolledBack:
		d.Kind = RolledBack
	case v1alpha1.PhaseFailed:
		d.Kind = Halted
	case v1alpha1.PhaseHeld:
		d.Kind = Held
	case v1alpha1.PhaseSuspended:
		d.Kind = Suspended
	case v1alpha1.PhaseRemoving:
		d.Kind = RemovalStarted
	case v1alpha1.PhaseRemoved:
		d.Kind = RemovalEnded
	case v1alpha1.PhaseProgressing, v1alpha1.PhaseRollingBack:
		if next.Phase == v1alpha1.PhaseRollingBack && !next.Override.Returns() {
			break // it failed, as its stage says, and the next turn begins to roll it back
		}
		if was == v1alpha1.PhaseFailed || was == v1alpha1.PhaseHeld || was == v1alpha1.PhaseSuspended {
			d.Kind = Resumed
		}
	}
	return d
}
