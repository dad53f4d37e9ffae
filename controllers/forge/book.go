package forge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
)

// Book has the marks of one object during one reconcile. It belongs to one goroutine.
type Book struct {
	desk  *Desk
	key   Key
	marks []commitstatus.Mark
	// to is the destination of the marks, "" if unknown.
	to string
	// line is the deliverer's line for the marks; "": there is no commitStatus, or err is set.
	line string
	// provider of the line, the name of its source, and the Secret with its token.
	provider, source string
	secret           secret.Reference
	// began are the posts that begin with the next status write.
	began []commitstatus.Mark
	err   error
	// retry is the time until the next try after err, because Secrets are not watched.
	retry time.Duration
	// owner of the contexts, if it is another source. Then nothing is posted.
	owner string
	// unnamed: the artifact names no commit that could have a status.
	unnamed bool
}

// digestDigits is the length of the digest of an artifact that names no commit.
const digestDigits = 64

// Open returns the marks of an object as its status stores them, for the repository of its source, with all results
// that this process has received from the forge. If this process has had no marks of the object, because the process
// is new or the object has lost its status, the forge is read before the first marks of the object are posted. If a
// mark that this process knows is gone, the forge is read before another status is posted in its context. Without a
// source, the repository is unknown.
func (d *Desk) Open(key Key, source *v1alpha1.AddOnSource, stored []v1alpha1.CommitMark) *Book {
	b := &Book{desk: d, key: key}
	if source != nil && source.Spec.CommitStatus != nil {
		b.to = destination(source)
		var moved bool
		if stored, moved = commitstatus.Readdress(stored, b.to, ContextName(source)); moved {
			d.deliverer.Forget(key.String())
		}
	}
	b.marks = commitstatus.WithResults(stored, d.deliverer.Results(key.String()))
	return b
}

// Marks returns the marks.
func (b *Book) Marks() []commitstatus.Mark { return b.marks }

// Enter enters the statuses that live commits should have. A second call with the same statuses changes nothing. A
// status of an artifact that names no commit is left out.
func (b *Book) Enter(wants ...commitstatus.Want) {
	named := slices.DeleteFunc(slices.Clone(wants), func(w commitstatus.Want) bool { return len(w.SHA) == digestDigits })
	b.unnamed = b.unnamed || len(named) < len(wants)
	b.marks = commitstatus.Enter(b.marks, named...)
}

// Overtake updates the marks of commits that are not live, and drops those of commits with a
// delivered verdict. See commitstatus.Overtake.
func (b *Book) Overtake(s commitstatus.Succession) {
	b.marks = commitstatus.Prune(commitstatus.Overtake(b.marks, s), s.Live...)
}

// Supersede ends the contexts of one commit because another commit replaced it.
func (b *Book) Supersede(sha, by string) { b.marks = commitstatus.Supersede(b.marks, sha, by) }

// EndAll ends every context without a verdict.
func (b *Book) EndAll(description string) { b.marks = commitstatus.End(b.marks, "", description) }

// Retry makes the statuses due at once that the forge did not accept, of this object and of all other objects of the
// source. It does so once for each request of the user, because a request can stay open for long; later refusals wait
// as usual. "": there is no request.
func (b *Book) Retry(source *v1alpha1.AddOnSource, request string) {
	if b.desk.storeRequest(b.key, request) {
		b.desk.deliverer.Retry(lineOf(source))
	}
}

// Replace posts the operator's statuses over those of other writers, for this object and all other objects of the
// source. The user requests it.
func (b *Book) Replace(source *v1alpha1.AddOnSource) { b.desk.deliverer.Replace(lineOf(source)) }

// KeptFor is how long a deleted object is kept only for commit statuses that its forge has not accepted. After that
// they are given up.
const KeptFor = 5 * time.Minute

// Owes reports whether the marks are still needed, because the forge has not accepted a verdict yet. A status that
// the forge refused permanently is not owed; nor is a status in conflict with a foreign status.
func (b *Book) Owes() bool {
	troubles, _ := b.desk.deliverer.Troubles(b.key.String())
	return slices.ContainsFunc(b.marks, func(m commitstatus.Mark) bool {
		return commitstatus.Judged(m) && !commitstatus.Delivered(m) && m.Foreign == nil && !slices.ContainsFunc(troubles, func(t commitstatus.Trouble) bool {
			return t.Never && t.About(m)
		})
	})
}

// Address finds the repository for the marks, from the source's commitStatus and its Secret, and begins the posts
// that are due. It reads the Secret only if a status is not accepted, and once to read the statuses of the forge. It
// is called last before the status is written. It keeps errors for SetConditions. It drops the marks if there is no
// commitStatus, or if the contexts belong to another source. When the contexts belong to this source again, the
// state of that time is reported.
func (b *Book) Address(ctx context.Context, source *v1alpha1.AddOnSource) {
	if source.Spec.CommitStatus == nil {
		b.marks = nil
		return
	}
	b.provider, b.source = source.Spec.CommitStatus.Provider, source.Name
	b.secret = secretOf(source)
	owner, err := b.desk.owner(ctx, source)
	if err != nil {
		b.err, b.retry = err, source.Spec.Interval.Duration
		return
	}
	if owner != client.ObjectKeyFromObject(source) {
		b.marks, b.owner = nil, owner.String()
		return
	}
	if b.desk.connected(source) && !slices.ContainsFunc(b.marks, func(m commitstatus.Mark) bool { return !commitstatus.Delivered(m) }) {
		b.line = lineOf(source)
		return
	}
	if err := b.desk.connect(ctx, source); err != nil {
		b.err, b.retry = err, min(secretAgain, source.Spec.Interval.Duration)
		return
	}
	b.line = lineOf(source)
	b.begin()
}

// secretAgain is the time until an unusable Secret is read again.
const secretAgain = 10 * time.Second

// begin starts the posts that are due. While the forge as a whole does not answer, it starts none, because they may
// be out of date by the time the forge answers.
func (b *Book) begin() {
	if _, held := b.desk.deliverer.Troubles(b.key.String()); held {
		return
	}
	b.marks, b.began = commitstatus.Begin(b.provider, b.marks, b.desk.options.Now())
}

// Stored returns the marks as a status stores them. An empty list becomes nil, because a status without the field
// decodes to nil.
func (b *Book) Stored() []v1alpha1.CommitMark {
	if len(b.marks) == 0 {
		return nil
	}
	if b.to != "" {
		for i := range b.marks {
			b.marks[i].To = b.to
		}
	}
	return b.marks
}

// SetConditions sets CommitStatusDenied and CommitStatusReported.
func (b *Book) SetConditions(obj conditions.Setter) {
	b.setDenied(obj)
	b.setReported(obj)
}

// setDenied sets the condition CommitStatusDenied. It is True, with the problem of the token and the permission that
// it needs for statuses or for another purpose (Desk.Use), or absent. While the forge gives no answer about the token, the condition does not change.
func (b *Book) setDenied(obj conditions.Setter) {
	const condition = v1alpha1.CommitStatusDeniedCondition
	troubles, _ := b.desk.deliverer.Troubles(b.key.String())
	denied := slices.IndexFunc(troubles, func(t commitstatus.Trouble) bool { return t.Denied != "" })
	needs, other := "it needs "+commitstatus.Permission(b.provider), b.desk.refusalOf(b.key)
	if b.provider == "" { // there is no token any more
		other = refusal{}
	}
	switch {
	case b.owner != "" || len(b.marks) == 0 && other.denied == "":
		conditions.Delete(obj, condition)
	case errors.As(b.err, new(noTokenError)):
		conditions.MarkTrue(obj, condition, v1alpha1.TokenMissingReason, "%s; %s", b.err, needs)
	case b.err != nil:
	case denied >= 0:
		t := troubles[denied]
		conditions.MarkTrue(obj, condition, string(t.Denied), "%s; %s has the token, and %s", t.Text, b.secret, needs)
	case other.denied != "":
		conditions.MarkTrue(obj, condition, string(other.denied), "%s; %s has the token", other.text, b.secret)
	case !slices.ContainsFunc(b.marks, func(m commitstatus.Mark) bool { return m.Posting != nil }):
		conditions.Delete(obj, condition)
	}
}

// setReported sets the condition CommitStatusReported. An object that reports nothing has no such condition.
//
//	False    another source owns the contexts, an artifact names no commit, another writer posted a newer status,
//	         or the forge did not accept a status
//	Unknown  a change of state is being posted
//	True     the forge shows every status
func (b *Book) setReported(obj conditions.Setter) {
	const condition = v1alpha1.CommitStatusReportedCondition
	troubles, _ := b.desk.deliverer.Troubles(b.key.String())
	foreign := slices.IndexFunc(b.marks, func(m commitstatus.Mark) bool { return m.Foreign != nil })
	switch {
	case b.owner != "":
		conditions.MarkFalse(obj, condition, v1alpha1.OwnershipConflictReason,
			"the commit status context belongs to source %s, which reports to the same repository; "+
				"nothing is reported until spec.commitStatus.context of one of the two differs", b.owner)
	case b.unnamed:
		conditions.MarkFalse(obj, condition, v1alpha1.DeliveryFailedReason,
			"the artifact names no commit that could have a status; push it with --revision=<branch>@sha1:<commit>")
	case len(b.marks) == 0:
		conditions.Delete(obj, condition)
	case b.err != nil:
		conditions.MarkFalse(obj, condition, v1alpha1.DeliveryFailedReason, "%s", b.err)
	case foreign >= 0:
		m := b.marks[foreign]
		conditions.MarkFalse(obj, condition, v1alpha1.OwnershipConflictReason,
			"%s on commit %.10s shows %q, which another client wrote, or this operator before its objects were restored; "+
				"set spec.commitStatus.context to a context of its own, or replace the status with addonflow reconcile source %s --force",
			m.Context, m.SHA, m.Foreign.State+": "+m.Foreign.Description, b.source)
	case len(troubles) > 0:
		conditions.MarkFalse(obj, condition, v1alpha1.DeliveryFailedReason,
			"the forge has not accepted %s: %s", count(len(troubles)), troubles[0].Text)
	case slices.ContainsFunc(b.marks, turning):
		conditions.MarkUnknown(obj, condition, meta.ProgressingReason, "commit statuses are being posted")
	default:
		conditions.MarkTrue(obj, condition, v1alpha1.DeliveredReason, "the forge accepted every commit status")
	}
}

// turning reports whether the forge shows a state other than that of the mark. A difference in the text does not
// count. Nor does a verdict that is to become pending again, because the number of pending posts is limited.
func turning(m commitstatus.Mark) bool {
	last := commitstatus.Last(m)
	return !commitstatus.Delivered(m) && last != nil &&
		(m.Accepted == nil || m.Accepted.State != last.State && commitstatus.State(last.State).Terminal())
}

func count(n int) string {
	if n == 1 {
		return "1 commit status"
	}
	return fmt.Sprintf("%d commit statuses", n)
}

// Deliver enqueues the marks for posting and returns at once. It returns the time until the object must be reconciled
// for them; zero: never. It is called after the status was written.
func (b *Book) Deliver() time.Duration {
	if b.line == "" {
		if len(b.marks) == 0 {
			b.desk.deliverer.Forget(b.key.String())
		}
		return b.retry
	}
	return b.desk.deliverer.Enqueue(b.line, b.key.String(), b.marks, b.began)
}
