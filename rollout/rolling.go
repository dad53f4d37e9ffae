package rollout

import (
	"fmt"
	"slices"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// rollingShare is the share in percent if RollingUpdateWithPlacement declares none.
const rollingShare = 25

// rollingUpdate is RollingUpdateWithPlacement: it moves a share of the members that the placement selects, and holds
// the rest.
//
//	40 installed, placement selects them all, 30%: 12 are moved, 28 held by strategy
//
// The share first takes clusters that run the target or are admitted to it. All members are moved on a first install,
// on a revert, or if the target is the stable revision. While no content has succeeded, clusters of the rest that
// have verified no content follow the share, because they run nothing that the strategy could protect.
func (p *planner) rollingUpdate(ru v1alpha1.RollingUpdateWithPlacement) *track {
	if !p.protects(heldShare) {
		return &track{steps: []*step{p.allAtOnce(wholeFleet, p.members(nil), clusterv1alpha1.RolloutAll{})}}
	}
	pl := p.placementOf(ru.PlacementReference)
	chosen := p.selected(nil, pl.Groups...)
	declared := quantity{n: rollingShare, percent: true}
	if ru.MaxConcurrentlyUpdating != nil {
		declared = quantityOf(*ru.MaxConcurrentlyUpdating)
	}
	size := declared.of(len(chosen))
	share := &step{name: heldShare, concurrency: quantity{n: max(1, size)}}
	rest := &step{name: theRest, concurrency: share.concurrency, byStrategy: true, hold: "held by strategy"}
	if p.revert || p.target == p.stable {
		share.members = p.members(nil)
		return &track{steps: []*step{share.own()}}
	}
	for _, u := range p.members(nil) { // its step depends on its record after this turn
		if u.record != nil {
			p.follow(u, share)
		}
	}
	share.members = p.fillShare(chosen, size)
	for _, u := range p.members(p.undecidedInShare) {
		if !slices.Contains(chosen, u) {
			u.bound, share.members = u.record.Revision == p.target, append(share.members, u)
		}
	}
	share.own()
	rest.members = p.members(nil)
	if len(chosen) == 0 {
		share.emptyHold = fmt.Sprintf("held: Placement %s/%s selects no cluster of the install set; select one, or name another placement", ru.Namespace, ru.Name)
	}
	share.distrust(pl.untrusted())
	return &track{steps: []*step{share, rest.own()}}
}

// protects reports whether the step applies: the share or the default canary, which protect the content that
// clusters run. Such a step applies unless this is a first install. A rollout that began with the step keeps
// it to the end.
func (p *planner) protects(step string) bool {
	for u := range p.recorded() {
		if u.record.Revision == p.target && u.record.Stage == step {
			return true
		}
	}
	return !p.installsFirst()
}

// unprotected reports whether the share has nothing to protect on the cluster: there is no stable revision at which
// the cluster could join, and the cluster runs nothing, the target, or content that is not verified there. Earlier
// content of the cluster does not matter, because it was overwritten.
func (p *planner) unprotected(u *unit) bool {
	r := u.record
	overwritten := r != nil && (u.c.Running == r.Revision || u.c.Running == Mixed)
	unverified := r.InFlight() || r.failed() && overwritten
	return p.stable == "" && (u.c.Running == "" || u.c.Running == p.target || unverified)
}

// undecidedInShare reports whether the cluster was admitted in the share, is not Done, and needs no new admission. It
// stays in the share even if the placement no longer selects it.
func (p *planner) undecidedInShare(u *unit) bool {
	return !p.due(u) && u.record.Stage == heldShare && u.record.State != Done
}

// fillShare chooses size clusters in this order, by name within a rank: clusters at the target, admitted to it, or
// with a slot of the share; failed clusters; clusters that can be moved now; other clusters; clusters that the target
// does not change.
func (p *planner) fillShare(chosen []*unit, size int) []*unit {
	ranks := make([][]*unit, 5)
	for _, u := range chosen {
		switch {
		case u.c.Running == p.target, u.record != nil && u.record.Revision == p.target,
			u.record.InFlight() && u.record.Stage == heldShare:
			ranks[0] = append(ranks[0], u)
		case u.c.UpToDate:
			ranks[4] = append(ranks[4], u)
		case u.held:
			ranks[3] = append(ranks[3], u)
		case u.c.Reachable && (u.record.failed() || u.c.Health.State == HealthFailed):
			ranks[1] = append(ranks[1], u)
		case u.c.Reachable && u.c.Running != "" && !u.record.InFlight():
			ranks[2] = append(ranks[2], u)
		default:
			ranks[3] = append(ranks[3], u)
		}
	}
	all := slices.Concat(ranks...)
	return all[:min(len(all), max(size, len(ranks[0])))]
}

// heldText is "12 of 40, rest held by strategy".
func heldText(updated, total int) string {
	return fmt.Sprintf("%d of %d, rest held by strategy", updated, total)
}
