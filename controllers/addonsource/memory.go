package addonsource

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gitsource"
)

// attemptsKept bounds how many compiled commits are kept. A source whose commit was
// dropped fetches again when, and only when, something of it must be applied.
const attemptsKept = 64

// memory is what this process knows about one source, to spare reads and fetches.
// Nothing in it is needed: a restart begins without.
type memory struct {
	// head was seen for generation, and is not looked for again before nextLook.
	head       gitsource.Revision
	generation int64
	nextLook   time.Time
	// answered is the request of the user that the last look answered.
	answered string
	// unread is why the repository could not be read under generation, until it is tried
	// again at nextLook: a pass in between, for a forge's answer, is no success.
	unread *halt
	// failures in a row, for the next wait.
	failures int
	// refusal is the verdict on refusedRevision under refusedSpec.
	refusal         *halt
	refusedRevision string
	refusedSpec     string
	// withdrawn is when a source that is being deleted had nothing left on the hub.
	withdrawn time.Time
	// rollouts as this process last wrote them, by name.
	rollouts map[string]writtenRollout
	// forced says that a forced reconcile has not got to its end yet.
	forced bool
}

// writtenRollout is a rollout as this process last wrote it. One of that name that was made
// anew counts its generations from 1.
type writtenRollout struct {
	uid        types.UID
	generation int64
}

// newer tells whether what was written is newer than what was read.
func (w writtenRollout) newer(ro *v1alpha1.AddOnRollout) bool {
	return w.uid == ro.UID && w.generation > ro.Generation
}

// knows tells whether the last look under the generation found the head.
func (m *memory) knows(generation int64) bool {
	return m.head.Commit != "" && m.unread == nil && m.generation == generation
}

// saw remembers the head, until the next look.
func (m *memory) saw(head gitsource.Revision, generation int64, nextLook time.Time) {
	m.head, m.generation, m.nextLook, m.unread = head, generation, nextLook, nil
}

// lost remembers that a look failed: the head is not known any more. One that waits is not
// repeated before its time.
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

// refusalOf returns the verdict on a revision, nil if this process has none.
func (m *memory) refusalOf(revision, spec string) *halt {
	if m.refusal == nil || m.refusedRevision != revision || m.refusedSpec != spec {
		return nil
	}
	return m.refusal
}

// memories are those of all sources. A source is reconciled by one worker at a time,
// so what is in a memory needs no lock.
type memories struct {
	mu sync.Mutex
	of map[types.NamespacedName]*memory
	// attempts are the commits compiled last, and when each was last used.
	attempts map[types.NamespacedName]*attempt
	used     map[types.NamespacedName]time.Time
}

// newMemories returns the memories of a process that has just started.
func newMemories() *memories {
	return &memories{
		of:       map[types.NamespacedName]*memory{},
		attempts: map[types.NamespacedName]*attempt{},
		used:     map[types.NamespacedName]time.Time{},
	}
}

// open returns the memory of a source.
func (m *memories) open(source types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[source] == nil {
		m.of[source] = &memory{}
	}
	return m.of[source]
}

// attempt returns the commit compiled last for a source, nil if none is kept.
func (m *memories) attempt(source types.NamespacedName, now time.Time) *attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.attempts[source] != nil {
		m.used[source] = now
	}
	return m.attempts[source]
}

// keep remembers the commit compiled last, and drops the one that was not used for
// the longest time if these are too many.
func (m *memories) keep(source types.NamespacedName, a *attempt, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.attempts[source], m.used[source] = a, now
	if len(m.attempts) <= attemptsKept {
		return
	}
	oldest := source
	for other, used := range m.used {
		if used.Before(m.used[oldest]) {
			oldest = other
		}
	}
	delete(m.attempts, oldest)
	delete(m.used, oldest)
}

// forget drops everything about a source that is gone.
func (m *memories) forget(source types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, source)
	delete(m.attempts, source)
	delete(m.used, source)
}

// written is what this process knows of an object from its last write or comparison.
type written struct {
	// resourceVersion of our last write.
	resourceVersion string
	// desired is the digest of what was applied or compared last, stored of what the hub
	// had then.
	desired, stored string
}

// writes remembers our last write to each object: an event that it caused needs no
// pass, and what the API server made of it needs no second dry run.
type writes struct {
	mu   sync.Mutex
	last map[objectKey]written
}

// record remembers a write and the API server's answer.
func (w *writes) record(key objectKey, desired, answer *unstructured.Unstructured) {
	w.put(key, written{resourceVersion: answer.GetResourceVersion(), desired: digestOf(desired), stored: storedDigest(answer)})
}

// compared remembers that applying desired to live would change nothing.
func (w *writes) compared(key objectKey, desired, live *unstructured.Unstructured) {
	w.put(key, written{resourceVersion: w.of(key).resourceVersion, desired: digestOf(desired), stored: storedDigest(live)})
}

// put remembers an entry.
func (w *writes) put(key objectKey, entry written) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[objectKey]written{}
	}
	w.last[key] = entry
}

// of returns what is known of an object, the zero value if nothing is.
func (w *writes) of(key objectKey) written {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[key]
}

// drop forgets an object that was deleted.
func (w *writes) drop(key objectKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, key)
}
