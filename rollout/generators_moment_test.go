package rollout_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// A moment is one input in any state, also in a state that no sequence of plans leads to. Revisions are
// a, b and c; the target is c.

// ago draws a time before now, on the minute, so that several clocks can end at the same time.
func ago(t *rapid.T, label string) time.Time {
	return now().Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, label)) * time.Minute)
}

// agoOrNever is ago, or the zero time where it is not known.
func agoOrNever(t *rapid.T, label string) time.Time {
	if seldom(t, 4, label+" unknown") {
		return time.Time{}
	}
	return ago(t, label)
}

// words draws a text from another source, mostly an empty one.
func words(t *rapid.T, n int, label, text string) string {
	if !seldom(t, n, label) {
		return ""
	}
	return rapid.SampledFrom([]string{text, text + "\nover two lines"}).Draw(t, label+" text")
}

func drawCluster(t *rapid.T, in rollout.Input, name string) rollout.Cluster {
	c := rollout.Cluster{
		Name: name, Reachable: !seldom(t, 5, "away"), Gone: seldom(t, 20, "gone"),
		Installed: rapid.SampledFrom([]rollout.Installation{
			rollout.Ours, rollout.Ours, rollout.Ours, rollout.HandMade, rollout.NotInstalled, "", rollout.Deleting,
		}).Draw(t, "installed"),
		InstallDisabled: seldom(t, 10, "install disabled"),
		Running:         rapid.SampledFrom([]string{"", "a", "a", "b", "c", "c", rollout.Mixed, rollout.Foreign}).Draw(t, "running"),
		Awaits:          words(t, 8, "awaits", "its namespace is terminating"),
		Waits:           words(t, 8, "waits", "waits for add-on base to be verified"),
		Blocked:         words(t, 8, "blocked", "its hosting cluster does not exist"),
		Refused:         words(t, 8, "refused", "no value for GREETING"),
		Health: rollout.Health{
			State: rapid.SampledFrom([]rollout.HealthState{
				rollout.HealthVerified, rollout.HealthVerified, rollout.HealthProgressing, rollout.HealthFailed, rollout.HealthUnknown,
			}).Draw(t, "health"),
			Reason:     words(t, 2, "health reason", "Deployment/agent: 1 of 2 replicas ready"),
			NotApplied: words(t, 6, "not applied", "Deployment agent: field is immutable"),
		},
	}
	drawSelected(t, in, &c)
	if c.Held = seldom(t, 8, "held"); c.Held {
		c.HeldUntil = rapid.SampledFrom([]time.Time{{}, now(), now().Add(time.Hour)}).Draw(t, "held until")
		if c.HeldUntil.IsZero() {
			c.HeldFor = rapid.SampledFrom([]string{"", "tomorrow"}).Draw(t, "held for")
		}
	}
	if !c.Reachable {
		c.Away = words(t, 3, "held back", "its configuration is missing")
	}
	if c.Health.NotApplied != "" {
		c.Health.BadSince = agoOrNever(t, "not applied since")
	}
	c.AvailableChanged = agoOrNever(t, "available changed")
	drawContent(t, in, &c)
	if c.Installed == rollout.Deleting && rapid.Bool().Draw(t, "departs slowly") {
		c.Departure = rollout.Departure{Reason: "its pre-delete hook has not run", OverdueAt: ago(t, "overdue").Add(10 * time.Minute)}
	}
	return c
}

// drawSelected says what selects the cluster, and what did.
func drawSelected(t *rapid.T, in rollout.Input, c *rollout.Cluster) {
	if in.Spec.ClusterLabelSelector != nil {
		c.Labels = rapid.SampledFrom([]map[string]string{
			nil, onEdge(), onEdge(), {"site": "lab"}, {"site": "edge", "broken": "yes"},
		}).Draw(t, "labels")
		c.SelectedBy = rollout.ByLabels
	}
	if seldom(t, 4, "selected otherwise") {
		c.SelectedBy = rapid.SampledFrom([]rollout.Selection{rollout.ByPlacements, rollout.ByLabels, rollout.ByHand}).Draw(t, "selected by")
	}
}

// drawContent draws whether the works are what target and stable revision render now. Mostly the
// revision on the works decides this, but inputs of the cluster itself may have changed.
func drawContent(t *rapid.T, in rollout.Input, c *rollout.Cluster) {
	if c.Running == "" || c.Running == rollout.Mixed || c.Blocked != "" || c.Away != "" {
		return // nothing to compare, or nothing to compare it with
	}
	target := ""
	if in.Spec.Target != nil {
		target = in.Spec.Target.Digest
	}
	odd := seldom(t, 6, "renders otherwise")
	c.UpToDate = target != "" && (c.Running == target) != odd && c.Refused == ""
	odd = seldom(t, 6, "stable renders otherwise")
	c.UpToDateStable = in.Stable != "" && (c.Running == in.Stable) != odd
	if target == in.Stable {
		c.UpToDateStable = c.UpToDate
	}
}

// drawInput is a random moment of a random rollout.
func drawInput(t *rapid.T) rollout.Input {
	names := rollouttest.Names(rapid.IntRange(1, 9).Draw(t, "clusters"))
	in := rollout.Input{
		Now: now().Add(rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond}).Draw(t, "now")), AddOn: "hello",
		ParkAfter:       rapid.SampledFrom([]time.Duration{10 * time.Minute, time.Minute}).Draw(t, "park after"),
		RemovalGrace:    rapid.SampledFrom([]time.Duration{5 * time.Minute, 10 * time.Second}).Draw(t, "grace"),
		Stable:          rapid.SampledFrom([]string{"", "a", "a", "c"}).Draw(t, "stable"),
		TargetSince:     agoOrNever(t, "target since"),
		Suspended:       seldom(t, 12, "suspended"),
		Contested:       words(t, 12, "contested", "ownership conflict: add-on hello belongs to source a/b"),
		Ended:           seldom(t, 5, "ended"),
		Reverting:       rapid.Bool().Draw(t, "reverting"),
		RollingBack:     rapid.Bool().Draw(t, "rolling back"),
		Returned:        seldom(t, 5, "returned"),
		Rebuild:         seldom(t, 12, "rebuild"),
		ApplyErrorAfter: rapid.SampledFrom([]time.Duration{0, 10 * time.Minute}).Draw(t, "apply error after"),
		TargetMissing:   words(t, 10, "target missing", "AddOnRevision hello-c does not exist"),
		ApprovedRemoval: rapid.SampledFrom([]string{"", "", "c", "d"}).Draw(t, "approved"),
	}
	in.Spec.Suspend = seldom(t, 12, "suspend")
	if !seldom(t, 15, "no target") {
		in.Spec.Target = &v1alpha1.Target{Digest: "c", Commit: "main@sha1:c"}
	}
	in.TargetProven = in.Stable == "c" || seldom(t, 5, "proven")
	in.Ended = in.Ended && in.Stable == "c"
	drawPolicy(t, &in, names)
	for _, st := range in.Spec.Stages {
		for range rapid.IntRange(0, 4).Draw(t, "verdicts") {
			v := drawVerdict(t, st)
			v.Since, v.EvaluatedAt = agoOrNever(t, "since"), agoOrNever(t, "evaluated")
			v.ChangesAt = rapid.SampledFrom([]time.Time{{}, now().Add(time.Minute), now().Add(time.Hour)}).Draw(t, "changes at")
			if !slices.ContainsFunc(in.Gates, func(g rollout.Gate) bool { return g.Stage == v.Stage && g.Name == v.Name && g.When == v.When }) {
				in.Gates = append(in.Gates, v)
			}
		}
	}
	drawRemoval(t, &in)
	for _, name := range names {
		in.Clusters = append(in.Clusters, drawCluster(t, in, name))
	}
	if !in.Rebuild {
		in.Ledger = drawLedger(t, names)
	}
	if seldom(t, 10, "narrow") {
		in.LedgerLimit = rapid.SampledFrom([]int{300, 900, 1800}).Draw(t, "ledger limit")
	}
	return in
}

// drawRemoval may remove the add-on from Git, and a placement from the hub.
func drawRemoval(t *rapid.T, in *rollout.Input) {
	if seldom(t, 12, "removal") {
		in.Spec.Removal = &v1alpha1.Removal{Commit: rapid.SampledFrom([]string{"d", "e"}).Draw(t, "removed by"), Approved: rapid.Bool().Draw(t, "prune")}
	}
	if len(in.Placements) > 2 && seldom(t, 10, "not observed") {
		in.Placements = in.Placements[:2]
	}
}

// drawLedger gives records to some of the clusters, of any revision, state and time.
func drawLedger(t *rapid.T, names []string) v1alpha1.Ledger {
	var records []rollout.Record
	for _, name := range names {
		revision := rapid.SampledFrom([]string{"", "", "a", "b", "c", "c"}).Draw(t, "admitted to")
		if revision == "" {
			continue
		}
		r := rollout.Record{
			Cluster: name, Admitted: ago(t, "admitted"),
			RecordKey: v1alpha1.RecordKey{
				Revision: revision,
				Stage:    rapid.SampledFrom([]string{"of the past", "s0", "s1", "rest", "all", "group-0", "group-canary"}).Draw(t, "admitted in"),
				State: rapid.SampledFrom([]rollout.State{
					rollout.Admitted, rollout.Updating, rollout.Soaking, rollout.Done, rollout.Failed,
					rollout.TimedOut, rollout.NotWritten, rollout.Lost, rollout.Parked, rollout.Left, rollout.LeftFailed,
				}).Draw(t, "state"),
			},
		}
		switch r.State {
		case rollout.Admitted, rollout.Updating, rollout.Soaking, rollout.Lost, rollout.Parked:
			r.Failed = seldom(t, 4, "failed before")
		default:
		}
		r.Excused = r.State != rollout.Soaking && r.State != rollout.Done && seldom(t, 5, "excused")
		r.Reverted = r.State != rollout.Done && seldom(t, 5, "moved back")
		r.Reported = (r.State == rollout.Updating || r.State == rollout.Lost) && seldom(t, 5, "reported before")
		r.Since = r.Admitted.Add(time.Duration(rapid.IntRange(0, int(now().Sub(r.Admitted)/time.Minute)).Draw(t, "since")) * time.Minute)
		if r.State == rollout.Soaking && seldom(t, 5, "the cluster's clock is ahead") {
			r.Ahead = r.Since.Add(time.Hour)
		}
		records = append(records, r)
	}
	return rollouttest.LedgerOf(records...)
}
