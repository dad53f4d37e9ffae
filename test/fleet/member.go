package fleet

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/test/fleet/spoke"
)

// member is one cluster and its agent.
type member struct {
	name string

	mu     sync.Mutex
	labels map[string]string
	joined bool
	// detached: the ManagedCluster is deleted. As on OCM's hub, its works lose their finalizer,
	// and nothing is reported.
	detached bool
	mood     mood
	spoke    *spoke.Cluster
	duties   map[string]*duty
	random   *rand.Rand
	writes   int
}

// mood is the behaviour that a test has set.
type mood struct {
	silent   bool
	gone     bool
	flapping bool
	lying    bool
	outdated bool
	held     bool
	failing  bool
	refusal  string
	skew     time.Duration // of the cluster's clock
}

// duty is the agent's state for one work.
type duty struct {
	uid        types.UID
	generation int64
	applied    bool // results are of this generation
	results    []spoke.Result
	status     workv1.ManifestWorkStatus // as the hub has it
	// answer is the last one for a generation, and older the last one for the generation before.
	answer, older *workv1.ManifestWorkStatus
	due           time.Time
	stuckSince    time.Time
	gaveUp        bool
	flapped       bool
	deleting      bool
	finalizer     bool // written, whatever the watch shows
}

// duty returns the state for a work; a work that was deleted and created again gets a new one.
// The member must be locked.
func (m *member) duty(work *workv1.ManifestWork) *duty {
	d := m.duties[work.Name]
	if d == nil || d.uid != work.UID {
		d = &duty{uid: work.UID, status: *work.Status.DeepCopy()}
		m.duties[work.Name] = d
	}
	return d
}

// begin starts over for new content, keeping what the hub knows.
func (d *duty) begin(generation int64, due time.Time) {
	d.generation, d.due = generation, due
	d.applied, d.gaveUp, d.stuckSince = false, false, time.Time{}
}

func hash(text string) uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(text))
	return sum.Sum64()
}

// jittered is a latency give or take a fifth.
func (m *member) jittered(latency time.Duration) time.Duration {
	return time.Duration(float64(latency) * (0.8 + 0.4*m.random.Float64()))
}
