package journal

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
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
	// SoakReset: the cluster was verified, and its soak starts again.
	SoakReset Kind = "SoakReset"
	// Soaked: the soak ended.
	Soaked Kind = "Soaked"
	// Failed: the cluster failed with this content.
	Failed Kind = "Failed"
	// TimedOut: the cluster is past its deadline.
	TimedOut Kind = "TimedOut"
	// Recovered: the feedback proves the content on a cluster that had failed or timed out.
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
	// Repaired: a work that differed from the cluster's revision, or was missing, is written again. The cluster had that
	// revision before, so no stage moves.
	Repaired Kind = "Repaired"
)

// Decisions about stages and the whole rollout.
const (
	// Started: there is a new target.
	Started Kind = "Started"
	// Reverted: there is a new target whose content succeeded in this rollout before.
	Reverted Kind = "Reverted"
	// RollbackStarted: the clusters move back from content that Git declares.
	RollbackStarted Kind = "RollbackStarted"
	// RolledBack: every cluster is back at the earlier content.
	RolledBack Kind = "RolledBack"
	// Superseded: the target was replaced before its rollout ended.
	Superseded Kind = "Superseded"
	// StageStarted: the first cluster of the stage was admitted.
	StageStarted Kind = "StageStarted"
	// StageHeld: something other than the stage before it holds the stage.
	StageHeld Kind = "StageHeld"
	// StageCompleted: every cluster of the stage is decided.
	StageCompleted Kind = "StageCompleted"
	// GateWaits: the stage waits for the verdict of a gate.
	GateWaits Kind = "GateWaits"
	// GatePassed: the gate lets the stage continue.
	GatePassed Kind = "GatePassed"
	// GateFailed: the gate does not let the stage continue.
	GateFailed Kind = "GateFailed"
	// GateError: the gate could not be evaluated.
	GateError Kind = "GateError"
	// GateRemoved: the policy no longer has a gate that had failed, and its verdict is gone.
	GateRemoved Kind = "GateRemoved"
	// Halted: the failure budget of the stage is spent, or the whole rollout failed.
	Halted Kind = "Halted"
	// Held: the rollout waits for something that does not pass by itself.
	Held Kind = "Held"
	// Suspended: the rollout was suspended.
	Suspended Kind = "Suspended"
	// Resumed: the rollout continues after it was halted, held or suspended.
	Resumed Kind = "Resumed"
	// Succeeded: the rollout succeeded.
	Succeeded Kind = "Succeeded"
	// RemovalStarted: the add-on is being taken off the fleet.
	RemovalStarted Kind = "RemovalStarted"
	// RemovalEnded: no cluster has the add-on any more.
	RemovalEnded Kind = "RemovalEnded"
	// Ordered: a user gave an order, and it took effect.
	Ordered Kind = "Ordered"
	// WriteLost: another writer was first; the rest of the plan was dropped.
	WriteLost Kind = "WriteLost"
	// WriteRefused: the hub refused a write beside the status, which is tried again.
	WriteRefused Kind = "WriteRefused"
	// ClockStepped: the operator's clock was set; the ledger's times were moved by the same amount.
	ClockStepped Kind = "ClockStepped"
)

// Standing is the state of one cluster: its record, and the reason from the plan.
type Standing struct {
	// Cluster by name.
	Cluster string
	// Revision is the digest of the content that the record is about.
	Revision string
	// Stage of the record.
	Stage string
	// State of the record, and since when; Waiting without one.
	State v1alpha1.ClusterState
	Since time.Time
	// Reason in words. The reason of the earlier standing is not read.
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
	// Count, in a decision about a stage, is the number of its clusters that the decision is about so far.
	Count int
	// From and To are the states before and after.
	From, To string
	// Reason in words.
	Reason string
	// Continues: the decision adds to repairs of its stage that have begun. The journal counts it, and the log lists
	// its clusters at level debug.
	Continues bool
}

// Clusters returns the decisions about each cluster whose standing changed, by name. Both lists are sorted by cluster
// and have each cluster at most once. If a record was dropped, Clusters returns no decision about its cluster.
func Clusters(before, after []Standing) []Decision {
	var out []Decision
	i := 0
	for _, now := range after {
		for i < len(before) && before[i].Cluster < now.Cluster {
			i++
		}
		was := Standing{State: v1alpha1.ClusterWaiting}
		if i < len(before) && before[i].Cluster == now.Cluster {
			was = before[i]
		}
		proven := now.State == v1alpha1.ClusterSoaking || now.State == v1alpha1.ClusterDone
		if was.State == v1alpha1.ClusterAdmitted && was.Revision == now.Revision && proven {
			// Its works were written and verified between two looks: two decisions.
			between := now
			between.State, between.Reason = v1alpha1.ClusterUpdating, ""
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
		From: string(was.State), To: string(now.State), Reason: now.Reason,
	})
}

// kindOf is the decision between two standings of a cluster; "" for none.
//
//	to          from                                   decision
//	Admitted    Updating at the same revision          none: the works are to be written anew
//	            Soaking, Lost at the same revision     SoakReset, Returned
//	            Done at the same revision              Repaired
//	            any other, or another revision         Admitted
//	the same    the same, at another revision          Kept
//	            Soaking, since later                   SoakReset
//	Updating    Admitted, NotWritten                   Moved
//	            Soaking                                SoakReset
//	            Lost, Parked, Left, LeftFailed         Returned
//	            no record                              Adopted
//	Soaking     Lost, Parked, Left, LeftFailed         Returned
//	            Failed, TimedOut                       Recovered
//	            any other                              Verified
//	Done        Soaking                                Soaked
//	            Failed, TimedOut                       Recovered
//	            no record                              none: nothing was to be done
//	            any other                              Verified
//	Failed      LeftFailed                             Returned
//	            any other                              Failed
//	NotWritten                                         Failed
//	TimedOut, Lost, Parked, Left, LeftFailed           as the state
func kindOf(was, now Standing) Kind {
	moved := was.Revision != now.Revision && was.State != v1alpha1.ClusterWaiting
	switch {
	case now.State == v1alpha1.ClusterAdmitted && was.State == v1alpha1.ClusterDone && !moved:
		return Repaired
	case now.State == v1alpha1.ClusterAdmitted && (moved || !was.State.InFlight()):
		return Admitted
	case was.State == now.State && moved:
		return Kept
	case was.State == now.State && now.State == v1alpha1.ClusterSoaking && now.Since.After(was.Since):
		return SoakReset
	case was.State == now.State:
		return ""
	}
	switch now.State {
	case v1alpha1.ClusterAdmitted, v1alpha1.ClusterUpdating:
		return unproven(was.State, now.State)
	case v1alpha1.ClusterSoaking, v1alpha1.ClusterDone:
		return verified(was.State, now.State)
	case v1alpha1.ClusterFailed, v1alpha1.ClusterNotWritten:
		if was.State == v1alpha1.ClusterLeftFailed {
			return Returned
		}
		return Failed
	case v1alpha1.ClusterTimedOut:
		return TimedOut
	case v1alpha1.ClusterLost:
		return Lost
	case v1alpha1.ClusterParked:
		return Parked
	case v1alpha1.ClusterLeft, v1alpha1.ClusterLeftFailed:
		return Left
	default: // not of a record
		return ""
	}
}

// unproven is the decision that makes a cluster Updating, or Admitted without an admission.
func unproven(from, to v1alpha1.ClusterState) Kind {
	switch {
	case from == v1alpha1.ClusterSoaking:
		return SoakReset
	case away(from):
		return Returned
	case to == v1alpha1.ClusterAdmitted:
		return ""
	case from == v1alpha1.ClusterWaiting:
		return Adopted
	}
	return Moved
}

// verified is the decision that makes a cluster Soaking or Done.
func verified(from, to v1alpha1.ClusterState) Kind {
	switch {
	case from == v1alpha1.ClusterSoaking:
		return Soaked
	case from == v1alpha1.ClusterFailed || from == v1alpha1.ClusterTimedOut:
		return Recovered
	case to == v1alpha1.ClusterSoaking && away(from):
		return Returned
	case to == v1alpha1.ClusterDone && from == v1alpha1.ClusterWaiting:
		return ""
	}
	return Verified
}

// away reports whether the state is that of a cluster that is not available or has left.
func away(s v1alpha1.ClusterState) bool {
	return s == v1alpha1.ClusterLost || s == v1alpha1.ClusterParked || s == v1alpha1.ClusterLeft || s == v1alpha1.ClusterLeftFailed
}

// fits reports whether a decision holds for a cluster in a state. For Returned it reports whether the cluster is
// still away, because that decision counts the clusters that have not returned. For Repaired it reports whether the
// cluster may be under repair, because no record shows a repair.
func (k Kind) fits(s v1alpha1.ClusterState) bool {
	switch k {
	case Admitted, Adopted, Kept:
		return true
	case Moved:
		return s != v1alpha1.ClusterAdmitted
	case Verified, Recovered:
		return s == v1alpha1.ClusterSoaking || s == v1alpha1.ClusterDone
	case Soaked:
		return s == v1alpha1.ClusterDone
	case Failed:
		return s == v1alpha1.ClusterFailed || s == v1alpha1.ClusterNotWritten || s == v1alpha1.ClusterLeftFailed
	case TimedOut:
		return s == v1alpha1.ClusterTimedOut
	case Lost:
		return s == v1alpha1.ClusterLost
	case Parked:
		return s == v1alpha1.ClusterParked
	case Left:
		return s == v1alpha1.ClusterLeft || s == v1alpha1.ClusterLeftFailed
	case Returned:
		return away(s)
	case Repaired:
		return s.InFlight()
	default:
		return false // not of a state of a record
	}
}

// exceptional reports whether a decision names its clusters with their reasons.
func (k Kind) exceptional() bool {
	switch k {
	case Admitted, Kept, Moved, Verified, Soaked:
		return false
	default:
		return true
	}
}

// step is the key by which decisions about clusters are grouped.
type step struct {
	kind            Kind
	stage, revision string
}

// Steps returns the decisions about stages that follow from the decisions about clusters. A step has one kind, stage
// and revision. It becomes a decision if the number of its clusters passed a power of two, or reached the size of the
// stage or 0. A stage of n clusters therefore has at most about log2(n) decisions of a kind.
//
// sizes are the numbers of clusters of the stages while the target is rolled out; nil afterwards. If sizes is nil, a
// decision after an admission or a repair is about its cluster only, not about the stage.
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
		if sizes == nil && (s.kind == Moved || s.kind == Verified || s.kind == Soaked) {
			continue
		}
		was, is := s.count(before), s.count(after)
		continues := s.kind == Repaired && is > 0 && magnitude(was) == magnitude(is)
		if s.kind == Removed || s.kind == Repaired || s.kind == SoakReset { // no state of a record
			was, is = 0, len(groups[s])
		}
		if magnitude(was) == magnitude(is) && is != sizes[s.stage] {
			continue
		}
		first := groups[s][0]
		out = append(out, Decision{
			Kind: s.kind, Revision: s.revision, Stage: s.stage, Count: is,
			From: first.From, To: first.To, Reason: s.reason(groups[s]), Continues: continues,
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
func magnitude(n int) int { return bits.Len(uint(n)) }

// rank orders the kinds of one stage: what was seen of its clusters, and what follows from that.
func rank(k Kind) int {
	return slices.Index([]Kind{
		Kept, Adopted, Moved, Returned, Recovered, SoakReset, Verified, Soaked, Lost, Parked, Left, TimedOut, Failed, Repaired, Removed,
		GateRemoved, GatePassed, GateWaits, GateFailed, GateError, Resumed, StageStarted, Admitted, StageHeld, StageCompleted, Halted,
	}, k)
}
