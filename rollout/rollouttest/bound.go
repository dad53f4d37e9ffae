package rollouttest

import (
	"slices"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// bind gives whoever was admitted to the target the step it was admitted in, and notes
// at each step who was admitted there and is a member no more.
func (n *naive) bind() {
	members := n.members()
	for name, a := range n.named {
		_, staged := n.stepOf(name)
		at := n.stepOfAdmission(a, staged && slices.Contains(members, name))
		switch {
		case at < 0 || a.Joining || a.Revision != n.target():
		case slices.Contains(members, name):
			for i := range n.steps {
				n.steps[i].Members = slices.DeleteFunc(n.steps[i].Members, func(other string) bool { return other == name })
			}
			n.steps[at].Members = append(n.steps[at].Members, name)
		default:
			n.gone = append(n.gone, name)
			if n.in.Stable == n.target() {
				continue // the target needs no proof of theirs
			}
			if n.steps[at].Vanished == nil {
				n.steps[at].Vanished = map[string]bool{}
			}
			n.steps[at].Vanished[name] = n.failedBeforeLeaving(a, n.steps[at])
		}
	}
	for i := range n.steps {
		slices.Sort(n.steps[i].Members)
	}
}

// stepOfAdmission is the position of the step that an admission binds to: its own, or the
// first where the policy has none of that name and nothing else selects the cluster.
func (n *naive) stepOfAdmission(a rollout.Admission, staged bool) int {
	own := slices.IndexFunc(n.steps, func(s NaiveStep) bool { return s.Name == a.Stage })
	switch {
	case own >= 0 && n.steps[own].Always:
		return -1
	case own >= 0:
		return own
	case staged || a.Stage == "":
		return -1
	}
	return slices.IndexFunc(n.steps, func(s NaiveStep) bool { return !s.Always })
}

// failedBeforeLeaving tells whether a cluster that is a member no more had failed.
func (n *naive) failedBeforeLeaving(a rollout.Admission, s NaiveStep) bool {
	c, there := n.clusters[a.Cluster]
	if there && c.Blocked != "" {
		return a.Failed || a.Parked
	}
	late := s.Deadline > 0 && !a.Parked && a.VerifiedAt.IsZero() && !n.in.Now.Before(a.AdmittedAt.Add(s.Deadline))
	return a.Failed || late || there && n.has(c, a.Revision) && c.Health.State == rollout.HealthFailed
}

// failedVanished counts the failures of those that are members no more.
func (s NaiveStep) failedVanished() int {
	count := 0
	for _, failed := range s.Vanished {
		if failed {
			count++
		}
	}
	return count
}

// staying are the members of a step that are not leaving.
func (n *naive) staying(i int) int {
	count := 0
	for _, name := range n.steps[i].Members {
		if !n.leaving(name) {
			count++
		}
	}
	return count
}

// abandoned tells whether everybody who could have verified the target left the step, or
// is leaving and cannot be reached.
func (n *naive) abandoned(i int, fates map[string]Fate) bool {
	missed := len(n.steps[i].Vanished) - n.steps[i].failedVanished()
	for _, name := range n.steps[i].Members {
		if f := fates[name]; n.leaving(name) && (f.Kind == fateParked || f.Kind == fateFailed && !f.ours && !n.clusters[name].Reachable) {
			missed++
		}
	}
	done, _, _, flying := n.stands(i, fates)
	return n.staying(i) == 0 && done+flying == 0 && missed > 0
}

// ended tells whether the rollout of the target ended Succeeded before, and earned it.
func (n *naive) ended() bool {
	return n.in.Previous.Target == n.target() && n.in.Previous.Phase == v1alpha1.PhaseSucceeded && n.in.Stable == n.target()
}

// proven tells whether who is admitted to the revision need not soak.
func (n *naive) proven(revision string, joining bool) bool {
	if revision == n.in.Stable && (joining || revision != n.target()) {
		return true
	}
	return revision == n.target() && n.in.TargetVerifiedBefore && !n.ended()
}

// provenOn tells whether the cluster need not soak for what it was admitted to, or has.
func (n *naive) provenOn(c rollout.Cluster) bool {
	a := n.named[c.Name]
	return n.proven(a.Revision, a.Joining) || n.proven(c.Running, a.Joining) || c.UpToDateStable && n.in.Stable != n.target()
}
