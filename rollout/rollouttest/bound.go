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
	n.bound, n.home = map[string]int{}, map[string]int{}
	for name, a := range n.named {
		_, staged := n.stepOf(name)
		at := n.stepOfAdmission(a, staged && slices.Contains(members, name))
		switch {
		case at < 0 || a.Joining || a.Revision != n.target() || n.lapsed(a):
		case slices.Contains(members, name):
			n.bound[name], n.home[name] = at, n.moveTo(name, at)
		default:
			n.gone = append(n.gone, name)
			if !n.needsProof() {
				continue
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

// moveTo makes a step, or none, that of the cluster, and returns the one it was of.
func (n *naive) moveTo(name string, to int) (from int) {
	from = -1
	for i := range n.steps {
		if at := slices.Index(n.steps[i].Members, name); at >= 0 {
			from = i
			n.steps[i].Members = slices.Delete(n.steps[i].Members, at, at+1)
		}
	}
	if to >= 0 {
		n.steps[to].Members = append(n.steps[to].Members, name)
		slices.Sort(n.steps[to].Members)
	}
	return from
}

// unbind brings whoever is done where its placements have it.
func (n *naive) unbind(fates map[string]Fate) {
	for name, home := range n.home {
		if !fates[name].InLedger {
			n.moveTo(name, home)
			fates[name] = n.without(n.clusters[name])
		}
	}
}

// admittedIn is the step whose pace the cluster has, or had until it was done.
func (n *naive) admittedIn(name string, s NaiveStep) NaiveStep {
	if at, bound := n.bound[name]; bound {
		return n.steps[at]
	}
	return s
}

// lapsed tells whether a parked cluster is back, and is admitted anew.
func (n *naive) lapsed(a rollout.Admission) bool {
	c, there := n.clusters[a.Cluster]
	if !there || !slices.Contains(n.members(), a.Cluster) || a.Failed && n.leaving(a.Cluster) {
		return false
	}
	return a.Parked && c.Reachable && c.Blocked == "" && !n.has(c, a.Revision) && !c.UpToDate
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
	if n.steps[i].Always || !n.needsProof() {
		return false
	}
	done, _, _, flying := n.stands(i, fates)
	if staying := n.staying(i); staying > 0 {
		lost := len(n.steps[i].Vanished) - n.steps[i].failedVanished()
		many := n.steps[i].Dropped || lost > staying && lost > n.steps[i].MaxFailures
		proven := slices.ContainsFunc(n.steps[i].Members, func(name string) bool { return fates[name].Kind == fateDone && !n.leaving(name) })
		return !proven && many && lost > 0
	}
	return done+flying == 0 && n.missed(i, fates) > 0
}

// missed counts those who left a step, or are leaving and cannot be reached, undecided.
func (n *naive) missed(i int, fates map[string]Fate) int {
	missed := len(n.steps[i].Vanished) - n.steps[i].failedVanished()
	for _, name := range n.steps[i].Members {
		if f := fates[name]; n.leaving(name) && (f.Kind == fateParked || f.Kind == fateFailed && !f.ours && !n.clusters[name].Reachable) {
			missed++
		}
	}
	return missed
}

// needsProof tells whether nobody has proved the target yet.
func (n *naive) needsProof() bool { return n.in.Stable != n.target() && !n.provenTarget() }

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
