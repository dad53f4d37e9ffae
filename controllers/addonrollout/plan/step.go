package plan

import (
	"slices"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Step is a move of a cluster to content, and the content that it ran before.
type Step struct {
	Cluster *Cluster
	// From is the content before; nil: not known. If the cluster ran the content all along, From is that content.
	From *v1alpha1.Target
}

// Steps are the moves of the clusters of a plan.
type Steps struct {
	plan *Plan
	// moved are the clusters that were admitted in the rollout of the target.
	moved map[string]bool
}

// Steps reads from the ledger which clusters were moved. The error is that of a ledger that cannot be read.
func (p *Plan) Steps() (*Steps, error) {
	status := &p.Observed.Rollout.Status
	records, err := rollout.Records(status.Ledger)
	if err != nil {
		return nil, err
	}
	s := &Steps{p, map[string]bool{}}
	for i := range records {
		r, h := &records[i], status.History
		s.moved[r.Cluster] = r.Revision == p.Observed.Target.Digest && s.begun() == 0 && !r.Admitted.Before(h[0].Started.Time)
	}
	return s, nil
}

// begun is the index of the rollout of the target in the history; -1: no turn has planned it yet.
func (s *Steps) begun() int {
	if h := s.plan.Observed.Rollout.Status.History; len(h) > 0 && h[0].Target.Digest == s.plan.Observed.Target.Digest {
		return 0
	}
	return -1
}

// ToTarget is the move of a cluster to the target.
func (s *Steps) ToTarget(c *Cluster) Step {
	o, runs := s.plan.Observed, c.Running()
	_, stored := o.StoredAs[render.RevisionName(o.Rollout.Name, runs)]
	switch {
	case runs == "":
		return Step{Cluster: c}
	case stored && (runs != o.Target.Digest || !s.moved[c.Name]):
		return Step{c, new(o.known(runs))}
	}
	return Step{c, s.before(c, o.Target.Digest, s.begun())}
}

// before is the content that a cluster probably ran before an entry of the history. It is the content of the newest
// older rollout of other content that ended, or in which the stage of the cluster began. If the history has no such
// rollout, it is the stable content.
func (s *Steps) before(c *Cluster, digest string, entry int) *v1alpha1.Target {
	status := &s.plan.Observed.Rollout.Status
	for i := entry + 1; i < len(status.History); i++ {
		h := &status.History[i]
		ended := h.Phase == v1alpha1.PhaseSucceeded || h.Phase == v1alpha1.PhaseRolledBack
		began := slices.ContainsFunc(h.Stages, func(st v1alpha1.StageTimes) bool { return st.Name == c.Planned.Stage })
		if h.Target.Digest != digest && (ended || began) {
			return &h.Target
		}
	}
	if stable := status.Stable; stable != nil && stable.Digest != digest {
		return stable
	}
	return nil
}

// ToContent is the move of one cluster to the content: of a cluster that failed with the content, otherwise of the
// first cluster that the content changes. It is the zero Step if the content is not the target and no cluster is
// known to have got it.
func (s *Steps) ToContent(content v1alpha1.Target) Step {
	var best Step
	last := 0
	for i := range s.plan.Clusters {
		c := &s.plan.Clusters[i]
		if step, rank := s.toContent(c, content.Digest); rank > last {
			best, last = step, rank
		}
	}
	return best
}

// toContent is the move of a cluster to content. rank says how well it shows the changes by the content; 0: not at
// all.
func (s *Steps) toContent(c *Cluster, digest string) (step Step, rank int) {
	o, history := s.plan.Observed, s.plan.Observed.Rollout.Status.History
	entry := slices.IndexFunc(history, func(h v1alpha1.HistoryEntry) bool { return h.Target.Digest == digest })
	failed := entry >= 0 && slices.ContainsFunc(history[entry].Failing, func(f v1alpha1.ClusterReason) bool { return f.Cluster == c.Name })
	step = s.ToTarget(c)
	already := step.From != nil && step.From.Digest == digest
	switch c.Planned.State {
	case rollout.Ignored, rollout.Removing, rollout.Gone, rollout.Left, rollout.LeftFailed, rollout.Unstaged:
		return Step{}, 0
	default:
	}
	if digest != o.Target.Digest {
		if entry < 0 || !failed && !already && c.Running() != digest {
			return Step{}, 0
		}
		step.From, already = s.before(c, digest, entry), false
	}
	switch {
	case failed:
		return step, 3
	case already:
		return step, 1
	}
	return step, 2
}
