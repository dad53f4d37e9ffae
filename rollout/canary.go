package rollout

import (
	"bytes"
	"crypto/sha256"
)

// The pace under --default-canary of an add-on that declares no pace.
const (
	// defaultCanary is the name of the first step.
	defaultCanary = "canary"
	// othersAtATime is the percentage of the other clusters that are moved at a time.
	othersAtATime = 10
)

// paceless reports whether the operator gives the rollout a canary. A first install has no older
// content to protect.
func (p *planner) paceless() bool {
	return p.spec.Install != nil && p.spec.Install.DefaultCanary && p.protects(defaultCanary)
}

// canaryFirst returns the track of one cluster and then the others. A revert has no canary, because the canary would
// move before the clusters that failed.
func (p *planner) canaryFirst() *track {
	t := &track{}
	if !p.revert {
		t.steps = append(t.steps, (&step{name: defaultCanary, members: p.canary(), concurrency: quantity{n: 1}}).own())
	}
	rest := &step{name: theRest, members: p.members(nil), concurrency: quantity{n: othersAtATime, percent: true}}
	t.steps = append(t.steps, rest.own())
	for _, s := range t.steps {
		s.deadline = stageDeadline
		s.distrust(p.untrusted(p.install))
	}
	return t
}

// canary returns the clusters that get the target first. Clusters that were admitted as the canary, or adopted while
// no step selected them, are the canary. If one of them is Done but no longer a member, no other canary is needed.
// Without such clusters, the canary is one cluster: of the available clusters that the target changes, if there are
// any, the first by the hash of its name.
func (p *planner) canary() []*unit {
	var admitted []*unit
	proven := false
	for u := range p.recorded() {
		if r := u.record; r.Revision == p.target && (r.Stage == defaultCanary || r.Stage == "") {
			proven = proven || r.State == Done
			if u.member {
				admitted = append(admitted, u)
			}
		}
	}
	if proven || len(admitted) > 0 {
		return admitted
	}
	var first *unit
	for _, u := range p.members(nil) {
		if first == nil || p.precedes(u, first) {
			first = u
		}
	}
	if first == nil {
		return nil
	}
	return []*unit{first}
}

// precedes reports whether u is preferred to other as the canary.
func (p *planner) precedes(u, other *unit) bool {
	if a, b := p.suits(u), p.suits(other); a != b {
		return a > b
	}
	x, y := sha256.Sum256([]byte(u.c.Name)), sha256.Sum256([]byte(other.c.Name))
	return bytes.Compare(x[:], y[:]) < 0
}

// suits ranks how soon a cluster can prove the target: never, later or now.
func (p *planner) suits(u *unit) int {
	joins := u.c.Running == "" || u.record.InFlight() && u.record.Revision == p.stable
	switch {
	case u.c.UpToDate:
		return 0
	case !u.c.Reachable || u.held || u.c.Waits != "" || joins:
		return 1
	}
	return 2
}
