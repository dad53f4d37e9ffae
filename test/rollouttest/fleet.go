package rollouttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Ending is what becomes of content on a cluster.
type Ending int

const (
	// Healthy: verified after Behaviour.After.
	Healthy Ending = iota
	// Fails: reports a failure after Behaviour.After.
	Fails
	// Silent: never reports anything.
	Silent
	// Refused: the agent reports that it cannot apply the works, for ever.
	Refused
	// Stuck: reports that it is progressing, for ever.
	Stuck
)

// Behaviour is how a cluster takes a revision.
type Behaviour struct {
	Ending Ending
	// After is how long it takes from when the cluster has the work.
	After time.Duration
	// IllFrom and IllUntil bound a time of lost health, from when the cluster has the
	// work; zero: none.
	IllFrom, IllUntil time.Duration
	// Reason a failing cluster reports.
	Reason string
}

// Cluster is one managed cluster and what the hub has of it.
type Cluster struct {
	Name      string
	Installed rollout.Installation
	Gone      bool
	// Labels and InstallDisabled are of its ManagedCluster.
	Labels          map[string]string
	InstallDisabled bool
	// SelectedBy is what its ManagedClusterAddOn says selected it.
	SelectedBy rollout.Selection

	// Skew is how far the managed cluster's own clock is ahead of the hub's.
	Skew time.Duration

	reachable bool
	since     time.Time // when reachable last changed, by the hub's clock

	// Running is the revision of its works, Had when they were written; unseen, that
	// the cluster was away then.
	Running string
	Had     time.Time
	unseen  bool
	// Takes is the behaviour with some revisions; Otherwise with all others.
	Takes     map[string]Behaviour
	Otherwise Behaviour
	// Alike has revisions that render the same for this cluster: revision -> the one
	// it equals.
	Alike map[string]string

	// Blocked says why its works cannot be written at all, Refused why those of the target
	// cannot, Awaits what must happen before they are written, Away why the cluster cannot be
	// given any content.
	Blocked, Refused, Awaits, Away string
	// Held: its ManagedCluster holds it, until HeldUntil; zero: without end.
	Held      bool
	HeldUntil time.Time
	// Waits says why it must not be admitted.
	Waits string
	// Edited: what it gives to the rendering itself has changed since its works were written.
	Edited bool
	// Departs is what the deletion of its ManagedClusterAddOn waits for.
	Departs rollout.Departure

	// Writes counts how often its works were written, by revision.
	Writes map[string]int
	// Removals counts how often its ManagedClusterAddOn was deleted.
	Removals int
}

// Fleet is a hub with its managed clusters, and the stored status of one rollout.
type Fleet struct {
	// Policy holds everything of an Input but clusters, ledger and clock.
	Policy   rollout.Input
	Now      time.Time
	Clusters map[string]*Cluster
	// Ledger as stored.
	Ledger v1alpha1.Ledger
	// Phase of the plan that was stored last.
	Phase v1alpha1.Phase
	// Succeeded has the revisions whose rollout ended Succeeded.
	Succeeded map[string]bool
	// Shuffle, where set, gives the input in a random order.
	Shuffle *rand.Rand

	// seen is what the last input was made of; bad is since when the operator has seen an apply error or a
	// failure; endedFor the policy and target for which the stored status says Succeeded; began, the
	// revision that the fleet runs at the start.
	seen     Sight
	bad      map[string]time.Time
	endedFor string
	began    string
}

// Epoch is when every simulation starts.
func Epoch() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// Names returns n cluster names, cluster-01 and on.
func Names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-%02d", i+1)
	}
	return names
}

// NewFleet returns a fleet of reachable clusters that run the revision, "" for none,
// have our ManagedClusterAddOn if they run something, and take new content in a minute.
func NewFleet(running string, names ...string) *Fleet {
	f := &Fleet{
		Now: Epoch(), Clusters: map[string]*Cluster{}, Succeeded: map[string]bool{}, bad: map[string]time.Time{},
		Policy: rollout.Input{
			AddOn: "hello", Stable: running, ParkAfter: 10 * time.Minute, RemovalGrace: 5 * time.Minute, ApplyErrorAfter: 10 * time.Minute,
		},
	}
	if running != "" {
		f.Succeeded[running], f.began = true, running
		f.SetTarget(running)
	}
	for _, name := range names {
		f.Join(name)
		if running != "" {
			c := f.Clusters[name]
			c.Installed, c.Running, c.Had = rollout.Ours, running, f.Now.Add(-time.Hour)
		}
	}
	return f
}

// Join adds a reachable cluster without the add-on.
func (f *Fleet) Join(name string) *Cluster {
	c := &Cluster{
		Name: name, reachable: true, since: f.Now.Add(-time.Hour),
		Otherwise: Behaviour{After: time.Minute}, Takes: map[string]Behaviour{},
		Alike: map[string]string{}, Writes: map[string]int{},
	}
	f.Clusters[name] = c
	return c
}

// Lose makes clusters unreachable; Return makes them reachable again.
func (f *Fleet) Lose(names ...string) { f.setReachable(false, names) }

// Return makes clusters reachable again.
func (f *Fleet) Return(names ...string) { f.setReachable(true, names) }

func (f *Fleet) setReachable(to bool, names []string) {
	for _, name := range names {
		if c := f.Clusters[name]; c.reachable != to {
			c.reachable, c.since = to, f.Now
		}
	}
}

// SetTarget makes the revision the target, as a new commit does. No verdict is about it yet.
func (f *Fleet) SetTarget(digest string) {
	if digest != f.Target() {
		f.Policy.Gates, f.Policy.Orders, f.Policy.Aborted, f.Policy.TargetSince = nil, nil, "", f.Now
	}
	f.Policy.Spec.Target = &v1alpha1.Target{Digest: digest, Commit: "main@sha1:" + digest}
	f.Policy.TargetProven, f.Policy.Reverting, f.Policy.Returned = f.Succeeded[digest], f.Succeeded[digest], false
	f.Policy.RollingBack = false
}

// RollBack makes the revision the target, as the operator does although Git declares the other content.
func (f *Fleet) RollBack(digest string) {
	f.SetTarget(digest)
	f.Policy.RollingBack = true
}

// Order is an order of a user. It takes effect with the next plan that is stored. Each retry is a
// new attempt, for which the gates need new verdicts.
func (f *Fleet) Order(o rollout.Order) {
	f.Policy.Orders = append(slices.Clip(f.Policy.Orders), o)
	if o.Verb == v1alpha1.OrderRetry {
		f.Policy.Gates, f.Policy.Aborted = nil, ""
	}
}

// Judge is a new verdict of a gate, evaluated now.
func (f *Fleet) Judge(v rollout.Gate) {
	f.Policy.Gates = slices.DeleteFunc(slices.Clone(f.Policy.Gates), func(g rollout.Gate) bool {
		return g.Stage == v.Stage && g.Name == v.Name && g.When == v.When
	})
	v.Since = f.Now.Truncate(time.Second)
	if v.State != v1alpha1.GateError {
		v.EvaluatedAt = v.Since
	}
	f.Policy.Gates = append(f.Policy.Gates, v)
}

// Target is the digest of the target.
func (f *Fleet) Target() string {
	if f.Policy.Spec.Target == nil {
		return ""
	}
	return f.Policy.Spec.Target.Digest
}

// content is what a revision renders for the cluster.
func (c *Cluster) content(revision string) string {
	if same, ok := c.Alike[revision]; ok {
		return same
	}
	return revision
}

func (c *Cluster) behaviour(revision string) Behaviour {
	if b, ok := c.Takes[revision]; ok {
		return b
	}
	return c.Otherwise
}

// Reports reports whether the cluster reports success or failure of its content, instead of staying silent or stuck.
func (c *Cluster) Reports() bool {
	b := c.behaviour(c.Running)
	return b.Ending == Healthy || b.Ending == Fails
}

// health is what the feedback on the hub says: the last word, for a lost cluster.
func (c *Cluster) health(now time.Time) rollout.Health {
	if c.Running == "" {
		return rollout.Health{}
	}
	started := c.startedAt()
	if !c.reachable {
		if c.unseen {
			return rollout.Health{Reason: "no feedback yet"}
		}
		now = c.since
	}
	return c.behaviour(c.Running).at(now.Sub(started))
}

// startedAt is when the cluster got its works: when they were written, or when it
// came back to find them.
func (c *Cluster) startedAt() time.Time {
	if c.unseen && c.reachable {
		return c.since
	}
	return c.Had
}

func (b Behaviour) at(elapsed time.Duration) rollout.Health {
	after := max(b.After, time.Second)
	ill := b.IllUntil > 0 && elapsed >= b.IllFrom && elapsed < b.IllUntil
	switch {
	case b.Ending == Refused && elapsed > 0:
		return rollout.Health{Reason: "not applied", NotApplied: "Deployment agent: field is immutable"}
	case b.Ending == Silent || elapsed <= 0:
		return rollout.Health{Reason: "no feedback yet"}
	case b.Ending == Stuck || ill || elapsed < after:
		return rollout.Health{State: rollout.HealthProgressing, Reason: "Deployment/agent: 1 of 2 replicas ready"}
	case b.Ending == Fails:
		return rollout.Health{State: rollout.HealthFailed, Reason: orElse(b.Reason, "Deployment/agent: ProgressDeadlineExceeded")}
	}
	return rollout.Health{State: rollout.HealthVerified}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Sight is the state of the clusters at one time, as it was observed.
type Sight struct {
	at       time.Time
	clusters map[string]Cluster
}

// Look is what there is to see of the clusters now.
func (f *Fleet) Look() Sight {
	s := Sight{at: f.Now, clusters: map[string]Cluster{}}
	for name, c := range f.Clusters {
		s.clusters[name] = *c
	}
	return s
}

// Input is what the planner sees now.
func (f *Fleet) Input() rollout.Input { return f.InputFrom(f.Look()) }

// InputFrom is the input of a planner that sees an older state of the clusters. Policy and
// ledger are always up to date: they are not read from a cache.
func (f *Fleet) InputFrom(s Sight) rollout.Input {
	in := f.Policy
	f.seen = s
	in.Now, in.Ledger, in.Ended = f.Now, f.Ledger, f.endedFor == f.policyNow() || f.began != "" && f.began == f.Target()
	for _, name := range slices.Sorted(maps.Keys(s.clusters)) {
		c := s.clusters[name]
		in.Clusters = append(in.Clusters, f.observe(&c, s.at))
	}
	if f.Shuffle != nil {
		in = Shuffled(in, f.Shuffle)
	}
	return in
}

// Restart makes the operator forget since when it has seen failures and apply errors.
func (f *Fleet) Restart() { clear(f.bad) }

func (f *Fleet) observe(c *Cluster, at time.Time) rollout.Cluster {
	o := rollout.Cluster{
		Name: c.Name, Installed: c.Installed, Gone: c.Gone, Labels: c.Labels,
		InstallDisabled: c.InstallDisabled, SelectedBy: c.SelectedBy, Reachable: c.reachable, Running: c.Running,
		Health: c.health(at), Blocked: c.Blocked, Refused: c.Refused, Awaits: c.Awaits, Waits: c.Waits, Departure: c.Departs,
		Held: c.Held, HeldUntil: c.HeldUntil,
	}
	o.AvailableChanged = c.since.Add(c.Skew)
	o.Health.BadSince = f.bad[c.Name]
	if c.Away != "" {
		o.Reachable, o.Away = false, c.Away
		return o
	}
	if c.Running != "" && !c.Edited && c.Blocked == "" {
		o.UpToDate = c.Refused == "" && c.content(c.Running) == c.content(f.Target())
		o.UpToDateStable = f.Policy.Stable != "" && c.content(c.Running) == c.content(f.Policy.Stable)
		if f.Policy.Stable == f.Target() {
			o.UpToDateStable = o.UpToDate // they are one rendering
		}
	}
	return o
}

// Shuffled returns the input with clusters, placements and groups in a random order.
func Shuffled(in rollout.Input, r *rand.Rand) rollout.Input {
	in.Clusters = slices.Clone(in.Clusters)
	r.Shuffle(len(in.Clusters), func(i, j int) { in.Clusters[i], in.Clusters[j] = in.Clusters[j], in.Clusters[i] })
	in.Gates = slices.Clone(in.Gates)
	r.Shuffle(len(in.Gates), func(i, j int) { in.Gates[i], in.Gates[j] = in.Gates[j], in.Gates[i] })
	in.Placements = slices.Clone(in.Placements)
	r.Shuffle(len(in.Placements), func(i, j int) { in.Placements[i], in.Placements[j] = in.Placements[j], in.Placements[i] })
	for i := range in.Placements {
		groups := slices.Clone(in.Placements[i].Groups)
		for j := range groups {
			names := slices.Clone(groups[j].Clusters)
			r.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
			groups[j].Clusters = names
		}
		r.Shuffle(len(groups), func(a, b int) { groups[a], groups[b] = groups[b], groups[a] })
		in.Placements[i].Groups = groups
	}
	return in
}

// Store keeps the ledger of a plan and what the status says, as a successful
// compare-and-swap does.
func (f *Fleet) Store(p rollout.Plan) {
	f.Ledger, f.Policy.Rebuild, f.endedFor = p.Ledger, false, ""
	f.Policy.Orders = nil
	f.began, f.Phase = "", p.Phase
	for _, c := range p.Clusters {
		if known := f.Clusters[c.Name]; known != nil {
			known.SelectedBy = c.SelectedBy
		}
	}
	if p.Succeeded {
		f.Policy.Stable, f.Policy.TargetProven, f.Policy.Returned = f.Target(), true, true
		f.Succeeded[f.Target()] = true
	}
	if p.Phase == v1alpha1.PhaseSucceeded {
		f.endedFor = f.policyNow()
	}
	for name, c := range f.seen.clusters {
		h := c.health(f.seen.at)
		switch bad := h.NotApplied != "" || h.State == rollout.HealthFailed; {
		case !bad:
			delete(f.bad, name)
		case f.bad[name].IsZero():
			f.bad[name] = f.Now
		}
	}
}

// policyNow is target and policy as text.
func (f *Fleet) policyNow() string { return Snapshot(f.Policy.Spec) }

// LoseStatus empties the stored status, as the restore of a backup without statuses does.
func (f *Fleet) LoseStatus() {
	f.Ledger, f.Policy.Rebuild, f.Policy.Returned, f.endedFor = v1alpha1.Ledger{}, true, false, ""
	f.began = ""
}

// CarryOut does what a plan asks for, where it can be done.
func (f *Fleet) CarryOut(actions []rollout.Action) {
	for _, a := range actions {
		c := f.Clusters[a.Cluster]
		switch {
		case a.Kind == rollout.Install:
			c.Installed = rollout.Ours
		case a.Kind == rollout.Remove:
			c.Installed = rollout.Deleting
			c.Removals++
		case f.writable(c, a.Revision):
			c.Running, c.Had, c.Edited = a.Revision, f.Now, false
			c.Writes[a.Revision]++
			c.unseen = !c.reachable
		}
	}
}

// CarryOutFrom does what a plan asks for that was made with an older view: a write fails
// where the object is not the one that was seen.
func (f *Fleet) CarryOutFrom(s Sight, actions []rollout.Action) {
	f.CarryOut(slices.DeleteFunc(slices.Clone(actions), func(a rollout.Action) bool {
		seen, is := s.clusters[a.Cluster], f.Clusters[a.Cluster]
		return seen.Installed != is.Installed || seen.Running != is.Running || seen.Gone != is.Gone
	}))
}

// writable reports whether a cluster's works can be written at the revision.
func (f *Fleet) writable(c *Cluster, revision string) bool {
	missing := (f.Policy.TargetMissing != "" || c.Refused != "") && revision == f.Target()
	return c.Blocked == "" && c.Awaits == "" && c.Away == "" && !missing
}

// Collect lets every deletion finish that waits for nothing, as the hub's garbage
// collector does.
func (f *Fleet) Collect() {
	for _, c := range f.Clusters {
		if c.Installed == rollout.Deleting && c.Departs.Reason == "" {
			c.Installed, c.Running = rollout.NotInstalled, ""
		}
	}
}

// NextChange is the next time after now at which a cluster's health changes by itself;
// zero: never.
func (f *Fleet) NextChange() time.Time {
	var next time.Time
	for _, c := range f.Clusters {
		if c.Running == "" || !c.reachable {
			continue
		}
		b, from := c.behaviour(c.Running), c.startedAt()
		for _, d := range []time.Duration{time.Second, b.After, b.IllFrom, b.IllUntil} {
			if t := from.Add(d); t.After(f.Now) && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	return next
}

// Snapshot is the whole of an input or plan as text, to tell whether it changed.
func Snapshot(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// random is a source of orders; which order is no secret.
func random(seed int64) *rand.Rand {
	return rand.New(rand.NewSource(seed))
}
