package addonrollout

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyErrors remembers since when each cluster of a rollout has reported, at every look,
// that its agent could not apply the works. An apply error counts as a failure only after
// two looks at it; losing this memory delays that by a minute.
type applyErrors struct {
	mu    sync.Mutex
	since map[client.ObjectKey]map[string]time.Time
}

func newApplyErrors() *applyErrors {
	return &applyErrors{since: map[client.ObjectKey]map[string]time.Time{}}
}

// look notes which members report an apply error now, and returns since when each has.
func (a *applyErrors) look(rollout client.ObjectKey, members []*member, now time.Time) map[string]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := map[string]time.Time{}
	for _, m := range members {
		if m.health.NotApplied == "" {
			continue
		}
		seen[m.name] = now
		if before, ok := a.since[rollout][m.name]; ok && before.Before(now) {
			seen[m.name] = before
		}
	}
	a.since[rollout] = seen
	return seen
}

// forget drops what was seen of a rollout: it is gone, or the clock was set.
func (a *applyErrors) forget(rollout client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, rollout)
}
