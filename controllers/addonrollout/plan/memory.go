package plan

import (
	"crypto/sha256"
	"time"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// Memory is the state that a turn passes to the next turn of the same rollout. A new process starts with an empty
// one.
type Memory struct {
	// alike are works that OCM wrote and whose content equals the content to run, by cluster. Without it, every turn
	// would compare every work of a fleet that was taken over.
	alike map[string]Fingerprint
	// intact are works that have the content that they name, of clusters that still have to prove it. Without it,
	// every turn would render all clusters in flight.
	intact map[string]Fingerprint
	// apart are works of other add-ons, by cluster, that share no object with those of this one. Without it, every
	// turn would compare every object on a cluster with every other.
	apart map[string]Fingerprint
	// windows of the gates, as they were read. Without it, every turn would read every window, which may take
	// seconds.
	windows map[windowKey]window
	// bad are failures and apply errors. Without it, an apply error would never become a failure, and an old failure
	// would fail a new admission at once.
	bad sightings
	// refusals of the hub. Without it, a refusal would never become a failure.
	refusals sightings
	// last is the last turn. Without it, a soak would end early or late after the operator's clock was set.
	last *lastLook
	// Unwritten are logged decisions that the journal gets with the next write. Without it, the journal would lack
	// the decisions of a dropped plan.
	Unwritten []journal.Decision
}

// Compared is the part of the memory that only saves work and does not change a plan.
func (m Memory) Compared() Memory {
	return Memory{alike: m.alike, intact: m.intact, apart: m.apart, windows: m.windows}
}

// Fingerprint identifies everything that a decision depends on, in far less memory than its text. The zero value
// stands for no input.
type Fingerprint [sha256.Size]byte

func fingerprintOf(parts []string) Fingerprint {
	text := make([]byte, 0, 1024)
	for _, part := range parts {
		text = append(append(text, part...), 0)
	}
	return sha256.Sum256(text)
}

// sightings have, by cluster, a value that every turn has seen since a time.
type sightings map[string]sighting

type sighting struct {
	value string
	since time.Time
}

// look returns the sightings after a turn that saw these values, by cluster. A cluster without a value has no
// sighting.
func (s sightings) look(shown map[string]string, now time.Time) sightings {
	next := make(sightings, len(shown))
	for cluster, value := range shown {
		next[cluster] = sighting{value, now}
		if before := s[cluster]; before.value == value && before.since.Before(now) {
			next[cluster] = before
		}
	}
	return next
}

// date enters since when the operator has seen each failure, apply error and refusal.
func (t *turn) date(clusters []rollout.Cluster) {
	now := t.Look.Wall
	bad, refusals := map[string]string{}, map[string]string{}
	for _, c := range clusters {
		if c.Unwritten != "" {
			refusals[c.Name] = "refused"
		}
		switch {
		case c.Health.State == rollout.HealthFailed:
			bad[c.Name] = "failed with " + c.Running
		case c.Health.NotApplied != "":
			bad[c.Name] = "not applied"
		}
	}
	t.forNext.bad, t.forNext.refusals = t.forNext.bad.look(bad, now), t.forNext.refusals.look(refusals, now)
	for i := range clusters {
		c := &clusters[i]
		c.Health.BadSince, c.UnwrittenSince = t.forNext.bad[c.Name].since, t.forNext.refusals[c.Name].since
	}
}
