package rollouttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/rollout"
)

// leavers (S8, S9): only what is ours leaves, nobody while a placement cannot be
// relied upon, nobody before it was away for a grace period, and no more than the budget
// within one. An approval lifts the last two.
func (v *Invariants) leavers(in rollout.Input, plan rollout.Plan) error {
	fresh, approved := 0, approves(in)
	for _, a := range plan.Actions {
		if a.Kind != rollout.Remove {
			continue
		}
		if err := v.mayLeave(in, a.Cluster, approved); err != nil {
			return err
		}
		if at, ok := v.removed[a.Cluster]; !ok || !in.Now.Before(at.Add(in.RemovalGrace)) {
			fresh++
		}
	}
	if fresh == 0 || approved {
		return nil
	}
	recent := fresh
	for _, at := range v.removed {
		if in.Now.Before(at.Add(in.RemovalGrace)) {
			recent++
		}
	}
	if recent > max(1, v.installed*5/100) {
		return fmt.Errorf("S9: %d removed within %s of %d", recent, in.RemovalGrace, v.installed)
	}
	return nil
}

// mayLeave holds the removal of one cluster against what selects it, and since when.
func (v *Invariants) mayLeave(in rollout.Input, cluster string, approved bool) error {
	declared := in.Spec.Removal == nil
	switch {
	case declared && !approved && !v.wasAway(in, cluster):
		return fmt.Errorf("S8: %s is removed before it was away for %s", cluster, in.RemovalGrace)
	case v.naive.clusters[cluster].Installed != rollout.Ours:
		return fmt.Errorf("S8: %s is removed and is %s", cluster, v.naive.clusters[cluster].Installed)
	case declared && !v.naive.leaving(cluster):
		return fmt.Errorf("S8: %s is removed although something selects it, or may", cluster)
	}
	return nil
}

// announced: whoever is given a slot, or let go within a budget, is counted in
// Plan.Admitted, so that the ledger it is spent from was read uncached.
func (v *Invariants) announced(in rollout.Input, plan rollout.Plan) error {
	var before []string
	if r := in.Ledger.Removal; r != nil {
		before = r.Removed
	}
	for name := range v.plan {
		if plan.Admitted == 0 && v.fresh(name) {
			return fmt.Errorf("%s is admitted, and nobody is counted", name)
		}
	}
	if r := plan.Ledger.Removal; r != nil && plan.Admitted == 0 {
		for _, name := range r.Removed {
			if !slices.Contains(before, name) {
				return fmt.Errorf("%s is let go, and nobody is counted", name)
			}
		}
	}
	return nil
}

// wasAway tells whether nothing has selected a cluster for a grace period, now or when it
// was let go.
func (v *Invariants) wasAway(in rollout.Input, cluster string) bool {
	since, away := v.departed[cluster]
	return v.letGo[cluster] || away && !in.Now.Before(since.Add(in.RemovalGrace))
}

// approves tells whether the annotation names the commit that is to be approved.
func approves(in rollout.Input) bool {
	if in.Spec.Removal != nil {
		return in.ApprovedRemoval != "" && in.ApprovedRemoval == in.Spec.Removal.Commit
	}
	return in.ApprovedRemoval != "" && in.Spec.Target != nil && strings.HasSuffix(in.Spec.Target.Commit, "@sha1:"+in.ApprovedRemoval)
}
