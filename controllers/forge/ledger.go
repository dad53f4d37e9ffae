package forge

import (
	"context"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// Ledger is what one object has to say about commits, during one reconcile. It
// belongs to one goroutine.
type Ledger struct {
	desk    *Desk
	key     Key
	reports []commitstatus.Report
	// forge is where they go; nil without commitStatus, or with err.
	forge commitstatus.Forge
	err   error
	// retry is when to look again after err: nobody tells us of a changed Secret.
	retry time.Duration
	// owner of the contexts, where that is another source: nothing is told then.
	owner string
	// claimed is when another process's claim on something that is due runs out.
	claimed time.Duration
}

// Reports returns the ledger.
func (l *Ledger) Reports() []commitstatus.Report { return l.reports }

// Want says what the forge shall show, and for a pending status how far it is, in
// percent. Saying the same again changes nothing.
func (l *Ledger) Want(status commitstatus.Status, progress int) {
	l.reports = commitstatus.Want(l.reports, status, progress)
}

// Supersede ends every context without a verdict of every commit but newSHA.
func (l *Ledger) Supersede(newSHA string) {
	for _, r := range l.reports {
		l.reports = commitstatus.Supersede(l.reports, r.SHA, newSHA)
	}
}

// SupersedeOne ends every context without a verdict of oldSHA, because newSHA took its place.
func (l *Ledger) SupersedeOne(oldSHA, newSHA string) {
	l.reports = commitstatus.Supersede(l.reports, oldSHA, newSHA)
}

// LeaveFor is how long an object that is being deleted, and is otherwise done, is kept
// for commit statuses that its forge has not accepted yet. After that they are given up.
const LeaveFor = 5 * time.Minute

// Owes tells whether the forge has not accepted yet what is final, so that the ledger is
// still needed. What the forge refused for good is not owed.
func (l *Ledger) Owes() bool {
	for _, r := range l.reports {
		if r.State.Terminal() && !r.Done() && !r.Stopped {
			return true
		}
	}
	return false
}

// End gives every context of a commit that has no verdict this one.
func (l *Ledger) End(sha string, state commitstatus.State, description string) {
	l.reports = commitstatus.End(l.reports, sha, state, description)
}

// Open returns the contexts of a commit that have no verdict yet.
func (l *Ledger) Open(sha string) []string { return commitstatus.Open(l.reports, sha) }

// Prune drops what need not be remembered about commits other than the current ones.
func (l *Ledger) Prune(currentSHAs ...string) {
	l.reports = commitstatus.Prune(l.reports, currentSHAs...)
}

// Retry makes everything due at once that the forge refused. Callers use it when a
// user asks for a reconcile.
func (l *Ledger) Retry() {
	l.desk.deliverer.Forget(l.key.String())
	l.reports = commitstatus.Retry(l.reports)
}

// Address finds out where the ledger goes, from the source's commitStatus and its
// Secret, which is read only when something is undelivered. It is called last
// before the status is written: another token or address than this process used
// before makes due again what the old one was refused with. What is due is claimed for
// this process, by the status write that follows. What goes wrong is kept for Mark. Without
// commitStatus the ledger is emptied, and where the contexts belong to another source:
// kept, it would be told into them once that is resolved. What holds then is wanted anew.
func (l *Ledger) Address(ctx context.Context, source *v1alpha1.AddOnSource) {
	if source.Spec.CommitStatus == nil {
		l.reports = nil
		return
	}
	owner, err := l.desk.owner(ctx, source)
	if err != nil {
		l.err, l.retry = err, source.Spec.Interval.Duration
		return
	}
	if owner != client.ObjectKeyFromObject(source) {
		l.reports, l.owner = nil, owner.String()
		return
	}
	if !l.undelivered() {
		return
	}
	route, err := l.desk.route(ctx, source)
	if err != nil {
		l.err, l.retry = err, source.Spec.Interval.Duration
		return
	}
	l.forge = route.forge
	if l.desk.readdressed(l.key, route.address) {
		l.Retry()
	}
	l.reports, l.claimed = commitstatus.Claim(l.reports, l.desk.claimant(), l.desk.clock())
}

// undelivered tells whether the forge does not show yet what it shall.
func (l *Ledger) undelivered() bool {
	for _, r := range l.reports {
		if r.Undelivered() {
			return true
		}
	}
	return false
}

// owing tells whether the forge shows another state than it shall. A text that lags
// behind is not owed, nor that a context is open again: progress is paced.
func (l *Ledger) owing() bool {
	for _, r := range l.reports {
		if !r.Done() && r.State != r.AcceptedState && !r.Reopens() {
			return true
		}
	}
	return false
}

// Stored returns the ledger as a status keeps it.
func (l *Ledger) Stored() []v1alpha1.CommitReport { return store(l.reports) }

// Mark sets the condition CommitStatusReported: False with the source that the contexts
// belong to, or the first reason why a status was not accepted; Unknown while one is on its
// way; True when the forge shows everything. An object that reports nothing has no such
// condition.
func (l *Ledger) Mark(obj conditions.Setter) {
	const condition = v1alpha1.CommitStatusReportedCondition
	switch reason, failed := l.trouble(); {
	case l.owner != "":
		conditions.MarkFalse(obj, condition, v1alpha1.OwnershipConflictReason,
			"the commit status context belongs to source %s, which reports to the same repository; "+
				"nothing is reported until spec.commitStatus.context of one of the two differs", l.owner)
	case len(l.reports) == 0:
		conditions.Delete(obj, condition)
	case l.err != nil:
		conditions.MarkFalse(obj, condition, v1alpha1.DeliveryFailedReason, "%s", l.err)
	case failed > 0:
		conditions.MarkFalse(obj, condition, v1alpha1.DeliveryFailedReason,
			"the forge has not accepted %s: %s", count(failed), reason)
	case l.owing():
		conditions.MarkUnknown(obj, condition, meta.ProgressingReason, "commit statuses are on their way")
	default:
		conditions.MarkTrue(obj, condition, v1alpha1.DeliveredReason, "the forge accepted every commit status")
	}
}

// trouble returns how many statuses the forge refused, and why it refused the first.
func (l *Ledger) trouble() (reason string, failed int) {
	for _, r := range l.reports {
		if r.LastError == "" {
			continue
		}
		if failed == 0 {
			reason = r.LastError
		}
		failed++
	}
	return reason, failed
}

// count puts a number of commit statuses into words.
func count(n int) string {
	if n == 1 {
		return "1 commit status"
	}
	return fmt.Sprintf("%d commit statuses", n)
}

// Deliver hands the ledger over for posting and returns at once, with the time
// after which the object must be reconciled again for the ledger's sake; zero:
// nothing waits for time. It is called after the status was written: what is
// posted must be remembered first.
func (l *Ledger) Deliver() time.Duration {
	if l.forge == nil {
		if len(l.reports) == 0 {
			l.desk.Forget(l.key)
		}
		return l.retry
	}
	l.desk.deliverer.Enqueue(l.key.String(), l.forge, l.reports)
	_, after := commitstatus.Next(l.reports, l.desk.clock())
	if l.claimed > 0 && (after == 0 || l.claimed < after) {
		after = l.claimed
	}
	return after
}
