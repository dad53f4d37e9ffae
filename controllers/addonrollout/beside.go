package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/journal"
)

// refusedFor bounds the time between two attempts at a write that the hub refuses.
const refusedFor = 5 * time.Minute

// refusedWrite is a refused write that is not the status of the rollout: the mark of a success, a change of
// quarantine, or the answer of an order. It stops no rollout.
type refusedWrite struct {
	// text is the refusal of the hub. "": the hub did not refuse the write, but the write fails since the time in
	// failed, and each turn retries it.
	text   string
	failed time.Duration
	// due is the time of the next attempt. pause is the time between the last attempt and due.
	due, pause time.Duration
}

// besides has the writes of one turn that are not the status.
type besides struct {
	before, now map[string]refusedWrite
	mem         *memory
	elapsed     time.Duration
	recorder    record.EventRecorder
}

// writeBeside begins the writes of a turn. It drops a refusal of an earlier turn if this turn does not make that
// write.
func (r *Reconciler) writeBeside(mem *memory) *besides {
	return &besides{before: mem.beside, now: map[string]refusedWrite{}, mem: mem, elapsed: r.Elapsed(), recorder: r.Recorder}
}

// write makes a write, unless the hub refused it a short time ago. It returns an error if the plan is void, the hub
// did not answer, or the next attempt may succeed. If the hub answers with an error that may end, such as that of a
// broken webhook, and this lasts for retryAfter, the write counts as refused: such an error must not stop a rollout
// for ever.
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

// end stores the refusals and announces each of them once. It returns the time until the next turn; 0: nothing was
// refused. The next write of the status adds a new refusal to the journal.
func (b *besides) end(log logr.Logger, o *plan.Observation) (again time.Duration) {
	for _, what := range slices.Sorted(maps.Keys(b.now)) {
		w := b.now[what]
		again = clock.Sooner(again, max(w.due-b.elapsed, time.Second))
		if b.before[what].text == w.text {
			continue
		}
		again = time.Second // so that the status names the refusal
		b.mem.plan.Unwritten = append(b.mem.plan.Unwritten, b.announce(log, o, w.text))
	}
	if len(b.now) < len(b.before) {
		again = time.Second // so that the status no longer names the refusal
	}
	b.mem.beside = b.now
	return again
}

// failed stores a failed write that is not the status.
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

// markSuccesses marks the revisions that succeeded, after the status with the success is stored. A deleted revision
// needs no mark.
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

// markSuccess writes succeeded-at onto a revision.
func (r *Reconciler) markSuccess(ctx context.Context, namespace string, s plan.Success) error {
	rev := &metav1.PartialObjectMetadata{}
	rev.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
	rev.Namespace, rev.Name = namespace, s.Name
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.SucceededAtAnnotation, s.At)
	if err := r.Client.Patch(ctx, rev, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("cannot record the success of revision %s: %w", rev.Name, err)
	}
	return nil
}

// refusedWrites lists the refused writes that are not the status.
func (m *memory) refusedWrites() []string {
	var refused []string
	for _, what := range slices.Sorted(maps.Keys(m.beside)) {
		if w := m.beside[what]; w.text != "" {
			refused = append(refused, w.text)
		}
	}
	return refused
}
