package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/rollout"
)

// ledgerKey names the ledger of a rollout's commit statuses.
func ledgerKey(key client.ObjectKey) forge.Key {
	return forge.Key{Kind: v1alpha1.AddOnRolloutKind, NamespacedName: key}
}

// openLedger says what the commits are to be told: one context for the add-on and
// one per stage, on the commit that brought the target. A commit that was overtaken
// is told by whom.
func (r *Reconciler) openLedger(o *observation, t *turn) *forge.Ledger {
	ro := o.rollout
	l := r.Desk.Open(ledgerKey(client.ObjectKeyFromObject(ro)), ro.Status.CommitReports)
	if o.source == nil || t.next.Target == nil {
		return l
	}
	sha := commitOf(t.next.Target.Commit)
	if old := t.before.Target; old != nil && commitOf(old.Commit) != sha {
		passOnRemovals(l, o, commitOf(old.Commit), sha)
		l.SupersedeOne(commitOf(old.Commit), sha)
	}
	if requested(ro) {
		l.Retry()
	}
	said := summaries(t)
	if t.err == nil && t.plan.Guard == "" && slices.Contains(l.Open(sha), contextName(o, rollout.RemovalContext)) {
		said = append(said, rollout.RemovalOver())
	}
	said = append(said, removed(l.Reports(), sha, contextName(o, rollout.OverdueContext), t)...)
	for _, s := range said {
		want(l, statusOf(o, sha, contextName(o, s.Context), s), s, t.plan)
	}
	switch {
	case t.err == nil && allSettled(o.placements):
		endDropped(l, o, sha, said)
	case t.err != nil && said[0].State == rollout.Failure:
		endStopped(l, o, sha, said[0])
	}
	l.Prune(sha)
	return l
}

// want tells a commit what is said of one context. Where a failure is judged anew, it is
// pending first: a verdict is final per attempt.
func want(l *forge.Ledger, status commitstatus.Status, s rollout.Summary, plan rollout.Plan) {
	if s.State == rollout.Failure && outlived(l.Reports(), status, failing(plan, s.Context)) {
		again := status
		again.State = commitstatus.Pending
		l.Want(again, s.Percent)
	}
	l.Want(status, s.Percent)
}

// outlived reports whether the failure that a commit was told last names none of the
// clusters that fail now: whoever mended those would look for them in vain. It is judged
// anew then. A failure that has grown, or has other words by now, stands as it was told.
func outlived(reports []commitstatus.Report, now commitstatus.Status, failing []string) bool {
	told := ""
	for _, r := range reports { // attempts stand in order
		if r.SHA == now.SHA && r.Context == now.Context {
			told = ""
			if r.State == commitstatus.Failure {
				told = r.Description
			}
		}
	}
	return told != "" && len(failing) > 0 &&
		!slices.ContainsFunc(failing, func(name string) bool { return names(told, name) })
}

// names tells whether a text gives the reason of a cluster: east is not named by what it
// says of north-east.
func names(told, cluster string) bool {
	return strings.Contains(told, " "+cluster+": ") || strings.Contains(told, "("+cluster+": ")
}

// failing are the clusters that failed in a stage, and in all for "".
func failing(p rollout.Plan, stage string) []string {
	var names []string
	for _, c := range p.Clusters {
		if (c.State == rollout.Failed || c.State == rollout.TimedOut) && (stage == "" || c.Stage == stage) {
			names = append(names, c.Name)
		}
	}
	return names
}

// passOnRemovals ends, on a commit that was overtaken, what it was told of clusters that
// wait to be removed: they go on waiting, which is told of the new one, and the old one is
// none the worse for it.
func passOnRemovals(l *forge.Ledger, o *observation, oldSHA, newSHA string) {
	context := contextName(o, rollout.RemovalContext)
	if !slices.Contains(l.Open(oldSHA), context) {
		return
	}
	s := rollout.RemovalOver()
	s.Description = "told of " + newSHA[:min(len(newSHA), 10)] + " from now on"
	l.Want(statusOf(o, oldSHA, context, s), s.Percent)
}

// statusOf is a summary as a forge shows it.
func statusOf(o *observation, sha, context string, s rollout.Summary) commitstatus.Status {
	return commitstatus.Status{
		SHA: sha, Context: context, State: commitstatus.State(s.State),
		Description: commitstatus.Describe(commitstatus.DescriptionLimit, commitstatus.Text{Head: s.Description}),
		TargetURL:   forge.TargetURL(o.source),
	}
}

// endDropped sees to contexts that nobody reports any more on the same commit: of a
// stage that a change of policy dropped, or of a name that the source does not use any
// more. They end with the add-on, in its state: ended sooner, a required check would
// turn green unproven, or stay red on a commit that is good.
func endDropped(l *forge.Ledger, o *observation, sha string, said []rollout.Summary) {
	whole := said[0]
	known := map[string]bool{}
	for _, s := range said {
		known[contextName(o, s.Context)] = true
	}
	for _, context := range l.Open(sha) {
		if known[context] {
			continue
		}
		s := rollout.Summary{State: whole.State, Description: "no longer reported apart: ends with the add-on", Percent: whole.Percent}
		if whole.State != rollout.Pending {
			s.Description = "no longer reported apart; " + whole.Description
		}
		l.Want(statusOf(o, sha, context, s), s.Percent)
	}
}

// endStopped ends the stages of a commit whose add-on is stopped by what somebody must
// mend: nothing that they told last, such as who is in flight, is sure to hold. Who waits to
// be removed goes on waiting.
func endStopped(l *forge.Ledger, o *observation, sha string, whole rollout.Summary) {
	for _, context := range l.Open(sha) {
		switch context {
		case contextName(o, ""), contextName(o, rollout.RemovalContext), contextName(o, rollout.OverdueContext):
			continue
		}
		s := rollout.Summary{State: whole.State, Description: "stopped: " + whole.Description, Percent: whole.Percent}
		l.Want(statusOf(o, sha, context, s), s.Percent)
	}
}

// allSettled reports whether every placement can be relied upon; where one cannot,
// the stages of its decision groups may be missing for a moment.
func allSettled(placements []rollout.Placement) bool {
	return !slices.ContainsFunc(placements, func(p rollout.Placement) bool {
		return p.Existence != rollout.Exists || p.Settlement != rollout.Settled
	})
}

// removed takes back that removals are overdue, where the commit was told so.
func removed(reports []commitstatus.Report, sha, context string, t *turn) []rollout.Summary {
	overdue := slices.ContainsFunc(reports, func(r commitstatus.Report) bool {
		return r.SHA == sha && r.Context == context && r.State == commitstatus.Failure
	})
	if t.err != nil || t.plan.Overdue != "" || !overdue {
		return nil
	}
	return []rollout.Summary{{
		Context: rollout.OverdueContext, State: rollout.Success, Description: "no removal is overdue any more", Percent: 100,
	}}
}

// summaries is what the add-on and its stages say; with a verdict that stops the
// plan, the add-on says that, and no stage says anything but that it is stopped.
func summaries(t *turn) []rollout.Summary {
	if t.err == nil {
		return rollout.Summarise(t.plan)
	}
	s := rollout.Summary{State: rollout.Pending, Description: t.verdict.message}
	if t.verdict.stalled != "" {
		s.State = rollout.Failure
	}
	return []rollout.Summary{s}
}

// contextName is the context of the add-on, or of a part of it.
func contextName(o *observation, part string) string {
	if part == "" {
		return forge.ContextName(o.source, o.rollout.Name)
	}
	return forge.ContextName(o.source, o.rollout.Name, part)
}

// commitOf returns the sha of <ref>@sha1:<sha>, or "".
func commitOf(revision string) string {
	_, sha, _ := strings.Cut(revision, "sha1:")
	return sha
}

// settle enters the ledger of commit statuses into the status about to be written.
func (r *Reconciler) settle(ctx context.Context, o *observation, t turn) {
	if o.source != nil {
		t.ledger.Address(ctx, o.source)
	}
	o.rollout.Status.CommitReports = t.ledger.Stored()
	t.ledger.Mark(o.rollout)
}

// noteSuccess writes succeeded-at onto the target's revision.
func (r *Reconciler) noteSuccess(ctx context.Context, ro *v1alpha1.AddOnRollout) error {
	rev := &metav1.PartialObjectMetadata{}
	rev.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
	rev.Namespace, rev.Name = ro.Namespace, ro.Spec.Target.Revision
	at := r.Clock.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.SucceededAtAnnotation, at)
	if err := r.Client.Patch(ctx, rev, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("cannot note the success of revision %s: %w", rev.Name, err)
	}
	return nil
}

// report sends commit statuses for the status that was just written, and says when to
// look again.
func (r *Reconciler) report(o *observation, t turn, wrote applied, now time.Time) ctrl.Result {
	ro := o.rollout
	r.gauges.set(ro)
	after := t.ledger.Deliver()
	if !t.plan.RecheckAt.IsZero() {
		after = sooner(after, max(t.plan.RecheckAt.Sub(now), r.Pace))
	}
	if o.unseen {
		after = sooner(after, unseenFor)
	}
	if wrote.unfinished {
		after = sooner(after, r.Pace)
	}
	if wrote.created {
		after = sooner(after, unseenFor)
	}
	if o.retries() {
		after = sooner(after, configRetry)
	}
	after = sooner(after, againAfter(wrote.troubles))
	if errors.Is(t.err, errOwnership) {
		after = sooner(after, ownerAgain)
	}
	return ctrl.Result{RequeueAfter: after}
}

// sooner returns the shorter of two waits, where 0 means that there is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 {
		return b
	}
	if b <= 0 {
		return a
	}
	return min(a, b)
}

// ownerAgain is how long whose the add-on is goes without a look while another source
// has it: nothing wakes a rollout when that ends.
const ownerAgain = time.Minute

// retryAfter is how long after a failed write it is tried again.
const retryAfter = 15 * time.Second

// heldFor is how long clusters are held before the missing revision is looked for again.
const heldFor = 10 * time.Minute

// againAfter is when clusters in trouble are tried again; 0 without any. Nothing is
// returned to the queue as an error: backing off for one cluster would hold the clocks
// of all others.
func againAfter(troubles map[string]trouble) time.Duration {
	after := time.Duration(0)
	for _, t := range troubles {
		if t.reason == v1alpha1.ApplyFailedReason {
			return retryAfter
		}
		after = heldFor // the body may be restored, which wakes us; this is for the rest
	}
	return after
}
