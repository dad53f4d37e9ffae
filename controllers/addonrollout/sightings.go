package addonrollout

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sightings remembers since when the operator has seen, at every look at a rollout, the same
// mark at a cluster. Losing this memory starts that time anew.
type sightings struct {
	mu   sync.Mutex
	seen map[client.ObjectKey]map[string]sighting
}

type sighting struct {
	mark  string
	since time.Time
}

func newSightings() *sightings {
	return &sightings{seen: map[client.ObjectKey]map[string]sighting{}}
}

// look notes the marks that clusters show now, and returns since when each cluster has shown
// its mark. A cluster without a mark has none now.
func (s *sightings) look(rollout client.ObjectKey, marks map[string]string, now time.Time) map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, since := make(map[string]sighting, len(marks)), make(map[string]time.Time, len(marks))
	for cluster, mark := range marks {
		at := sighting{mark, now}
		if before := s.seen[rollout][cluster]; before.mark == mark && before.since.Before(now) {
			at.since = before.since
		}
		seen[cluster], since[cluster] = at, at.since
	}
	s.seen[rollout] = seen
	return since
}

// forget drops what was seen of a rollout: it is gone, or the clock was set.
func (s *sightings) forget(rollout client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, rollout)
}
