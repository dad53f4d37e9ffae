package journal

import (
	"cmp"
	"slices"
	"strings"
)

// Kind is a decision in one word.
type Kind string

// Decisions about clusters.
const (
	// Admitted: the cluster holds a slot; its works may be written.
	Admitted Kind = "Admitted"
	// Adopted: a cluster without a record runs the target, which never succeeded; it holds a slot.
	Adopted Kind = "Adopted"
	// Kept: the new target renders what the cluster has; its record keeps state and clocks.
	Kept Kind = "Kept"
	// Moved: the works of the cluster are at the revision.
	Moved Kind = "Moved"
	// Verified: the feedback proves the content.
	Verified Kind = "Verified"
	// SoakReset: the cluster is not verified any more; its soak starts anew.
	SoakReset Kind = "SoakReset"
	// Soaked: the soak ended.
	Soaked Kind = "Soaked"
	// Failed: the cluster failed with this content.
	Failed Kind = "Failed"
	// TimedOut: the cluster is past its deadline.
	TimedOut Kind = "TimedOut"
	// Recovered: a cluster that had failed or timed out is updating again.
	Recovered Kind = "Recovered"
	// Lost: the cluster is not available; it keeps its slot.
	Lost Kind = "Lost"
	// Parked: the cluster was lost for so long that its slot was freed.
	Parked Kind = "Parked"
	// Left: the cluster left its stage or the add-on before it was done.
	Left Kind = "Left"
	// Returned: a cluster that was lost, parked or had left is back.
	Returned Kind = "Returned"
	// Removed: the ManagedClusterAddOn of the cluster was deleted.
	Removed Kind = "Removed"
	// Repaired: a work that differed from the cluster's revision was written again.
	Repaired Kind = "Repaired"
)

// Decisions about stages and the whole rollout.
const (
	// Started: there is a new target.
	Started Kind = "Started"
	// Reverted: there is a new target, and its content succeeded here before.
	Reverted Kind = "Reverted"
	// Superseded: the target was replaced before its rollout ended.
	Superseded Kind = "Superseded"
	// StageStarted: the first cluster of the stage was admitted.
	StageStarted Kind = "StageStarted"
	// StageHeld: something other than the stage before it holds the stage.
	StageHeld Kind = "StageHeld"
	// StageCompleted: every cluster of the stage is decided.
	StageCompleted Kind = "StageCompleted"
	// Halted: the failure budget of the stage is spent, or the rollout failed as a whole.
	Halted Kind = "Halted"
	// Held: the rollout waits for something that does not pass by itself.
	Held Kind = "Held"
	// Suspended: the rollout was suspended.
	Suspended Kind = "Suspended"
	// Resumed: the rollout goes on after it was halted, held or suspended.
	Resumed Kind = "Resumed"
	// Succeeded: the rollout succeeded.
	Succeeded Kind = "Succeeded"
	// RemovalStarted: the add-on is being taken off the fleet.
	RemovalStarted Kind = "RemovalStarted"
	// RemovalEnded: no cluster has the add-on any more.
	RemovalEnded Kind = "RemovalEnded"
	// WriteLost: another writer was first; the plan was dropped.
	WriteLost Kind = "WriteLost"
	// ClockStepped: the operator's clock was set; the times in the ledger moved with it.
	ClockStepped Kind = "ClockStepped"
)

// States of a record, as the ledger has them.
const (
	admitted   = "Admitted"
	updating   = "Updating"
	soaking    = "Soaking"
	done       = "Done"
	failed     = "Failed"
	timedOut   = "TimedOut"
	lost       = "Lost"
	parked     = "Parked"
	left       = "Left"
	leftFailed = "LeftFailed"
	// waiting is the state of a cluster without a record.
	waiting = "Waiting"
)

// Standing is where one cluster stands: its record, and the reason the plan gives.
type Standing struct {
	// Cluster by name.
	Cluster string
	// Revision is the digest of the content that the record is about.
	Revision string
	// Stage of the record.
	Stage string
	// State of the record.
	State string
	// Reason in words; it does not matter in a standing before.
	Reason string
}

// Decision is one decision of the operator.
type Decision struct {
	// Kind of the decision.
	Kind Kind
	// Commit it is about, such as main@sha1:9f3c..., where that is known.
	Commit string
	// Revision is the digest it is about.
	Revision string
	// Stage it is about; "" for none.
	Stage string
	// Cluster it is about; "" for a decision about a stage or the whole rollout.
	Cluster string
	// Count is, in a decision about a stage, how many of its clusters it holds for by now.
	Count int
	// From and To are the states before and after.
	From, To string
	// Reason in words.
	Reason string
}

// Clusters returns the decisions about each cluster whose standing changed, by name. Both
// lists are sorted by cluster and name each once. A record that is dropped is no decision.
func Clusters(before, after []Standing) []Decision {
	var out []Decision
	i := 0
	for _, now := range after {
		for i < len(before) && before[i].Cluster < now.Cluster {
			i++
		}
		was := Standing{State: waiting}
		if i < len(before) && before[i].Cluster == now.Cluster {
			was = before[i]
		}
		if was.State == admitted && was.Revision == now.Revision && (now.State == soaking || now.State == done) {
			// Its works were written and verified between two looks: two decisions.
			between := now
			between.State, between.Reason = updating, ""
			out, was = appendDecision(out, was, between), between
		}
		out = appendDecision(out, was, now)
	}
	return out
}

// appendDecision appends the decision between two standings of a cluster, if there is one.
func appendDecision(all []Decision, was, now Standing) []Decision {
	kind := kindOf(was, now)
	if kind == "" {
		return all
	}
	return append(all, Decision{
		Kind: kind, Revision: now.Revision, Stage: now.Stage, Cluster: now.Cluster,
		From: was.State, To: now.State, Reason: now.Reason,
	})
}

// kindOf is the decision between two standings of a cluster; "" for none.
//
//	to          from                                   decision
//	Admitted    any other, or another revision         Admitted
//	the same    the same, at another revision          Kept
//	Updating    Admitted                               Moved
//	            Soaking, Done                          SoakReset
//	            Failed, TimedOut                       Recovered
//	            Lost, Parked, Left, LeftFailed         Returned
//	            no record                              Adopted
//	Soaking     Lost, Parked, Left, LeftFailed         Returned
//	            any other                              Verified
//	Done        Soaking                                Soaked
//	            no record                              none: nothing was to be done
//	            any other                              Verified
//	Failed      LeftFailed                             Returned
//	            any other                              Failed
//	TimedOut, Lost, Parked, Left, LeftFailed           as the state
func kindOf(was, now Standing) Kind {
	moved := was.Revision != now.Revision && was.State != waiting
	switch {
	case was.State == now.State && !moved:
		return ""
	case now.State == admitted:
		return Admitted
	case was.State == now.State:
		return Kept
	}
	switch now.State {
	case updating:
		return toUpdating(was.State)
	case soaking:
		if away(was.State) {
			return Returned
		}
		return Verified
	case done:
		switch was.State {
		case soaking:
			return Soaked
		case waiting:
			return ""
		}
		return Verified
	case failed:
		if was.State == leftFailed {
			return Returned
		}
		return Failed
	case timedOut:
		return TimedOut
	case lost:
		return Lost
	case parked:
		return Parked
	case left, leftFailed:
		return Left
	}
	return ""
}

// toUpdating is the decision that makes a cluster Updating.
func toUpdating(from string) Kind {
	switch from {
	case soaking, done:
		return SoakReset
	case failed, timedOut:
		return Recovered
	case lost, parked, left, leftFailed:
		return Returned
	case waiting:
		return Adopted
	}
	return Moved
}

// away tells whether a cluster in the state is not there to be judged.
func away(state string) bool {
	return state == lost || state == parked || state == left || state == leftFailed
}

// fits tells whether a decision holds for a cluster in a state; of Returned, whether the
// cluster is still away, since what is counted is how many are.
func (k Kind) fits(state string) bool {
	switch k {
	case Admitted, Adopted, Kept:
		return true
	case Moved:
		return state != admitted
	case Verified:
		return state == soaking || state == done
	case Soaked:
		return state == done
	case Failed:
		return state == failed || state == leftFailed
	case TimedOut:
		return state == timedOut
	case Lost:
		return state == lost
	case Parked:
		return state == parked
	case Left:
		return state == left || state == leftFailed
	case Returned:
		return away(state)
	case SoakReset, Recovered:
		return state == updating
	default:
		return false // not of a state of a record
	}
}

// exceptional tells whether the clusters of a decision are named with their reasons.
func (k Kind) exceptional() bool {
	switch k {
	case Admitted, Kept, Moved, Verified, Soaked:
		return false
	default:
		return true
	}
}

// step is what decisions are put together by.
type step struct {
	kind            Kind
	stage, revision string
}

// Steps returns the decisions about stages that follow from those about clusters: one for
// each kind, stage and revision, where the number of clusters that it holds for passed a
// power of two, or came to the size of the stage or to none. So a stage of n clusters has
// at most about log2(n) decisions of a kind on its way.
//
// sizes are the number of clusters of each stage.
func Steps(clusters []Decision, before, after []Standing, sizes map[string]int) []Decision {
	groups := map[step][]Decision{}
	var order []step
	for _, d := range clusters {
		s := step{d.Kind, d.Stage, d.Revision}
		if groups[s] == nil {
			order = append(order, s)
		}
		groups[s] = append(groups[s], d)
	}
	slices.SortFunc(order, func(a, b step) int {
		return cmp.Or(strings.Compare(a.stage, b.stage), cmp.Compare(rank(a.kind), rank(b.kind)), strings.Compare(a.revision, b.revision))
	})
	var out []Decision
	for _, s := range order {
		was, is := s.count(before), s.count(after)
		if s.kind == Removed || s.kind == Repaired { // no state of a record
			was, is = 0, len(groups[s])
		}
		if magnitude(was) == magnitude(is) && is != sizes[s.stage] {
			continue
		}
		first := groups[s][0]
		out = append(out, Decision{
			Kind: s.kind, Revision: s.revision, Stage: s.stage, Count: is,
			From: first.From, To: first.To, Reason: s.reason(groups[s]),
		})
	}
	return out
}

// count is the number of clusters that the step's decision holds for.
func (s step) count(standings []Standing) int {
	n := 0
	for i := range standings {
		c := &standings[i]
		if c.Stage == s.stage && c.Revision == s.revision && s.kind.fits(c.State) {
			n++
		}
	}
	return n
}

// magnitude is the number of binary digits of n.
func magnitude(n int) int {
	digits := 0
	for ; n > 0; n >>= 1 {
		digits++
	}
	return digits
}

// rank orders the kinds of one stage as a cluster goes through them.
func rank(k Kind) int {
	return slices.Index([]Kind{
		Kept, Admitted, Adopted, Moved, Returned, Recovered, SoakReset, Verified, Soaked, Lost, Parked, Left, TimedOut, Failed, Repaired, Removed,
	}, k)
}
