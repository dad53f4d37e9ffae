package addonsource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/rollout"
)

// Comments are read every commentsAgain when a gate begins to wait for a comment. The longer it waits, the longer is
// the pause, up to commentsRarely. commentsTimeout limits one visit, which takes a place of the controller.
const (
	commentsAgain   = 20 * time.Second
	commentsRarely  = 5 * time.Minute
	commentsTimeout = 15 * time.Second
)

// levelsAtOnce limits the requests of one visit. Every user who sees a pull request can comment, and each account
// costs a request for its permission. For one gate, a visit reads the permissions of as many accounts as must
// approve, plus levelsAtOnce.
const levelsAtOnce = 5

// commitsAtOnce is the number of commits whose pull requests one visit looks up, and requestsAtOnce the number of pull
// requests whose comments it reads. GitHub's limiter allows 35 calls in a visit.
const (
	commitsAtOnce  = 10
	requestsAtOnce = 10
)

// commitSettles is the time after the target was set in which a forge may not show yet with which pull request a commit
// was merged.
const commitSettles = 2 * time.Minute

// loginShown is how many characters of an account's name an event has.
const loginShown = 60

// reasonLimit is how many characters of a comment an AddOnApproval keeps. keptLimit is how many characters of it are
// kept between two visits.
const (
	reasonLimit = 1024
	keptLimit   = 2 * reasonLimit
)

// Approver creates AddOnApprovals for the decisions that accounts of a forge made by comments. It is a separate
// controller, so that no forge delays a rollout. Comments are read only while a gate waits for them. Nothing about
// them is stored except the AddOnApprovals.
type Approver struct {
	*Reconciler

	mu      sync.Mutex
	origins map[types.NamespacedName]*origin
}

// NewApprover returns an approver that connects to forges as the reconciler does.
func NewApprover(r *Reconciler) *Approver {
	return &Approver{Reconciler: r, origins: map[types.NamespacedName]*origin{}}
}

// origin has the commits that were merged or pushed after the stable content of a rollout, up to its target. The
// target names the newest commit at the time of the read. That commit may be later than the one that introduced the
// content. An origin is kept between two visits. Without it, the operator requests the forge's answers again.
type origin struct {
	// of is the target, and line has its commit and the earlier ones. host is the forge that has the accounts.
	of   v1alpha1.Target
	host string
	line []lineCommit
	// whole: no commit is missing in the line.
	whole bool
	// visits counts the visits that read comments.
	visits int
	// announced is the event about the requests.
	announced string
	// uncounted are the events about comments that do not count.
	uncounted []string
	// turn counts the requests for a permission that let no account decide. turns has the newest one by gate and account.
	turn  int
	turns map[string]turn
}

// turn is the newest request for the permission of an account.
type turn struct {
	at int
	// refused: the forge answered, now or earlier, that the account does not have the permission.
	refused bool
}

// lineCommit is a commit and its pull request.
type lineCommit struct {
	commitstatus.LineCommit
	// asked is when the forge was asked last for the request; zero: never. request is nil if the forge shows none.
	asked   time.Time
	request *mergedRequest
}

// settled reports whether it is known if a commit came with a request. since is when the target was set.
func (c *lineCommit) settled(since time.Time) bool {
	return c.request != nil || !c.asked.Before(since.Add(commitSettles))
}

// due reports whether the request is looked up now. After the commit has settled, the pause doubles each time.
func (c *lineCommit) due(now, since time.Time) bool {
	pause := commentsAgain
	if c.settled(since) {
		pause = c.asked.Sub(since)
	}
	return c.request == nil && now.Sub(c.asked) >= pause
}

// mergedRequest is a pull request with the decisions in its comments.
type mergedRequest struct {
	commitstatus.MergedRequest
	decisions []commitstatus.Comment
	// authors opened the request, or are authors or committers of its commits; nil: not read yet.
	authors []commitstatus.Account
	// tried is the last visit that requested the comments, and read the last one that got them; 0: none.
	tried, read int
}

// authored returns why an account may have authored the content; "": it did not.
func (b *origin) authored(by commitstatus.Account) string {
	if !b.whole {
		return "too many commits were merged since the stable content to know their authors; approve with addonflow approve"
	}
	for _, c := range b.line {
		authors, of := []commitstatus.Account{c.Author}, fmt.Sprintf("commit %.10s", c.SHA)
		if c.request != nil {
			authors, of = c.request.authors, fmt.Sprintf("pull request %d (%s)", c.request.Number, of)
		}
		switch {
		case authors == nil:
			return "the authors of " + of + " cannot be read; approve with addonflow approve"
		case slices.ContainsFunc(authors, func(author commitstatus.Account) bool { return author.ID == 0 }):
			return "the forge does not name all authors of " + of + "; approve with addonflow approve"
		case slices.ContainsFunc(authors, func(author commitstatus.Account) bool { return author.ID == by.ID }):
			return "the account is the author of " + of + "; another account must comment"
		}
	}
	return ""
}

// requests are the pull requests of the line, the newest first.
func (b *origin) requests() (all []*mergedRequest) {
	for _, c := range b.line {
		if c.request != nil {
			all = append(all, c.request)
		}
	}
	return all
}

// read looks up the commits of the target and their pull requests, in several visits if needed; false: they are not
// known yet. While no content is stable, it looks up only the commit of the target.
func (b *origin) read(ctx context.Context, from commitstatus.Comments, status *v1alpha1.AddOnRolloutStatus, branch string, now time.Time) (known bool, err error) {
	if b.of != *status.Target || b.host != from.Host() {
		next := origin{of: *status.Target, host: from.Host()}
		sha := v1alpha1.CommitOf(next.of.Commit)
		line, whole := []commitstatus.LineCommit{{SHA: sha}}, true
		if status.Stable != nil && strings.Contains(status.Stable.Commit, "sha1:") && status.Stable.Commit != next.of.Commit {
			if line, whole, err = from.Line(ctx, sha, v1alpha1.CommitOf(status.Stable.Commit)); err != nil {
				return false, err
			}
		}
		next.whole = whole
		for _, c := range line {
			next.line = append(next.line, lineCommit{LineCommit: c})
		}
		*b = next
	}
	var since time.Time
	if status.TargetSince != nil {
		since = status.TargetSince.Time
	}
	var due []*lineCommit
	for i := range b.line {
		if c := &b.line[i]; c.due(now, since) {
			due = append(due, c)
		}
	}
	slices.SortStableFunc(due, func(x, y *lineCommit) int { return x.asked.Compare(y.asked) })
	for _, c := range due[:min(commitsAtOnce, len(due))] {
		merged, found, err := from.Merged(ctx, c.SHA, branch)
		if err != nil {
			return false, err
		}
		if c.asked = now; !found {
			continue
		}
		if c != &b.line[0] && merged.At.Before(since) {
			merged.At = since // earlier comments may be about other content with the same ten digits
		}
		c.request = &mergedRequest{MergedRequest: merged}
	}
	return !slices.ContainsFunc(b.line, func(c lineCommit) bool { return !c.settled(since) }), nil
}

// readAuthors reads the authors of the requests, in several visits if needed; false: they are not known yet.
func (b *origin) readAuthors(ctx context.Context, from commitstatus.Comments) (known bool, err error) {
	left := requestsAtOnce
	for _, r := range b.requests() {
		if r.authors != nil {
			continue
		}
		if left--; left < 0 {
			return false, nil
		}
		authors, err := from.Authors(ctx, r.MergedRequest)
		if err != nil {
			return false, fmt.Errorf("request %d: %w", r.Number, err)
		}
		r.authors = slices.Concat([]commitstatus.Account{r.Author}, authors)
	}
	return true, nil
}

// announcement is the event about the requests whose comments are read.
func (b *origin) announcement(branch string) (kind, reason, text string) {
	var numbers []string
	for _, r := range b.requests() {
		numbers = append(numbers, strconv.FormatInt(r.Number, 10))
	}
	if len(numbers) == 0 {
		return corev1.EventTypeWarning, "ApprovalsNotRead",
			fmt.Sprintf("no pull request into %s brought commit %.10s; approve with addonflow approve", branch, v1alpha1.CommitOf(b.of.Commit))
	}
	return corev1.EventTypeNormal, "ApprovalsAwaited", "comments on pull request " + strings.Join(numbers, ", ") + " are read for approvals"
}

// readComments reads the comments of the newest request, and of those that were tried the longest ago. all: the comments
// of every request were read once, so that no rejection is missed.
func (b *origin) readComments(ctx context.Context, from commitstatus.Comments) (all bool, err error) {
	b.visits++
	order := b.requests()
	slices.SortStableFunc(order[min(1, len(order)):], func(x, y *mergedRequest) int { return cmp.Compare(x.tried, y.tried) })
	for _, r := range order[:min(requestsAtOnce, len(order))] {
		failed := r.readComments(ctx, from, b.visits)
		err = cmp.Or(err, failed)
		if refused, ok := errors.AsType[*commitstatus.DeliveryError](failed); ctx.Err() != nil || ok && refused.Everyone {
			break
		}
		r.tried = b.visits
	}
	return !slices.ContainsFunc(order, func(r *mergedRequest) bool { return r.read == 0 }), err
}

// readComments replaces the decisions of a request.
func (r *mergedRequest) readComments(ctx context.Context, from commitstatus.Comments, visit int) error {
	comments, err := from.After(ctx, r.MergedRequest)
	if err != nil {
		return fmt.Errorf("request %d: %w", r.Number, err)
	}
	r.decisions, r.read = nil, visit
	for _, c := range comments {
		if _, ok := gates.ParseComment(c.Body); ok {
			c.Body = brief.Cut(c.Body, keptLimit)
			r.decisions = append(r.decisions, c)
		}
	}
	return nil
}

// comments are the decisions in all requests, the oldest first.
func (b *origin) comments() (all []commitstatus.Comment) {
	for _, r := range b.requests() {
		all = append(all, r.decisions...)
	}
	slices.SortFunc(all, func(x, y commitstatus.Comment) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

// readAgain reads the comments of requests that an earlier visit read, if one of them decides, because it may be
// edited or deleted since; false: there is no such request.
func (b *origin) readAgain(ctx context.Context, from commitstatus.Comments, decided []v1alpha1.AddOnApproval) (again bool, err error) {
	for _, r := range b.requests() {
		if r.read == b.visits || !slices.ContainsFunc(r.decisions, func(c commitstatus.Comment) bool {
			return slices.ContainsFunc(decided, func(d v1alpha1.AddOnApproval) bool { return d.Spec.Forge.CommentID == c.ID })
		}) {
			continue
		}
		if err := r.readComments(ctx, from, b.visits); err != nil {
			return false, err
		}
		again = true
	}
	return again, nil
}

// originOf returns the origin that the last visit of a rollout left. Only one worker reconciles a key at a time.
func (a *Approver) originOf(key types.NamespacedName) *origin {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.origins[key] == nil {
		a.origins[key] = &origin{}
	}
	return a.origins[key]
}

// forget drops the origin of a rollout that waits for no comment.
func (a *Approver) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.origins, key)
}

// SetupWithManager registers the controller.
func (a *Approver) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("approvalcomments").
		For(&v1alpha1.AddOnRollout{}, builder.WithPredicates(awaits())).
		WithOptions(options).
		Complete(a)
}

// awaits lets rollouts pass that begin to wait for comments.
func awaits() predicate.Predicate {
	waiting := func(o client.Object) []awaitedGate {
		if r, ok := o.(*v1alpha1.AddOnRollout); ok {
			return awaited(r)
		}
		return nil
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return len(waiting(e.Object)) > 0 },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			now := waiting(e.ObjectNew)
			same := func(x, y awaitedGate) bool { return x.subject == y.subject && x.passed == y.passed }
			return len(now) > 0 && !slices.EqualFunc(waiting(e.ObjectOld), now, same)
		},
	}
}

// awaitedGate is a gate that waits for comments, or that passed and admitted no cluster yet.
type awaitedGate struct {
	spec    v1alpha1.ApprovalGate
	subject gates.Subject
	// since is when the gate entered its state, and began when it got its first state in the attempt.
	since, began time.Time
	// passed: only a rejection can change its verdict.
	passed bool
	// used is the newest comment that was entered, even if its AddOnApproval was deleted. It does not exclude a rejection:
	// an older one may be read later, and after one that was entered the gate waits for no comment.
	used int64
}

// awaited are the gates of a rollout whose verdict a comment can change, according to its status. EvaluatedAt is set
// when the approval was used.
func awaited(r *v1alpha1.AddOnRollout) []awaitedGate {
	target := r.Status.Target
	if target == nil || r.Status.ObservedGeneration != r.Generation || r.Status.Override.Returns() || !r.DeletionTimestamp.IsZero() {
		return nil
	}
	var found []awaitedGate
	for _, declared := range r.Spec.Stages {
		at := slices.IndexFunc(r.Status.Stages, func(s v1alpha1.StageStatus) bool { return s.Name == declared.Name })
		if declared.Gates == nil || at < 0 || over(r.Status.Stages[at].Phase) {
			continue
		}
		for _, g := range declared.Gates.Before {
			i := slices.IndexFunc(r.Status.Stages[at].Gates, func(s v1alpha1.GateStatus) bool {
				open := s.State == v1alpha1.GateWaiting || s.State == v1alpha1.GatePassed && s.EvaluatedAt == nil
				return s.Name == g.Name && s.When == v1alpha1.GateBefore && s.Type == v1alpha1.GateApproval && open && s.Since != nil
			})
			if g.Approval == nil || g.Approval.Forge == nil || i < 0 {
				continue
			}
			verdict := r.Status.Stages[at].Gates[i]
			found = append(found, awaitedGate{
				spec: *g.Approval, since: verdict.Since.Time, began: cmp.Or(verdict.BeganAt, verdict.Since).Time, passed: verdict.State == v1alpha1.GatePassed, used: verdict.LastComment,
				subject: gates.Subject{
					Namespace: r.Namespace, RolloutUID: r.UID, Stage: declared.Name, Gate: g.Name, Digest: target.Digest, Attempt: r.Status.Attempt,
				},
			})
		}
	}
	return found
}

// over reports whether a stage waits for no gate any more.
func over(phase string) bool {
	return phase == rollout.StageComplete || phase == rollout.StageNothingToDo
}

// byComment is what the token is used for, in conditions.
const byComment = "approvals by comment"

// Reconcile reads the comments for which the gates of a rollout wait. An error of the forge becomes an event, and is
// retried.
func (a *Approver) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	rollout := &v1alpha1.AddOnRollout{}
	if err := a.Live.Get(ctx, req.NamespacedName, rollout); err != nil {
		if apierrors.IsNotFound(err) {
			a.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read the rollout: %w", err)
	}
	waiting := awaited(rollout)
	key, ok := namespacedName(rollout.Annotations[v1alpha1.SourceAnnotation])
	about := forge.Key{Kind: v1alpha1.AddOnRolloutKind, NamespacedName: req.NamespacedName}
	if len(waiting) == 0 || !ok || key.Namespace != rollout.Namespace || !strings.Contains(rollout.Status.Target.Commit, "sha1:") {
		a.forget(req.NamespacedName)
		a.Desk.Use(about, byComment, "", nil)
		return ctrl.Result{}, nil
	}
	after, source := a.pause(waiting), &v1alpha1.AddOnSource{}
	if err := a.Live.Get(ctx, key, source); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: after}, nil // it may be created again, and the gate still waits
		}
		return ctrl.Result{}, fmt.Errorf("cannot read the source: %w", err)
	}
	all, permission, err := a.enter(ctx, rollout, source, waiting)
	a.Desk.Use(about, byComment, permission, err)
	if !all && err == nil {
		after = commentsAgain
	}
	if refused, ok := errors.AsType[*commitstatus.DeliveryError](err); ok {
		after = max(after, min(refused.RetryAfter, 10*time.Minute))
		if refused.Denied != "" {
			err = fmt.Errorf("%w; the token needs %s", err, permission)
		}
	}
	if err != nil && ctx.Err() == nil {
		ctrl.LoggerFrom(ctx).Info("Cannot read approvals by comment", "error", err.Error())
		a.Events.Event(rollout, corev1.EventTypeWarning, "ApprovalsNotRead", "cannot read approvals by comment: "+err.Error())
	}
	return ctrl.Result{RequeueAfter: after}, nil
}

// pause is the time until comments are read again: a twentieth of the time for which the newest gate waits.
func (a *Approver) pause(waiting []awaitedGate) time.Duration {
	newest := slices.MaxFunc(waiting, func(x, y awaitedGate) int { return x.since.Compare(y.since) })
	return min(max(a.Clock().Sub(newest.since)/20, commentsAgain), commentsRarely)
}

// enter creates the AddOnApprovals for the comments on the pull request of the target. all: everything was read once,
// and every rejection was judged.
// The error is fit for an event; permission is the permission that the token needs.
func (a *Approver) enter(ctx context.Context, rollout *v1alpha1.AddOnRollout, source *v1alpha1.AddOnSource, waiting []awaitedGate) (all bool, permission string, err error) {
	hub := ctx // the AddOnApprovals are created even if the forge is slow
	ctx, cancel := context.WithTimeout(ctx, commentsTimeout)
	defer cancel()
	branch := forge.Branch(source)
	switch {
	case source.Spec.CommitStatus == nil:
		return false, "", errors.New("spec.commitStatus of the source is not set")
	case branch == "":
		return false, "", errors.New("the source follows no branch")
	}
	from, err := a.Desk.Comments(ctx, source)
	if err != nil {
		return false, "", err
	}
	last := a.originOf(client.ObjectKeyFromObject(rollout))
	known, err := last.read(ctx, from, &rollout.Status, branch, a.Clock())
	if err != nil || !known {
		return false, from.Permission(), err
	}
	if kind, reason, text := last.announcement(branch); text != last.announced {
		a.Events.Event(rollout, kind, reason, text)
		last.announced = text
	}
	var unread error // authors that cannot be read hold only gates with notAuthor
	if slices.ContainsFunc(waiting, func(g awaitedGate) bool { return g.spec.Forge.NotAuthor }) {
		if known, unread = last.readAuthors(ctx, from); !known && unread == nil {
			return false, from.Permission(), nil
		}
	}
	all, err = last.readComments(ctx, from)
	if unread = cmp.Or(unread, err); !all {
		return false, from.Permission(), unread
	}
	// Uncached, because earlier entries must be seen.
	var list v1alpha1.AddOnApprovalList
	if err := a.Live.List(hub, &list, client.InNamespace(rollout.Namespace)); err != nil {
		return false, "", fmt.Errorf("cannot list approvals: %w", err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := a.Client.Create(hub, review); err != nil {
		return false, "", fmt.Errorf("cannot ask the hub for the operator's account: %w", err)
	}
	operator := review.Status.UserInfo.Username
	entered := gates.Entered(list.Items, operator, from.Host())
	asked := newLevels(from, last, func(text string) { a.Events.Event(rollout, corev1.EventTypeWarning, "ApprovalsNotRead", text) })
	for _, gate := range waiting {
		var decided []v1alpha1.AddOnApproval
		for again := true; again; {
			decided, err = gate.decisions(ctx, rollout, asked, last.comments(), gate.subject.Of(entered))
			unread = cmp.Or(unread, err)
			if again, err = last.readAgain(ctx, from, decided); err != nil {
				return false, from.Permission(), err
			}
		}
		for i := range decided {
			decided[i].Spec.Approver = operator
			if err := a.create(hub, rollout, &decided[i]); err != nil {
				return false, "", fmt.Errorf("cannot enter the decision of %s: %w", decided[i].Spec.Forge, err)
			}
		}
	}
	return !asked.unjudged, from.Permission(), unread
}

// create creates an AddOnApproval. Every user who may create AddOnApprovals can take its name first, so a different
// object with this name gets an event.
func (a *Approver) create(ctx context.Context, rollout *v1alpha1.AddOnRollout, decision *v1alpha1.AddOnApproval) error {
	err := a.Client.Create(ctx, decision, client.FieldOwner(v1alpha1.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	known, want := &v1alpha1.AddOnApproval{}, decision.Spec
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(decision), known); err != nil {
		return client.IgnoreNotFound(err) // deleted since; the next visit creates it
	}
	if !equality.Semantic.DeepEqual(known.Spec, want) {
		a.Events.Event(rollout, corev1.EventTypeWarning, "ApprovalsNotRead", fmt.Sprintf(
			"AddOnApproval %s is not the decision of comment %d by %s on gate %s of stage %s, but has its name: "+
				"delete it, so that the decision can be entered",
			known.Name, want.Forge.CommentID, brief.Line(want.Forge.Login, loginShown), want.Gate, want.Stage))
	}
	return nil
}

// levels reads the permissions of accounts, once for all gates of a visit.
type levels struct {
	from  commitstatus.Comments
	known map[commitstatus.Account]level
	*origin
	event func(text string)
	// unjudged: the forge did not answer yet about an account that rejects.
	unjudged bool
}

// level is the forge's answer about an account.
type level struct {
	commitstatus.Level
	err error
}

func newLevels(from commitstatus.Comments, o *origin, event func(text string)) *levels {
	if o.turns == nil {
		o.turns = map[string]turn{}
	}
	return &levels{from: from, known: map[commitstatus.Account]level{}, origin: o, event: event}
}

// mostUncounted is how many comments about one content get an event, because every account may write comments.
const mostUncounted = 5

// ignore says once why a comment does not count.
func (l *levels) ignore(text string) {
	said := &l.uncounted
	if len(*said) < mostUncounted && !slices.Contains(*said, text) {
		*said = append(*said, text)
		l.event(text)
	}
}

// voice is the decision of one account on a gate.
type voice struct {
	by        commitstatus.Account
	decisions []v1alpha1.AddOnApproval
}

// voices are by account, in the order of their first comment.
type voices []voice

func (v *voices) add(by commitstatus.Account, d v1alpha1.AddOnApproval) {
	i := slices.IndexFunc(*v, func(known voice) bool { return known.by.ID == by.ID })
	if i < 0 {
		*v, i = append(*v, voice{by: by}), len(*v)
	}
	(*v)[i].decisions = append((*v)[i].decisions, d)
}

// decisions are the AddOnApprovals to create for a gate. If there is a rejection, it is the rejection. It is none until
// the forge answered about every account that rejects, because an approval may start the stage. Then it is all approvals,
// if they are enough together with the existing ones; until then it is none, so that the permission of an account is
// read when its comment is used. If the permission of an account that approves cannot be read, the decisions of the
// other accounts count, and the error is returned with them.
func (g awaitedGate) decisions(
	ctx context.Context, rollout *v1alpha1.AddOnRollout, asked *levels,
	comments []commitstatus.Comment, known []v1alpha1.AddOnApproval,
) ([]v1alpha1.AddOnApproval, error) {
	var rejects, approvals voices
	for _, c := range comments {
		said, ok := gates.ParseComment(c.Body)
		switch {
		case !ok || c.Edited || !said.Is(rollout.Name, g.subject) || !gates.IsForgeApprover(*g.spec.Forge, c.By.Login):
			continue
		case g.passed && said.Decision == v1alpha1.Approve:
			continue
		case c.ID <= g.used && said.Decision == v1alpha1.Approve: // the comment was used, or its decision was withdrawn
			continue
		case g.subject.Attempt > 1 && c.Created.Before(g.began): // the comment was about an earlier attempt
			continue
		case slices.ContainsFunc(known, func(k v1alpha1.AddOnApproval) bool {
			return k.Spec.Forge != nil && k.Spec.Forge.Host == asked.from.Host() && k.Spec.Forge.CommentID == c.ID
		}):
			continue
		}
		if why := asked.authored(c.By); why != "" && g.spec.Forge.NotAuthor {
			asked.ignore(fmt.Sprintf("comment %d by %s does not count for gate %s of stage %s, which has notAuthor: %s",
				c.ID, brief.Line(c.By.Login, loginShown), g.subject.Gate, g.subject.Stage, why))
			continue
		}
		decision := g.decision(rollout, said, v1alpha1.ForgeAuthor{
			Host: asked.from.Host(), Login: c.By.Login, AccountID: c.By.ID, CommentID: c.ID,
		})
		if said.Decision == v1alpha1.Reject {
			rejects.add(c.By, decision)
		} else {
			approvals.add(c.By, decision)
		}
	}
	rejected, unread := g.permitted(ctx, asked, rejects, func(found []v1alpha1.AddOnApproval) bool { return len(found) > 0 })
	if len(rejected) > 0 {
		return rejected, unread
	}
	if slices.ContainsFunc(rejects, func(v voice) bool { return !asked.turns[g.account(v)].refused }) {
		asked.unjudged = true
		if unread != nil {
			unread = fmt.Errorf("not every rejection of gate %s of stage %s is judged: %w", g.subject.Gate, g.subject.Stage, unread)
		}
		return nil, unread
	}
	enough := func(found []v1alpha1.AddOnApproval) bool {
		return gates.Approval(g.spec, slices.Concat(known, found)).State == v1alpha1.GatePassed
	}
	approved, err := g.permitted(ctx, asked, approvals, enough)
	if !enough(approved) {
		approved = nil
	}
	return approved, cmp.Or(unread, err)
}

// account identifies an account that decides on the gate in this attempt.
func (g awaitedGate) account(v voice) string {
	return fmt.Sprintf("%s/%s/%d/%d", g.subject.Stage, g.subject.Gate, g.subject.Attempt, v.by.ID)
}

// permitted are the decisions of accounts that may decide, until they are enough. The permissions of at most
// levelsAtOnce more accounts than must approve are read. Accounts that were never read come first, by their first
// comment; then accounts that were refused or could not be read, the longest ago first. So accounts without the
// permission delay the others, but cannot exclude them.
func (g awaitedGate) permitted(ctx context.Context, asked *levels, all voices, enough func([]v1alpha1.AddOnApproval) bool) (found []v1alpha1.AddOnApproval, unread error) {
	slices.SortStableFunc(all, func(x, y voice) int { return cmp.Compare(asked.turns[g.account(x)].at, asked.turns[g.account(y)].at) })
	left := levelsAtOnce + gates.Wanted(g.spec)
	for _, v := range all {
		if enough(found) {
			break
		}
		read, ok := asked.known[v.by]
		if !ok {
			if left--; left < 0 {
				break
			}
			if read.Level, read.err = asked.from.Level(ctx, v.by); read.err != nil {
				read.err = fmt.Errorf("permission of %s: %w", brief.Line(v.by.Login, loginShown), read.err)
				if refused, ok := errors.AsType[*commitstatus.DeliveryError](read.err); ctx.Err() != nil || ok && refused.Everyone {
					return found, cmp.Or(unread, read.err)
				}
			}
			asked.known[v.by] = read
		}
		unread = cmp.Or(unread, read.err)
		if read.err == nil && read.Level >= levelOf(g.spec.Forge.Permission) {
			found = append(found, v.decisions...)
			continue
		}
		asked.turn++
		asked.turns[g.account(v)] = turn{at: asked.turn, refused: read.err == nil || asked.turns[g.account(v)].refused}
	}
	return found, unread
}

// levelOf returns the level that an account needs. An unknown permission counts as the highest.
func levelOf(p v1alpha1.ForgePermission) commitstatus.Level {
	switch p {
	case v1alpha1.ForgeWrite:
		return commitstatus.LevelWrite
	case v1alpha1.ForgeMaintain, "":
		return commitstatus.LevelMaintain
	case v1alpha1.ForgeAdmin:
	}
	return commitstatus.LevelAdmin
}

// decision is the AddOnApproval of a comment. Its name follows from comment and gate, so that it is created once.
func (g awaitedGate) decision(rollout *v1alpha1.AddOnRollout, said gates.Comment, by v1alpha1.ForgeAuthor) v1alpha1.AddOnApproval {
	s := g.subject
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%d\n%s\n%d", s.RolloutUID, s.Stage, s.Gate, s.Digest, s.Attempt, by.Host, by.CommentID))
	return v1alpha1.AddOnApproval{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rollout.Namespace, Name: fmt.Sprintf("%.200s-%s", rollout.Name, hex.EncodeToString(sum[:5])),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AddOnRolloutKind, Name: rollout.Name, UID: rollout.UID,
			}},
		},
		Spec: v1alpha1.AddOnApprovalSpec{
			RolloutUID: s.RolloutUID, Rollout: rollout.Name, Stage: s.Stage, Gate: s.Gate, Digest: s.Digest, Attempt: s.Attempt,
			Decision: said.Decision, Comment: brief.Cut(said.Reason, reasonLimit), Forge: &by,
		},
	}
}
