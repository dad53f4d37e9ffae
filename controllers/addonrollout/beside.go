package addonrollout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/journal"
)

// refusedFor bounds the time between two attempts at a write that the hub refuses.
const refusedFor = 5 * time.Minute

// refusedWrite is a write beside the status of a rollout that the hub refused: the mark of a success, a
// change of quarantine, or the answer of an order. It stops no rollout.
type refusedWrite struct {
	// text is empty while the write only failed: failed is when it did so first, and each turn tries it again.
	text   string
	failed time.Duration
	// due is when it is tried again, and pause how long that is after the last attempt.
	due, pause time.Duration
}

// besides are the writes of one turn beside the status.
type besides struct {
	before, now map[string]refusedWrite
	mem         *memory
	elapsed     time.Duration
	recorder    record.EventRecorder
}

// writeBeside begins the writes of a turn. It drops a refusal of an earlier turn if this turn does not make that write
// again.
func (r *Reconciler) writeBeside(mem *memory) *besides {
	return &besides{before: mem.beside, now: map[string]refusedWrite{}, mem: mem, elapsed: r.Elapsed(), recorder: r.Recorder}
}

// write makes a write unless the hub refused it a short time ago. It returns an error if the plan is void, if the hub
// did not answer, or if the next attempt may succeed. A write that fails in this way for retryAfter counts as refused:
// a broken webhook must not stop a rollout for ever.
func (b *besides) write(what string, do func() error) (written bool, err error) {
	refused, known := b.before[what]
	if known && b.elapsed < refused.due {
		b.now[what] = refused
		return false, nil
	}
	err = do()
	var answer apierrors.APIStatus
	if err == nil || fleeting(err) || !errors.As(err, &answer) {
		return err == nil, err
	}
	if refused.text = refusal(err); refused.text == "" {
		if !known {
			refused.failed = b.elapsed
		}
		if b.elapsed-refused.failed < retryAfter {
			b.mem.failed(what, refused)
			return false, err
		}
		refused.text = err.Error()
	}
	refused.pause = min(max(retryAfter, 2*refused.pause), refusedFor)
	refused.due = b.elapsed + refused.pause
	b.now[what] = refused
	return false, nil
}

// end stores the refusals and announces each of them once. It returns when the next turn is due, 0 if nothing was
// refused. The next write of the status adds a new refusal to the journal.
func (b *besides) end(log logr.Logger, o *plan.Observation) (again time.Duration) {
	for _, what := range slices.Sorted(maps.Keys(b.now)) {
		w := b.now[what]
		again = clock.Sooner(again, max(w.due-b.elapsed, time.Second))
		if b.before[what].text == w.text {
			continue
		}
		again = time.Second // the status names it
		b.mem.plan.Unwritten = append(b.mem.plan.Unwritten, b.announce(log, o, w.text))
	}
	if len(b.now) < len(b.before) {
		again = time.Second // the status does not name it any more
	}
	b.mem.beside = b.now
	return again
}

// failed remembers a write beside the status.
func (m *memory) failed(what string, w refusedWrite) {
	if m.beside == nil {
		m.beside = map[string]refusedWrite{}
	}
	m.beside[what] = w
}

// announce logs and announces a refusal, and returns it for the journal.
func (b *besides) announce(log logr.Logger, o *plan.Observation, why string) journal.Decision {
	d := journal.Decision{Kind: journal.WriteRefused, Commit: o.Target.Commit, Revision: o.Target.Digest, Reason: why}
	logSteps(log, []journal.Decision{d})
	announceStep(b.recorder, o.Rollout, d)
	return d
}

// markSuccesses marks the revisions that succeeded, after the status that says so is stored. A deleted revision needs no
// mark.
func (r *Reconciler) markSuccesses(ctx context.Context, p *plan.Plan, beside *besides) error {
	for _, s := range p.Unmarked {
		_, err := beside.write("success "+s.Name, func() error {
			return client.IgnoreNotFound(r.markSuccess(ctx, p.Observed.Rollout.Namespace, s))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// refusedWrites says which writes beside the status the hub refused.
func (m *memory) refusedWrites() []string {
	var refused []string
	for _, what := range slices.Sorted(maps.Keys(m.beside)) {
		if w := m.beside[what]; w.text != "" {
			refused = append(refused, w.text)
		}
	}
	return refused
}
