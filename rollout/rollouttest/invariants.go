package rollouttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

// Invariants checks every plan of one rollout against what must hold whatever
// happened before. It remembers what it saw of the fleet, never what a plan claimed.
type Invariants struct {
	verified map[string]seen // since when a cluster has been verified, unbroken
	removed  []time.Time     // when clusters were let go
	removals map[string]bool // who was let go and is not gone yet
	// installed is the most ManagedClusterAddOns there ever were.
	installed int
	random    *rand.Rand             // orders the input for the determinism check
	fates     map[string]Fate        // before the plan
	naive     *naive                 // of the input being checked
	previous  map[string]bool        // in the ledger before the plan
	plan      map[string]ledgerEntry // in the ledger after it
}

type seen struct {
	revision string
	since    time.Time
}

type ledgerEntry = rollout.Admission

// NewInvariants returns a checker for one rollout from its beginning.
func NewInvariants() *Invariants {
	return &Invariants{verified: map[string]seen{}, removals: map[string]bool{}, random: rand.New(rand.NewSource(1))}
}

// Check returns what the plan breaks; refused is the planner's error.
func (v *Invariants) Check(in rollout.Input, plan rollout.Plan, refused error) error {
	v.watch(in)
	if err := v.read(in, plan); err != nil {
		return err
	}
	checks := []error{
		v.deterministic(in, plan),
		v.spoken(in, plan),
		v.slots(in),
		v.order(in),
		v.soaked(in, plan),
		v.untouched(in, plan),
		v.leavers(in, plan),
	}
	if refused != nil && (plan.Admitted > 0 || removes(plan)) {
		checks = append(checks, fmt.Errorf("it admits or removes although it was refused: %w", refused))
	}
	return errors.Join(checks...)
}

// Acted notes what a plan did to the fleet.
func (v *Invariants) Acted(f *Fleet, plan rollout.Plan) {
	for _, a := range plan.Actions {
		if a.Kind == rollout.Remove && !v.removals[a.Cluster] {
			v.removed = append(v.removed, f.Now)
			v.removals[a.Cluster] = true
		}
	}
}

// watch keeps track of how long each cluster has been verified for what it runs.
func (v *Invariants) watch(in rollout.Input) {
	installed := 0
	for _, c := range in.Clusters {
		was := v.verified[c.Name]
		switch {
		case c.Health.State == rollout.HealthVerified && was.revision != c.Running:
			v.verified[c.Name] = seen{c.Running, in.Now}
		case c.Health.State == rollout.HealthProgressing, c.Health.State == rollout.HealthFailed, was.revision != c.Running:
			delete(v.verified, c.Name)
		}
		if c.Installed == rollout.NotInstalled {
			delete(v.removals, c.Name)
		} else {
			installed++
		}
	}
	v.installed = max(v.installed, installed)
}

// read prepares the ledgers before and after, and the oracle's view before.
func (v *Invariants) read(in rollout.Input, plan rollout.Plan) error {
	before, err := rollout.Admissions(in.Ledger)
	if err != nil {
		return err
	}
	after, err := rollout.Admissions(plan.Ledger)
	if err != nil {
		return fmt.Errorf("it wrote a ledger that cannot be read: %w", err)
	}
	if text, err := json.Marshal(plan.Ledger); err != nil || len(text) > orDefault(in.LedgerLimit) {
		return fmt.Errorf("the ledger has %d bytes (%w)", len(text), err)
	}
	v.naive, v.fates = newNaive(in), map[string]Fate{}
	v.previous, v.plan = map[string]bool{}, map[string]ledgerEntry{}
	for _, c := range in.Clusters {
		v.fates[c.Name] = v.naive.without(c)
	}
	for _, a := range before {
		if c, ok := v.naive.clusters[a.Cluster]; ok {
			v.fates[a.Cluster] = v.naive.with(c, a)
			v.previous[a.Cluster] = true
		}
	}
	for _, a := range after {
		if a.Cluster != "" {
			v.plan[a.Cluster] = a
		}
	}
	return nil
}

func orDefault(limit int) int {
	if limit == 0 {
		return rollout.DefaultLedgerLimit
	}
	return limit
}

// deterministic: the order of the input does not matter.
func (v *Invariants) deterministic(in rollout.Input, plan rollout.Plan) error {
	again, _ := rollout.New(Shuffled(in, v.random))
	if Snapshot(plan) != Snapshot(again) {
		return fmt.Errorf("another order of the input gives another plan: %s", difference(plan, again))
	}
	return nil
}

func difference(a, b rollout.Plan) string {
	for i := range a.Clusters {
		if i < len(b.Clusters) && a.Clusters[i] != b.Clusters[i] {
			return fmt.Sprintf("%+v, %+v", a.Clusters[i], b.Clusters[i])
		}
	}
	return fmt.Sprintf("%s, %s", a.Message, b.Message)
}

// spoken: everything has a reason, counts add up, and no time to look again is past.
func (v *Invariants) spoken(in rollout.Input, plan rollout.Plan) error {
	for _, a := range plan.Actions {
		if a.Reason == "" {
			return fmt.Errorf("no reason to %s %s", a.Kind, a.Cluster)
		}
	}
	for _, c := range plan.Clusters {
		if c.Reason == "" || c.State == "" {
			return fmt.Errorf("no state or reason for %s: %+v", c.Name, c)
		}
	}
	if c := plan.Counts; c.Total != c.Updated+c.InFlight+c.Failed+c.Parked+c.Waiting {
		return fmt.Errorf("counts do not add up: %+v", c)
	}
	if !plan.RecheckAt.IsZero() && !plan.RecheckAt.After(in.Now) {
		return fmt.Errorf("to look again at %s, which is past", plan.RecheckAt)
	}
	if plan.Message == "" || plan.Phase == "" {
		return fmt.Errorf("no phase or message: %q %q", plan.Phase, plan.Message)
	}
	return nil
}

// fresh tells whether the plan spends a slot on the cluster: it held none before.
func (v *Invariants) fresh(name string) bool {
	e, ok := v.plan[name]
	if !ok || e.Parked {
		return false
	}
	return !v.previous[name] || v.fates[name].Kind == "failed" && e.Revision != v.fates[name].Revision
}

// slots (S1, S18): a slot is given only while the clusters in flight, at whatever
// revision, are below the limit; nobody is admitted while suspended, or unreachable.
func (v *Invariants) slots(in rollout.Input) error {
	for _, s := range v.naive.steps {
		flying, given := 0, ""
		for _, name := range s.Members {
			e, ok := v.plan[name]
			if v.fresh(name) {
				given = name
			}
			if ok && !e.Parked && (v.fresh(name) || v.fates[name].Kind != "failed") {
				flying++
			}
		}
		if given == "" || v.rebuilt(in) {
			continue
		}
		if !s.Always && flying > s.Limit {
			return fmt.Errorf("S1: %s was admitted in %s with %d in flight of %d", given, s.Name, flying, s.Limit)
		}
		if in.Suspended || in.Spec.Suspend {
			return fmt.Errorf("S18: %s was admitted while suspended", given)
		}
		if c := v.naive.clusters[given]; !c.Reachable {
			return fmt.Errorf("S1: %s was admitted while not available", given)
		}
	}
	return nil
}

// rebuilt tells whether the plan makes a ledger for an empty status.
func (v *Invariants) rebuilt(in rollout.Input) bool { return in.Previous.Target == "" }

// order (S4, S5): whoever gets the target now is in a step whose predecessors are
// complete for it, and whose failure budget is not spent.
func (v *Invariants) order(in rollout.Input) error {
	if v.rebuilt(in) || in.Spec.Target == nil {
		return nil
	}
	for i, s := range v.naive.steps {
		for _, name := range s.Members {
			e, ok := v.plan[name]
			moved := v.fresh(name) || v.fates[name].Kind == "flying" && e.Revision != v.fates[name].Revision
			if !ok || !moved || e.Revision != v.naive.target() || e.Joining {
				continue
			}
			for _, j := range s.Before {
				if !v.naive.completed(j, v.fates) {
					return fmt.Errorf("S4: %s got the target in %s while %s is not complete", name, s.Name, v.naive.steps[j].Name)
				}
			}
			if n := v.naive.failures(i, v.fates); n > s.MaxFailures && !s.Always {
				return fmt.Errorf("S5: %s got the target in %s with %d failed of %d allowed", name, s.Name, n, s.MaxFailures)
			}
		}
	}
	return nil
}

// soaked (S6, S15): a cluster leaves the ledger for the target only when it was seen
// verified for that content for the whole soak.
func (v *Invariants) soaked(in rollout.Input, plan rollout.Plan) error {
	for _, s := range v.naive.steps {
		for _, name := range s.Members {
			c := v.naive.clusters[name]
			_, still := v.plan[name]
			done, _ := plan.Why(name)
			if !v.previous[name] || still || done.State != rollout.Succeeded || in.TargetVerifiedBefore || c.Running == in.Stable {
				continue
			}
			was, ok := v.verified[name]
			if !ok || was.revision != c.Running || in.Now.Before(was.since.Add(s.Soak)) {
				return fmt.Errorf("S6: %s succeeded at %s, verified since %v, soak %s", name, c.Running, was, s.Soak)
			}
		}
	}
	return nil
}

// untouched (S3, S11): works are written only in the install set, what was admitted is
// what is written, and joiners start at the stable revision.
func (v *Invariants) untouched(in rollout.Input, plan rollout.Plan) error {
	members := v.naive.members()
	for _, a := range plan.Actions {
		if a.Kind == rollout.Remove {
			continue
		}
		c := v.naive.clusters[a.Cluster]
		if !slices.Contains(members, a.Cluster) {
			return fmt.Errorf("S3: %s is outside the install set and gets %s", a.Cluster, a.Kind)
		}
		if a.Kind == rollout.Install && c.Installed != rollout.NotInstalled && c.Installed != "" {
			return fmt.Errorf("%s is installed already", a.Cluster)
		}
		e, ok := v.plan[a.Cluster]
		if a.Kind == rollout.Move && ok && e.Revision != a.Revision {
			return fmt.Errorf("S11: %s was admitted to %s and gets %s", a.Cluster, e.Revision, a.Revision)
		}
	}
	return nil
}

// leavers (S8, S9): only what is ours leaves, nobody while a placement cannot be
// relied upon, and no more than the budget within a grace period.
func (v *Invariants) leavers(in rollout.Input, plan rollout.Plan) error {
	fresh := 0
	for _, a := range plan.Actions {
		if a.Kind != rollout.Remove {
			continue
		}
		if c := v.naive.clusters[a.Cluster]; c.Installed != rollout.Ours {
			return fmt.Errorf("S8: %s is removed and is %s", a.Cluster, c.Installed)
		}
		if in.Spec.Removal == nil && !v.naive.leaving(a.Cluster) {
			return fmt.Errorf("S8: %s is removed although something selects it, or may", a.Cluster)
		}
		if !v.removals[a.Cluster] {
			fresh++
		}
	}
	approved := in.Spec.Removal != nil && in.ApprovedRemoval == in.Spec.Removal.Commit
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

// Snapshot is the whole of an input or plan as text, to tell whether it changed.
func Snapshot(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
