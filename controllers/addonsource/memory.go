package addonsource

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/contest"
	"github.com/addonflow/addonflow/gitsource"
)

// attemptsKept is how many compiled commits are kept. If the commit of a source was dropped, the source fetches it
// again when an object must be applied.
const attemptsKept = 64

// memory is what this process stores about one source. A new process starts with an empty one.
type memory struct {
	// head is the last result of a look. generation and attempted are the generation of the source and the revision
	// of the hub for which it is valid. nextLook is the time of the next look. Without them, every pass would contact
	// the server.
	head       gitsource.Revision
	generation int64
	attempted  string
	nextLook   time.Time
	// answered is the user's request that the last look answered. Without it, every pass of a requested reconcile
	// would look again, and none would fetch the head.
	answered string
	// unread is why the repository could not be read under generation; it is kept until nextLook. Without it, a pass
	// in between, for an answer of a forge, would contact the server.
	unread *halt
	// failures are the waits in a row. Without them, a server that fails would be contacted every second.
	failures int
	// refusal is the verdict on refusedRevision under refusedSpec. Without it, a refused commit would be read again if
	// the conditions no longer show the verdict.
	refusal         *halt
	refusedRevision string
	refusedSpec     string
	// withdrawn is when the last object of a deleted source was removed from the hub. Without it, a forge that never
	// answers would keep the source for ever.
	withdrawn time.Time
	// rollouts as this process wrote them last, by name. Without them, an older rollout in the watch cache would count
	// as the outcome of the applied commit.
	rollouts map[string]writtenRollout
	// undecided is a head that edits placements, undecidedSince when a pass first waited for OCM to decide about them.
	// Without them, the wait would never end.
	undecided      string
	undecidedSince time.Time
	// contested are the objects of other owners that the last pass found. They stay contested until they equal the
	// commit's declaration, or the user requests a reconcile. Without them, each would be overwritten again after a
	// quiet minute.
	contested map[objectKey]bool
	// forced is set until a forced reconcile is complete. Without it, a forced reconcile that waits would continue
	// unforced.
	forced bool
}

// writtenRollout is a rollout as this process wrote it last. The uid is needed because a new rollout of the same name
// starts its generations at 1.
type writtenRollout struct {
	uid        types.UID
	generation int64
}

// newer reports whether the written rollout is newer than the one that was read.
func (w writtenRollout) newer(ro *v1alpha1.AddOnRollout) bool {
	return w.uid == ro.UID && w.generation > ro.Generation
}

// knows reports whether the last look found the head, and no other writer has changed the source or the revision of
// the hub since.
func (m *memory) knows(source *v1alpha1.AddOnSource) bool {
	return m.head.Commit != "" && m.unread == nil && m.generation == source.Generation && m.attempted == source.Status.LastAttemptedRevision
}

// saw stores the head until the next look.
func (m *memory) saw(head gitsource.Revision, source *v1alpha1.AddOnSource, nextLook time.Time) {
	m.head, m.generation, m.attempted, m.nextLook, m.unread = head, source.Generation, source.Status.LastAttemptedRevision, nextLook, nil
}

// lost notes that a look failed, so the head is not known. A look that waits is not repeated early.
func (m *memory) lost(err error, generation int64, now time.Time) {
	m.head, m.generation, m.nextLook, m.unread = gitsource.Revision{}, generation, time.Time{}, nil
	var h *halt
	if errors.As(err, &h) && h.kind == waiting {
		m.unread, m.nextLook = h, now.Add(h.after)
	}
}

// stillUnread returns why the last look failed, until the next one is due.
func (m *memory) stillUnread(generation int64, now time.Time) *halt {
	if m.unread == nil || m.generation != generation || !now.Before(m.nextLook) {
		return nil
	}
	again := *m.unread
	again.after = m.nextLook.Sub(now)
	return &again
}

// refusalOf returns the verdict on a revision; nil: this process has none.
func (m *memory) refusalOf(revision, spec string) *halt {
	if m.refusal == nil || m.refusedRevision != revision || m.refusedSpec != spec {
		return nil
	}
	return m.refusal
}

// memories has the memory of each source. Only one worker at a time reconciles a source, so a memory needs no lock.
type memories struct {
	mu sync.Mutex
	of map[types.NamespacedName]*memory
	// attempts are the commits compiled last.
	attempts *lru.Cache
}

func newMemories() *memories {
	return &memories{of: map[types.NamespacedName]*memory{}, attempts: lru.New(attemptsKept)}
}

func (m *memories) open(source types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[source] == nil {
		m.of[source] = &memory{}
	}
	return m.of[source]
}

// attempt returns the last compiled commit of a source; nil: none is kept.
func (m *memories) attempt(source types.NamespacedName) *attempt {
	kept, _ := m.attempts.Get(source)
	a, _ := kept.(*attempt)
	return a
}

func (m *memories) forget(source types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, source)
	m.attempts.Remove(source)
}

// written describes an object at its last write or comparison by this process.
type written struct {
	// resourceVersion of the last write.
	resourceVersion string
	// desired is the digest of the object that was last applied or compared. stored is the digest of the hub's object
	// after that.
	desired, stored string
	// applies counts the writes of desired.
	applies contest.Count
}

// writes keeps the last write to each object. The event of the write needs no pass, and its result needs no second
// dry run.
type writes struct {
	mu   sync.Mutex
	last map[objectKey]written
}

// record stores a write and the API server's answer.
func (w *writes) record(key objectKey, desired, answer *unstructured.Unstructured, now time.Time) {
	digest := digestOf(desired)
	w.put(key, written{
		resourceVersion: answer.GetResourceVersion(), desired: digest, stored: storedDigest(answer),
		applies: w.of(key).applies.Written(digest, now),
	})
}

// fenced counts a write that only fences an object off, so that desired can be applied later.
func (w *writes) fenced(desired, answer *unstructured.Unstructured, now time.Time) {
	last := w.of(keyOf(desired))
	last.resourceVersion, last.applies = answer.GetResourceVersion(), last.applies.Written(digestOf(desired), now)
	w.put(keyOf(desired), last)
}

// compared notes that an apply of desired to live would change nothing.
func (w *writes) compared(key objectKey, desired, live *unstructured.Unstructured) {
	last := w.of(key)
	w.put(key, written{resourceVersion: last.resourceVersion, desired: digestOf(desired), stored: storedDigest(live), applies: last.applies})
}

func (w *writes) put(key objectKey, entry written) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[objectKey]written{}
	}
	w.last[key] = entry
}

func (w *writes) of(key objectKey) written {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[key]
}

func (w *writes) drop(key objectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, key)
}
