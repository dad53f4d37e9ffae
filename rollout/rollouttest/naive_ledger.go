package rollouttest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

// readLedger reads who is admitted, by name or with a whole stage. A ledger of an empty
// status is made of what runs: whoever differs from the stable revision is in flight.
func (n *naive) readLedger() error {
	n.named, n.waves = map[string]rollout.Admission{}, map[int]rollout.Admission{}
	admissions, err := rollout.Admissions(n.in.Ledger)
	if err != nil {
		return err
	}
	for _, a := range admissions {
		if a.Cluster == "" {
			n.whole = append(n.whole, a)
		} else {
			n.named[a.Cluster] = a
		}
	}
	slices.SortFunc(n.whole, func(a, b rollout.Admission) int {
		return cmp.Or(a.AdmittedAt.Compare(b.AdmittedAt), strings.Compare(a.Revision, b.Revision), strings.Compare(a.Stage, b.Stage))
	})
	return nil
}

// rebuild admits from now, to what it runs, whoever differs from the stable revision.
// The share of RollingUpdateWithPlacement is filled before.
func (n *naive) rebuild() {
	if n.in.Previous.Target != "" || len(n.in.Ledger.Waves)+len(n.in.Ledger.Parked) > 0 {
		return
	}
	for _, name := range n.members() {
		c := n.clusters[name]
		revision := c.Running
		if revision == rollout.Mixed {
			revision = n.target()
		}
		proven := n.in.Stable != "" && c.UpToDateStable
		if revision != "" && revision != rollout.Foreign && !proven {
			n.named[name] = rollout.Admission{Cluster: name, Revision: revision, AdmittedAt: wholeSecond(n.in.Now)}
		}
	}
}

// readWaves gives the reservations of whole stages to their steps. One whose step is not
// moved as a whole any more stands for those that have its content and are not verified.
func (n *naive) readWaves() {
	n.rebuild()
	for _, w := range n.whole {
		at := slices.IndexFunc(n.steps, func(s NaiveStep) bool { return s.Name == w.Stage })
		if at >= 0 && n.steps[at].Always {
			if was, ok := n.waves[at]; !ok || was.AdmittedAt.Before(w.AdmittedAt) {
				n.waves[at] = w
			}
			continue
		}
		for _, name := range n.members() {
			_, known := n.named[name]
			if !known && (at < 0 || slices.Contains(n.steps[at].Members, name)) && n.unproven(name, w.Revision) {
				a := w
				a.Cluster = name
				n.named[name] = a
			}
		}
	}
}

// unproven tells whether a cluster has the content and is not verified.
func (n *naive) unproven(name, revision string) bool {
	c := n.clusters[name]
	return c.Running == revision && n.has(c, revision) && c.Health.State != rollout.HealthVerified
}

// admission is what holds a slot for the cluster, by name or with its whole stage; covered
// tells which.
func (n *naive) admission(name string) (a rollout.Admission, covered, ok bool) {
	if a, ok = n.named[name]; ok {
		return a, false, true
	}
	i := slices.IndexFunc(n.steps, func(s NaiveStep) bool { return slices.Contains(s.Members, name) })
	if i < 0 {
		return a, false, false
	}
	if a, ok = n.waves[i]; !ok {
		return a, false, false
	}
	a.Cluster = name
	return n.coveredBy(a, n.steps[i].Deadline)
}

// coveredBy is what a reservation of a whole stage is for one of its clusters. Its clock
// starts no sooner than the cluster came, or came back.
func (n *naive) coveredBy(a rollout.Admission, deadline time.Duration) (rollout.Admission, bool, bool) {
	c, reserved := n.clusters[a.Cluster], a.AdmittedAt
	starts := []time.Time{a.AdmittedAt, c.JoinedAt}
	if c.Reachable {
		starts = append(starts, c.ReachableSince)
	}
	a.AdmittedAt = wholeSecond(slices.MaxFunc(starts, time.Time.Compare))
	switch {
	case a.Revision != n.target():
		return a, true, n.unproven(a.Cluster, a.Revision)
	case c.UpToDate && c.Running != n.target(): // nothing changes here
		return a, false, false
	case !c.UpToDate && n.leaving(a.Cluster):
		return a, false, false
	case !c.UpToDate && n.suspended() && a.AdmittedAt.After(reserved):
		return a, false, false // it came after the reservation
	case !c.UpToDate && c.Reachable && deadline > 0 && !n.in.Now.Before(a.AdmittedAt.Add(deadline)):
		a.AdmittedAt = wholeSecond(n.in.Now) // never written to: it starts anew, by name
		return a, false, true
	}
	return a, true, true
}

// moveWhole reserves a whole step for the target: everybody at once, whoever is in flight
// or joins included. Whom an outgoing reservation covers and who stays behind gets a name.
func (n *naive) moveWhole(i int, fates map[string]Fate) {
	s := n.steps[i]
	var moving, others []string
	for _, name := range s.Members {
		f := fates[name]
		behind := f.Kind == fateWaiting || !f.ours && (f.Kind == fateFlying || f.Kind == fateFailed)
		if behind && n.clusters[name].Reachable && !n.leaving(name) {
			moving = append(moving, name)
		} else {
			others = append(others, name)
		}
	}
	if len(moving) == 0 {
		return
	}
	wave, has := n.waves[i]
	anew := !has || wave.Revision != n.target()
	if anew {
		n.waves[i] = rollout.Admission{Revision: n.target(), Stage: s.Name, AdmittedAt: wholeSecond(n.in.Now)}
		for _, name := range others {
			f := fates[name]
			f.Covered = false
			fates[name] = f
		}
	}
	for _, name := range moving {
		f := n.admitted(n.target(), false)
		f.Covered = anew
		fates[name] = f
	}
}

// reserved are the reservations of whole stages that still stand for somebody.
func (n *naive) reserved(fates map[string]Fate) []rollout.Admission {
	var found []rollout.Admission
	for i, w := range n.waves {
		if slices.ContainsFunc(n.steps[i].Members, func(name string) bool {
			return fates[name].InLedger && (fates[name].Covered || fates[name].Revision == w.Revision)
		}) {
			found = append(found, w)
		}
	}
	return found
}
