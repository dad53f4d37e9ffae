package addonrollout

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
)

// memory is what this process stores about one rollout. Only one turn at a time uses it. A new process starts with an
// empty one.
type memory struct {
	// turns limits the turns. Without it, a fleet that reports all at once would cost a write of the ledger per
	// report.
	turns *rate.Limiter
	// generation of the spec in the last turn. Without it, new content would wait for the pace of the turns.
	generation int64
	// comparison is the last comparison of the watch cache with the hub, for a ledger of another process. Without it,
	// every turn would compare them until it stores a ledger.
	comparison *comparison
	// waits is why the last turn waited for the watch cache. Without it, each turn would log it.
	waits string
	// plan is the memory of package plan from the last turn. Without it apply errors and refusals would
	// never become failures.
	plan plan.Memory
	// unchanged are the fingerprints of clusters that needed no write. Without it every turn would
	// render every cluster of a fleet at rest.
	unchanged map[string]plan.Fingerprint
	// authors are AddonFlow's last writes to the status of each add-on. Without them another
	// writer that writes the same values would count as a conflict.
	authors map[types.UID]*addonstatus.Authorship
	// prober is the compiled health policy. Without it every turn would compile the policy.
	prober prober
	// configs are the configurations that the last turn used. Without it every one of them
	// would be read at every turn.
	configs map[render.ConfigReference]readConfig
	// next is the first cluster that the last round of writes did not reach. Without it slow
	// clusters would take the time of the clusters after them in every round.
	next string
	// troubles of clusters. Without it, ClustersWritten would not name a cluster that the last round did not reach,
	// and a cluster whose works the hub refuses would never fail.
	troubles map[string]trouble
	// counts are the works that were written in the last minute. Without them, another owner of a work would be
	// overwritten for ever.
	counts map[client.ObjectKey]writtenWork
	// beside are the refused writes that are not the status. Without them, every turn would repeat the writes, and no
	// status would name them.
	beside map[string]refusedWrite
	// dependencies are the memories of the add-ons on which this one depends. Without them, every turn would render
	// them for the whole fleet.
	dependencies map[string]*memory
	// releasing is when the release started. Without it, a forge that never answers would keep a released rollout for
	// ever.
	releasing time.Time
	// written is the version of the rollout after the last write of its status by this process. Without it, every
	// write of a status would cost one more turn. The lock of the memories guards it, because the watch reads it.
	written string
}

// memories has the memory of each rollout.
type memories struct {
	mu sync.Mutex
	of map[client.ObjectKey]*memory
}

func newMemories() *memories { return &memories{of: map[client.ObjectKey]*memory{}} }

func (s *memories) get(key client.ObjectKey) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[key] == nil {
		s.of[key] = newMemory()
	}
	return s.of[key]
}

// wrote stores the rollout that the API server returned for a write of its status.
func (s *memories) wrote(ro *v1alpha1.AddOnRollout) {
	mem := s.get(client.ObjectKeyFromObject(ro))
	s.mu.Lock()
	defer s.mu.Unlock()
	mem.written = ro.ResourceVersion
}

// own reports whether a rollout is unchanged since this process wrote it.
func (s *memories) own(ro *v1alpha1.AddOnRollout) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	mem := s.of[client.ObjectKeyFromObject(ro)]
	return mem != nil && mem.written == ro.ResourceVersion
}

func newMemory() *memory {
	return &memory{
		unchanged: map[string]plan.Fingerprint{}, authors: map[types.UID]*addonstatus.Authorship{}, counts: map[client.ObjectKey]writtenWork{},
	}
}

// forget drops a rollout that is gone.
func (s *memories) forget(key client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}

// turnsAtOnce is how many turns a rollout may take without a pause after a quiet time, so that a small fleet moves
// from stage to stage at once.
const turnsAtOnce = 5

// newTurns limits the turns of a rollout to one per pace. After a quiet time, turnsAtOnce come without a pause.
func newTurns(pace time.Duration) *rate.Limiter {
	return rate.NewLimiter(rate.Every(pace), turnsAtOnce)
}

// takeTurn returns how long a rollout must wait for its turn. If it returns 0, the turn is taken.
func (m *memory) takeTurn(now time.Time) time.Duration {
	turn := m.turns.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > 0 {
		turn.CancelAt(now)
	}
	return wait
}

// authorOf returns what AddonFlow wrote to an add-on's status.
func (m *memory) authorOf(uid types.UID) *addonstatus.Authorship {
	if m.authors[uid] == nil {
		m.authors[uid] = &addonstatus.Authorship{}
	}
	return m.authors[uid]
}

// prober judges health by a policy, or has the error of that policy.
type prober struct {
	render.Prober
	policy string
	err    error
}

// proberOf returns the prober of a rollout. Its field policy identifies the health policy: two policies have
// different values. A policy that cannot be used, for example after an edit on the hub, is an error that wraps
// render.ErrInvalidHealth; the prober is then the default one, which is used for reports.
func (m *memory) proberOf(ro *v1alpha1.AddOnRollout) prober {
	if ro.Spec.Health == nil {
		return prober{}
	}
	text, err := json.Marshal(ro.Spec.Health)
	if err != nil {
		return prober{err: fmt.Errorf("cannot read the health policy: %w", err)}
	}
	if m.prober.policy != string(text) {
		m.prober.policy = string(text)
		m.prober.Prober, m.prober.err = render.NewProber(ro.Spec.Health)
	}
	return m.prober
}

// refusals returns why the hub refused the works of clusters, by cluster, and unremoved why it refused
// to remove them.
func (m *memory) refusals() (works, unremoved map[string]string) {
	works, unremoved = map[string]string{}, map[string]string{}
	for name, t := range m.troubles {
		out := works
		if t.removal {
			out = unremoved
		}
		if t.refusal != "" {
			out[name] = t.refusal
		}
	}
	return works, unremoved
}

// enter stores the result of a round and returns every cluster in trouble: those of this round, and those of earlier
// rounds that this round did not reach.
func (m *memory) enter(wrote *applied) map[string]trouble {
	troubles := wrote.troubles
	for _, name := range wrote.unfinished {
		if t, ok := m.troubles[name]; ok {
			troubles[name] = t
		}
	}
	m.next, m.troubles = wrote.next, troubles
	return troubles
}
