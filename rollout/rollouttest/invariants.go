package rollouttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/addonflow/addonflow/rollout"
)

// Invariants checks every plan of one rollout against what must hold whatever
// happened before. It remembers what it saw of the fleet, never what a plan claimed.
type Invariants struct {
	verified map[string]seen      // since when a cluster has been verified, unbroken
	removed  map[string]time.Time // when clusters were let go
	departed map[string]time.Time // since when, unbroken, nothing selects a cluster of ours
	letGo    map[string]bool      // who was let go and has not been selected since
	// installed is the most ManagedClusterAddOns there ever were.
	installed int
	random    *rand.Rand // orders the input for the determinism check

	// Of the input and plan being checked: the oracle, its fates before anybody is
	// admitted, who is in the ledger after the plan, by name or with a whole stage.
	forecast Forecast
	naive    *naive
	fates    map[string]Fate
	plan     map[string]ledgerEntry
}

type seen struct {
	revision string
	since    time.Time
}

type ledgerEntry = rollout.Admission

// NewInvariants returns a checker for one rollout from its beginning.
func NewInvariants() *Invariants {
	return &Invariants{verified: map[string]seen{}, removed: map[string]time.Time{}, departed: map[string]time.Time{}, letGo: map[string]bool{}, random: random(1)}
}

// random is a source of orders; which order is no secret.
func random(seed int64) *rand.Rand {
	return rand.New(rand.NewSource(seed)) //nolint:gosec // it shuffles test inputs, repeatably
}

// Check returns what the plan breaks; refused is the planner's error.
func (v *Invariants) Check(in rollout.Input, plan rollout.Plan, refused error) error {
	v.installed = max(v.installed, installed(in))
	if err := v.read(in, plan); err != nil {
		return err
	}
	checks := []error{
		v.deterministic(in, plan),
		v.spoken(in, plan),
		v.slots(),
		v.order(),
		v.soaked(in, plan),
		v.refilled(plan, refused),
		v.untouched(plan),
		v.leavers(in, plan),
		v.announced(in, plan),
	}
	if frozen := refused != nil && !errors.Is(refused, rollout.ErrUnknownDecisionGroup); !frozen {
		checks = append(checks, v.fits(in, plan))
		if in.LedgerLimit == 0 {
			checks = append(checks, v.truthful(plan), v.forecast.Agrees(plan, refused))
		}
	}
	if refused != nil && (plan.Admitted > 0 || removes(plan)) {
		checks = append(checks, fmt.Errorf("it admits or removes although it was refused: %w", refused))
	}
	return errors.Join(checks...)
}

// Stored notes what was seen by a plan that was stored; what others saw is lost with
// them. A removal counts from then on, whenever it is carried out.
func (v *Invariants) Stored(in rollout.Input, plan rollout.Plan) {
	v.watch(in)
	v.departures(in)
	if r := plan.Ledger.Removal; r != nil {
		for _, name := range r.Removed {
			if before := in.Ledger.Removal; before == nil || !slices.Contains(before.Removed, name) {
				v.removed[name], v.letGo[name] = in.Now, true
			}
		}
	}
}

// Believe takes the word of an input's ledger for what was seen before it, so that a plan
// for a moment without a history can be checked.
func (v *Invariants) Believe(in rollout.Input) error {
	n, err := newNaive(in)
	if err != nil {
		return err
	}
	for name, a := range n.named {
		if !a.VerifiedAt.IsZero() {
			v.verified[name] = seen{n.clusters[name].Running, a.VerifiedAt}
		}
	}
	r := in.Ledger.Removal
	if r == nil {
		return nil
	}
	v.installed = int(r.Total)
	for _, d := range r.Departed {
		for _, name := range d.Clusters {
			v.departed[name] = d.Since.Time
		}
	}
	for _, name := range r.Removed {
		v.removed[name], v.letGo[name] = r.WindowStart.Time, true
	}
	return nil
}

// Lost notes that the ledger is lost. What happened at a time that the clock, gone back,
// has not reached is known to nobody then.
func (v *Invariants) Lost(now time.Time) {
	maps.DeleteFunc(v.removed, func(_ string, at time.Time) bool { return at.After(now) })
	maps.DeleteFunc(v.departed, func(_ string, since time.Time) bool { return since.After(now) })
}

// departures keeps track of who has left the install set, as the stored plans saw it.
// While a placement is in motion nobody is seen to leave, but may be seen to return.
func (v *Invariants) departures(in rollout.Input) {
	n, err := newNaive(in)
	if err != nil {
		return // Check has judged a ledger that cannot be read
	}
	for _, c := range in.Clusters {
		since, before := v.departed[c.Name]
		if n.wanted(c.Name) {
			delete(v.letGo, c.Name)
		}
		switch {
		case c.Installed != rollout.Ours || n.wanted(c.Name) || in.Spec.Removal != nil:
			delete(v.departed, c.Name)
		case n.leaving(c.Name) && (!before || since.After(in.Now)): // or the clock went back
			v.departed[c.Name] = in.Now
		}
	}
}

// watch keeps track of how long each cluster has been verified for what it runs.
func (v *Invariants) watch(in rollout.Input) {
	for _, c := range in.Clusters {
		was := v.verified[c.Name]
		switch {
		case c.Health.State == rollout.HealthVerified && (was.revision != c.Running || in.Now.Before(was.since)):
			v.verified[c.Name] = seen{c.Running, in.Now} // or the clock went back
		case c.Health.State == rollout.HealthProgressing, c.Health.State == rollout.HealthFailed, was.revision != c.Running:
			delete(v.verified, c.Name)
		}
	}
}

// installed counts the ManagedClusterAddOns there are.
func installed(in rollout.Input) int {
	n := 0
	for _, c := range in.Clusters {
		if c.Installed != rollout.NotInstalled && c.Installed != "" {
			n++
		}
	}
	return n
}

// read prepares the oracle's view before the plan, and the ledger after it.
func (v *Invariants) read(in rollout.Input, plan rollout.Plan) (err error) {
	if v.forecast, err = Naive(in); err != nil {
		return err
	}
	after, err := rollout.Admissions(plan.Ledger)
	if err != nil {
		return fmt.Errorf("it wrote a ledger that cannot be read: %w", err)
	}
	v.naive, v.fates, v.plan = v.forecast.naive, v.forecast.before, map[string]ledgerEntry{}
	for _, a := range after {
		if a.Cluster != "" {
			v.plan[a.Cluster] = a
		}
	}
	for _, a := range after {
		if a.Cluster == "" {
			v.expand(a, plan)
		}
	}
	return nil
}

// expand reads a reservation of a whole stage as one of everybody in it who is in flight
// to its content without a name.
func (v *Invariants) expand(a ledgerEntry, plan rollout.Plan) {
	for _, c := range plan.Clusters {
		if _, named := v.plan[c.Name]; !named && c.Stage == a.Stage && c.Revision == a.Revision && c.State.InFlight() {
			v.plan[c.Name] = a
		}
	}
}

// fits: a ledger is never beyond its limit, but for what it held before; nobody is given
// a slot in one that is.
func (v *Invariants) fits(in rollout.Input, plan rollout.Plan) error {
	text, err := json.Marshal(plan.Ledger)
	if err != nil || len(text) <= orDefault(in.LedgerLimit) {
		return err
	}
	for name := range v.plan {
		if v.fresh(name) && !v.naive.always(name) {
			return fmt.Errorf("%s was admitted to a ledger of %d bytes", name, len(text))
		}
	}
	if in.LedgerLimit == 0 {
		return fmt.Errorf("the ledger has %d bytes", len(text))
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

// longestReason is more than any sentence of ours around a bounded one of somebody else's.
const longestReason = 400

// spoken: everything has a reason, counts add up, and no time to look again is past.
func (v *Invariants) spoken(in rollout.Input, plan rollout.Plan) error {
	for _, a := range plan.Actions {
		if a.Reason == "" {
			return fmt.Errorf("no reason to %s %s", a.Kind, a.Cluster)
		}
	}
	for _, c := range plan.Clusters {
		if c.Reason == "" || c.State == "" || strings.ContainsAny(c.Reason, "\n\t") || utf8.RuneCountInString(c.Reason) > longestReason {
			return fmt.Errorf("no state or reason for %s: %+v", c.Name, c)
		}
	}
	if c := plan.Counts; c.Total != c.Updated+c.InFlight+c.Failed+c.Parked+c.Waiting {
		return fmt.Errorf("counts do not add up: %+v", c)
	}
	if late := overdue(in); late != (plan.Overdue != "") {
		return fmt.Errorf("a removal is overdue: %t, and it says %q", late, plan.Overdue)
	}
	if !plan.RecheckAt.IsZero() && !plan.RecheckAt.After(in.Now) {
		return fmt.Errorf("to look again at %s, which is past", plan.RecheckAt)
	}
	if plan.Message == "" || plan.Phase == "" {
		return fmt.Errorf("no phase or message: %q %q", plan.Phase, plan.Message)
	}
	return nil
}

// overdue tells whether a deletion should have been over by now.
func overdue(in rollout.Input) bool {
	return slices.ContainsFunc(in.Clusters, func(c rollout.Cluster) bool {
		return c.Installed == rollout.Deleting && !c.Departure.OverdueAt.IsZero() && !in.Now.Before(c.Departure.OverdueAt)
	})
}

// fresh tells whether the plan spends a slot on the cluster: it held none before, or
// failed in one and is given another chance.
func (v *Invariants) fresh(name string) bool {
	e, held := v.plan[name]
	if !held || e.Parked {
		return false
	}
	before := v.fates[name]
	return !before.InLedger || before.Kind == fateFailed && e.Revision != before.Revision
}

// slots (S1, S18): a slot is given only while the clusters in flight, at whatever
// revision, are below the limit; nobody is admitted while nobody may be, unreachable, or
// in no step.
func (v *Invariants) slots() error {
	for name := range v.plan {
		s, staged := v.naive.stepOf(name)
		switch {
		case !v.fresh(name):
			continue
		case v.naive.stopped():
			return fmt.Errorf("S18: %s was admitted while nobody is", name)
		case !v.naive.clusters[name].Reachable:
			return fmt.Errorf("S1: %s was admitted while not available", name)
		case !staged:
			return fmt.Errorf("S1: %s was admitted in no step", name)
		}
		if flying := v.flying(s); !s.Always && flying > s.Limit {
			return fmt.Errorf("S1: %s was admitted in %s with %d in flight of %d", name, s.Name, flying, s.Limit)
		}
	}
	return nil
}

// flying counts the slots of a step that are taken after the plan.
func (v *Invariants) flying(s NaiveStep) int {
	n := 0
	for _, name := range s.Members {
		e, held := v.plan[name]
		if held && !e.Parked && (v.fresh(name) || v.fates[name].Kind != fateFailed) {
			n++
		}
	}
	return n
}

// order (S4, S5): whoever gets the target now is in a step whose predecessors are
// complete for it, and whose failure budget is not spent.
func (v *Invariants) order() error {
	for i, s := range v.naive.steps {
		for _, name := range s.Members {
			e, ok := v.plan[name]
			moved := v.fresh(name) || v.fates[name].Kind == fateFlying && e.Revision != v.fates[name].Revision
			if !ok || !moved || e.Revision != v.naive.target() || e.Joining {
				continue
			}
			if j, ahead := v.ahead(name, s); ahead {
				return fmt.Errorf("S4: %s got the target in %s while %s is not complete", name, s.Name, v.naive.steps[j].Name)
			}
			if n := v.naive.failures(i, v.fates); n > s.MaxFailures && !s.Always {
				return fmt.Errorf("S5: %s got the target in %s with %d failed of %d allowed", name, s.Name, n, s.MaxFailures)
			}
			if s.Held {
				return fmt.Errorf("S18: %s got the target in %s, which is held", name, s.Name)
			}
		}
	}
	return nil
}

// ahead finds a step that the cluster, which got the target in s, was to wait for. Who is
// in flight at what is taken back waits for none.
func (v *Invariants) ahead(name string, s NaiveStep) (int, bool) {
	if v.naive.provenTarget() && v.fates[name].Kind == fateFlying {
		return 0, false
	}
	for _, j := range s.Before {
		if !v.naive.completed(j, v.fates) {
			return j, true
		}
	}
	return 0, false
}

// refilled (L3): no slot stays free while somebody who may have it waits.
func (v *Invariants) refilled(plan rollout.Plan, refused error) error {
	if v.naive.stopped() || refused != nil || v.naive.in.LedgerLimit != 0 {
		return nil //nolint:nilerr // a refused plan fills no slot, and Check has judged it
	}
	for i, s := range v.naive.steps {
		flying, idle := v.occupied(s, plan)
		if idle != "" && flying < s.Limit && v.open(i) {
			return fmt.Errorf("L3: %s waits in %s with %d in flight of %d", idle, s.Name, flying, s.Limit)
		}
	}
	return nil
}

// open tells whether step i may admit somebody to the target.
func (v *Invariants) open(i int) bool {
	s := v.naive.steps[i]
	for _, j := range s.Before {
		if !v.naive.completed(j, v.fates) {
			return false
		}
	}
	return !s.Held && (s.Always || v.naive.failures(i, v.fates) <= s.MaxFailures) && !v.naive.abandoned(i, v.fates)
}

// occupied counts the slots of a step that the plan leaves taken, and finds somebody
// who waits for one.
func (v *Invariants) occupied(s NaiveStep, plan rollout.Plan) (flying int, idle string) {
	for _, name := range s.Members {
		c, _ := plan.Why(name)
		if _, held := v.plan[name]; held && (c.State.InFlight() || c.State == rollout.Removing) {
			flying++
		}
		if c.State == rollout.Waiting && v.naive.class(name, v.fates[name]) != "" {
			idle = name
		}
	}
	return flying, idle
}

// soaked (S6, S15): a cluster leaves the ledger for the target only when it was seen
// verified for that content for the whole soak.
func (v *Invariants) soaked(in rollout.Input, plan rollout.Plan) error {
	for _, s := range v.naive.steps {
		for _, name := range s.Members {
			s := v.naive.admittedIn(name, s)
			c := v.naive.clusters[name]
			_, still := v.plan[name]
			done, _ := plan.Why(name)
			if !v.forecast.admitted[name] || still || done.State != rollout.Succeeded || v.naive.provenOn(c) {
				continue
			}
			was, ok := v.verified[name]
			if s.Soak == 0 && c.Health.State == rollout.HealthVerified {
				continue
			}
			if !ok || was.revision != c.Running || in.Now.Before(was.since.Add(s.Soak)) {
				return fmt.Errorf("S6: %s succeeded at %s, verified since %v, soak %s", name, c.Running, was, s.Soak)
			}
		}
	}
	return nil
}

// untouched (S3, S11): works are written only in the install set, what was admitted is
// what is written, and joiners start at the stable revision.
func (v *Invariants) untouched(plan rollout.Plan) error {
	members := v.naive.members()
	for _, a := range plan.Actions {
		if a.Kind == rollout.Remove {
			continue
		}
		e, ok := v.plan[a.Cluster]
		c := v.naive.clusters[a.Cluster]
		if !slices.Contains(members, a.Cluster) {
			return fmt.Errorf("S3: %s is outside the install set and gets %s", a.Cluster, a.Kind)
		}
		if v.naive.suspended() && a.Kind == rollout.Install {
			return fmt.Errorf("S18: %s is installed while suspended", a.Cluster)
		}
		if a.Kind == rollout.Move && !ok {
			return fmt.Errorf("S1: %s gets %s and holds no slot", a.Cluster, a.Revision)
		}
		if a.Kind == rollout.Install && c.Installed != rollout.NotInstalled && c.Installed != "" {
			return fmt.Errorf("%s is installed already", a.Cluster)
		}
		if a.Kind == rollout.Move && e.Revision != a.Revision {
			return fmt.Errorf("S11: %s was admitted to %s and gets %s", a.Cluster, e.Revision, a.Revision)
		}
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
