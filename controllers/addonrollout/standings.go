package addonrollout

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// standings remembers where the clusters of each rollout stood when its status was last
// stored, because the ledger forgets a cluster that is done. What an operator that begins
// does not remember it reads from the ledger.
type standings struct {
	mu sync.Mutex
	of map[client.ObjectKey][]journal.Standing
}

func newStandings() *standings { return &standings{of: map[client.ObjectKey][]journal.Standing{}} }

// before is where the clusters stood. A ledger that cannot be read says nothing.
func (s *standings) before(key client.ObjectKey, ledger v1alpha1.Ledger) []journal.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.of[key]; ok {
		return known
	}
	admissions, err := rollout.Admissions(ledger)
	if err != nil {
		return nil
	}
	var found []journal.Standing
	for _, a := range admissions {
		if a.Cluster == "" {
			continue
		}
		state := "Updating"
		switch {
		case a.Parked:
			state = "Parked"
		case !a.VerifiedAt.IsZero():
			state = "Soaking"
		}
		found = append(found, journal.Standing{Cluster: a.Cluster, Revision: a.Revision, Stage: a.Stage, State: state})
	}
	return found
}

func (s *standings) set(key client.ObjectKey, now []journal.Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[key] = now
}

func (s *standings) forget(key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}

// standingsOf is where the clusters stand by a plan. Clusters that were not admitted have
// no record.
func standingsOf(plan rollout.Plan) []journal.Standing {
	words := map[rollout.State]string{
		rollout.Admitted: "Admitted", rollout.Progressing: "Updating", rollout.Soaking: "Soaking", rollout.Succeeded: "Done",
		rollout.Failed: "Failed", rollout.TimedOut: "TimedOut", rollout.Lost: "Lost", rollout.Parked: "Parked",
	}
	found := make([]journal.Standing, 0, len(plan.Clusters))
	for i := range plan.Clusters {
		c := &plan.Clusters[i]
		if state, ok := words[c.State]; ok {
			found = append(found, journal.Standing{Cluster: c.Name, Revision: c.Revision, Stage: c.Stage, State: state, Reason: c.Reason})
		}
	}
	return found
}
