package addonsource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
)

// openBook enters the statuses of commits in the source's own context, which summarises all add-ons:
//
//	the applied commit     failure if a rollout failed or is halted; pending while one moves
//	                       or is held for a decision; otherwise success
//	a newer commit         failure if it was refused; error if it cannot be judged; otherwise
//	                       pending
//	any other commit       see commitstatus.Overtake
//
// It writes an add-on's context only on commits whose content another commit replaced before the rollout saw it.
func (p *pass) openBook(ctx context.Context, out outcome, h *halt) (*forge.Book, error) {
	book := p.Desk.Open(p.key(), p.source, p.source.Status.CommitStatuses)
	if p.forced {
		book.Replace(p.source)
	}
	book.Retry(p.source, p.requestedAt())
	switch {
	case p.source.Spec.CommitStatus == nil:
		return book, nil
	case !p.source.DeletionTimestamp.IsZero():
		return book, p.enterDeleted(ctx, book)
	}
	if out.replaced != nil {
		book.Enter(*out.replaced)
	}
	applied, head := v1alpha1.CommitOf(p.source.Status.LastAppliedRevision), p.head.Commit
	succession := commitstatus.Succession{Whole: forge.ContextName(p.source), By: head}
	// While a definition is missing, its commit reports it. A pass that only began to read has no newer facts.
	missing := out.unchanged() && conditions.GetReason(p.source, fluxmeta.ReadyCondition) == v1alpha1.DefinitionMissingReason
	if p.decidesVerdict() && !missing {
		rollouts, err := p.cachedRollouts(ctx)
		if err != nil {
			return nil, err
		}
		fleet := p.fleet(rollouts)
		succession.Contents = []string{contentOf(fleet.addOns), declarationOf(fleet.addOns)}
		want := p.verdict(fleet)
		if !fleet.ahead {
			book.Enter(want)
			succession.Live = append(succession.Live, applied)
		}
		succession.Wants = p.verdicts(book, want, fleet)
		for _, want := range p.finished(book, fleet, append(succession.Live, head)) {
			book.Enter(want)
			succession.Live = append(succession.Live, want.SHA)
		}
	}
	if head != "" && (head != applied || h != nil && (h.kind == refused || h.reason == v1alpha1.DefinitionMissingReason)) && !out.unchanged() {
		p.enterHead(book, out, h)
	}
	if applied == head && h == nil {
		p.supersede(book, out.overtaken)
	}
	// Until Git and the hub have answered, no head is known that could replace a commit.
	if unknown := out.reached == unanswered || h != nil && h.kind == retried; head == "" || unknown && out.content == "" {
		return book, nil
	}
	succession.Live = append(succession.Live, head)
	for _, m := range book.Marks() {
		if last := commitstatus.Last(m); last != nil && last.Content != "" && last.Content == out.content {
			succession.Live = append(succession.Live, m.SHA) // the head has the same content
		}
	}
	book.Overtake(succession)
	return book, nil
}

// decidesVerdict reports whether the state of the fleet decides the verdict on the applied commit. It does not if the
// commit was refused later under another spec.
func (p *pass) decidesVerdict() bool {
	status := p.source.Status
	applied := v1alpha1.CommitOf(status.LastAppliedRevision)
	return !status.Refused() || v1alpha1.CommitOf(status.LastAttemptedRevision) != applied
}

// verdict returns the status of the applied commit, which summarises the fleet.
func (p *pass) verdict(f fleet) commitstatus.Want {
	applied := v1alpha1.CommitOf(p.source.Status.LastAppliedRevision)
	want := p.want(applied, f.state(), f.text(f.appliedIn(applied)))
	want.Progress, want.Content, want.Held = f.progress(), contentOf(f.addOns)+f.back, cmp.Or(f.failures, f.held())
	return want
}

// lastVerdict returns the last status of the applied commit before the head replaces it; nil: there is none. It uses
// the rollouts as they were when the head was written to them, because the watch cache may be older, and this commit
// is not derived again.
func (p *pass) lastVerdict(rollouts map[string]*v1alpha1.AddOnRollout) *commitstatus.Want {
	if !p.decidesVerdict() || p.source.Status.LastAppliedRevision == p.head.String() {
		return nil
	}
	fleet := p.fleet(rollouts)
	if fleet.ahead {
		return nil
	}
	want := p.verdict(fleet)
	return &want
}

// enterDeleted ends every context. A deleted source judges no commit, even while its add-ons stay. While one of them
// waits for a decision, the status of the applied commit names it.
func (p *pass) enterDeleted(ctx context.Context, book *forge.Book) error {
	rollouts, err := p.cachedRollouts(ctx)
	if err != nil {
		return err
	}
	fleet := p.fleet(rollouts)
	const ended = "ended: the source was deleted"
	want := p.want(v1alpha1.CommitOf(p.source.Status.LastAppliedRevision), commitstatus.Error, ended)
	if held := fleet.held(); held != "" {
		want.Description = "the source was deleted; " + held
	}
	want.Content = digestOfTexts(want.Description)
	if want.Description != ended || shows(book.Marks(), want) {
		book.Enter(want)
	}
	book.EndAll(ended)
	return nil
}

// shows reports whether a context shows the state of the want.
func shows(marks []commitstatus.Mark, w commitstatus.Want) bool {
	return slices.ContainsFunc(marks, func(m commitstatus.Mark) bool {
		last := commitstatus.Last(m)
		return m.SHA == w.SHA && m.Context == w.Context && last != nil && last.State == string(w.State)
	})
}

// enterHead reports why the head is not applied. While the spec is the one under which the commit was judged, the
// verdict stays: the commit does not become pending again because it cannot be checked now.
func (p *pass) enterHead(book *forge.Book, out outcome, h *halt) {
	before := p.before.Status
	judged := before.LastAttemptedRevision == p.head.String() && (p.spec == "" || before.LastAttemptedSpec == refusedUnder(p.spec))
	switch {
	case h == nil:
	case h.kind == refused:
		want := p.want(p.head.Commit, commitstatus.Failure, refusalText(h))
		want.Content = digestOfTexts(refusedUnder(p.spec))
		book.Enter(want)
	case h.reason == v1alpha1.DefinitionMissingReason:
		want := p.want(p.head.Commit, commitstatus.Error, h.text)
		want.Content = digestOfTexts(h.text)
		book.Enter(want)
	case judged:
	case h.kind == stalled && len(h.problems) > 0:
		book.Enter(p.want(p.head.Commit, commitstatus.Error, refusalText(h)))
	case h.kind == stalled:
		book.Enter(p.want(p.head.Commit, commitstatus.Error, h.reason+": "+h.text))
	default:
		want := p.want(p.head.Commit, commitstatus.Pending, p.pendingText(h))
		want.Content = out.content
		if apierrors.IsInternalError(h.cause) { // for example, a webhook does not answer
			want.Description = "not applied yet: " + h.text
			want.Held = want.Description
		}
		book.Enter(want)
	}
}

// reported reports whether the head has a status at the forge. It has none if the context was
// renamed, or belonged to another source.
func (p *pass) reported() bool {
	return p.source.Spec.CommitStatus == nil || commitstatus.Shown(p.source.Status.CommitStatuses, p.head.Commit, forge.ContextName(p.source))
}

// want is a status in the source's own context.
func (p *pass) want(sha string, state commitstatus.State, text string) commitstatus.Want {
	return commitstatus.Want{SHA: sha, Context: forge.ContextName(p.source), State: state, Description: text}
}

// noteRollouts stores the rollouts that this pass wrote. The watch cache may still show an
// older generation, which is not the outcome of the commit.
func (p *pass) noteRollouts() {
	for key, object := range p.applied {
		if key.Kind != v1alpha1.AddOnRolloutKind || object == nil {
			continue
		}
		if p.memory.rollouts == nil {
			p.memory.rollouts = map[string]writtenRollout{}
		}
		p.memory.rollouts[key.Name] = writtenRollout{uid: object.GetUID(), generation: object.GetGeneration()}
	}
}

// contentOf identifies the content of a commit that declares these add-ons. After the rollouts have the commit, its
// status is about this content: a later policy for the same content does not change it.
func contentOf(addOns []v1alpha1.SourcedAddOn) string {
	var texts []string
	for _, addOn := range addOns {
		texts = append(texts, addOn.Name, addOn.Digest)
	}
	return digestOfTexts(texts...)
}

// declarationOf identifies the content and policy of a commit that declares these add-ons. Until the rollouts have
// both, the status of the commit is about both: the same content under another policy is another subject.
func declarationOf(addOns []v1alpha1.SourcedAddOn) string {
	var texts []string
	for _, addOn := range addOns {
		texts = append(texts, addOn.Name, addOn.Digest, addOn.Policy)
	}
	return digestOfTexts(texts...)
}

// digestOfTexts returns a short digest.
func digestOfTexts(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:5])
}

// verdicts returns the status of the applied commit for every commit with a mark. The text of each says what that
// commit changed.
func (p *pass) verdicts(book *forge.Book, applied commitstatus.Want, f fleet) []commitstatus.Want {
	var wants []commitstatus.Want
	declaration := declarationOf(f.addOns)
	for _, m := range book.Marks() {
		last := commitstatus.Last(m)
		declares := slices.Contains(f.policies, m.SHA) || last != nil && last.Content == declaration
		if applied.State == commitstatus.Failure && !f.contentFailed && !declares {
			continue // the commit waits for another commit that fixes the policy
		}
		want := applied
		want.SHA, want.Description = m.SHA, f.text(f.appliedIn(m.SHA))
		wants = append(wants, want)
	}
	return wants
}

// appliedIn is the text about the changes of a commit with the content of the fleet.
func (f *fleet) appliedIn(sha string) string {
	for _, addOn := range f.addOns {
		if v1alpha1.CommitOf(addOn.Commit) == sha {
			return "applied"
		}
	}
	if left := f.leftGit[sha]; len(left) > 0 {
		return "applied; no longer declares " + brief.Names(left)
	}
	return "no add-on content changed"
}

// fleet has the states of the add-ons of a source.
type fleet struct {
	// counted: the text counts the clusters of an add-on that moves, because the add-on has no context of its own.
	counted                bool
	failed, onHold, moving []addOnStanding
	// partly are the add-ons that succeeded although not every cluster is updated.
	partly []addOnStanding
	// contentFailed: the content of at least one add-on failed, not only a policy of a later commit. Older commits
	// with the same content then fail, too.
	contentFailed bool
	// policies are the commits that declared a policy that failed.
	policies []string
	// upToDate counts the other add-ons, whose clusters are all updated.
	upToDate int
	// updated and total count clusters.
	updated, total int32
	// addOns are the add-ons that the rollouts declare.
	addOns []v1alpha1.SourcedAddOn
	// ahead: the declarations are not those of the applied commit, because the operator was interrupted after it
	// wrote objects of newer commits, and before it wrote the status.
	ahead bool
	// back names the add-ons that are rolled back from the content of the commit. A change of this text is posted
	// although the commit has already failed.
	back string
	// failures names the failed clusters of each add-on.
	failures string
	// leftGit has, by the sha of a commit, the add-ons that this commit was the first not to declare.
	leftGit map[string][]string
	// finishing are, by sha, commits whose rollouts end although a newer commit is applied.
	finishing map[string]*finishing
}

// undeclared counts a rollout that the applied commit does not declare. It counts as being removed, even if the watch
// does not show spec.removal yet.
func (f *fleet) undeclared(ro *v1alpha1.AddOnRollout) {
	switch {
	case ro.Spec.Removal != nil:
		f.leftGit[ro.Spec.Removal.Commit] = append(f.leftGit[ro.Spec.Removal.Commit], ro.Name)
		f.leave(ro)
	case ro.DeletionTimestamp == nil:
		f.move(ro.Name, ro.Name+" left Git", notRemoved)
	}
}

// addOnStanding is an add-on and its state as text.
type addOnStanding struct{ name, text string }

// cachedRollouts reads the rollouts of the source from the watch cache.
func (p *pass) cachedRollouts(ctx context.Context) (map[string]*v1alpha1.AddOnRollout, error) {
	var list v1alpha1.AddOnRolloutList
	if err := p.Client.List(ctx, &list, client.InNamespace(p.source.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list rollouts: %w", err)
	}
	rollouts := map[string]*v1alpha1.AddOnRollout{}
	for i := range list.Items {
		if ro := &list.Items[i]; ro.Annotations[v1alpha1.SourceAnnotation] == p.name() {
			rollouts[ro.Name] = ro
		}
	}
	return rollouts, nil
}

// declare notes the declarations in the specs of the rollouts. A source writes these specs first and its own status
// last, so after an interruption they may be those of a newer commit.
func (f *fleet) declare(status v1alpha1.AddOnSourceStatus, written map[string]writtenRollout, rollouts map[string]*v1alpha1.AddOnRollout) {
	f.ahead = status.LastAppliedRevision == ""
	declared := map[string]v1alpha1.SourcedAddOn{}
	for _, addOn := range status.AddOns {
		declared[addOn.Name] = addOn
	}
	for name, ro := range rollouts {
		applied, known := declared[name]
		target, removal := ro.Spec.Target, ro.Spec.Removal
		outdated := written[name].newer(ro) // the watch cache lags behind the write of the applied commit
		uninstalled := removal != nil && removal.Deleting != ""
		asApplied := known && removal == nil && applied.Declares(&ro.Spec)
		asRemoved := !known && (removal != nil || ro.DeletionTimestamp != nil)
		switch {
		case target == nil, outdated, uninstalled, asApplied, asRemoved:
			continue
		case removal != nil:
			delete(declared, name)
		default:
			declared[name] = sourced(ro)
		}
		f.ahead = true
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		f.addOns = append(f.addOns, declared[name])
	}
}

// sourced is the add-on in the spec of a rollout.
func sourced(ro *v1alpha1.AddOnRollout) v1alpha1.SourcedAddOn {
	target := ro.Spec.Target
	return v1alpha1.SourcedAddOn{
		Name: ro.Name, Revision: target.Revision, Digest: target.Digest, Commit: target.Commit,
		PolicyCommit: ro.Spec.PolicyCommit, Policy: ro.Annotations[v1alpha1.PolicyAnnotation],
	}
}

// fleet returns the states of the add-ons that the rollouts declare, and of those that are being removed.
func (p *pass) fleet(rollouts map[string]*v1alpha1.AddOnRollout) fleet {
	f := fleet{counted: p.source.Spec.CommitStatus.DetailOrDefault() == v1alpha1.DetailSource, leftGit: map[string][]string{}}
	f.declare(p.source.Status, p.memory.rollouts, rollouts)
	declared := map[string]bool{}
	for _, addOn := range f.addOns {
		f.add(rollouts[addOn.Name], addOn, p.memory.rollouts[addOn.Name])
		declared[addOn.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(rollouts)) {
		if !declared[name] {
			f.undeclared(rollouts[name])
		}
	}
	return f
}

// leave counts an add-on that is being removed.
func (f *fleet) leave(ro *v1alpha1.AddOnRollout) {
	switch text := holdOf(ro); {
	case ro.ReleaseRequested(), ro.Status.Phase == v1alpha1.PhaseRemoved:
	case text != "" && !unobserved(ro):
		f.onHold = append(f.onHold, addOnStanding{ro.Name, ro.Name + " " + text})
	case unobserved(ro): // it may be held, and was not counted yet
		f.move(ro.Name, ro.Name+" left Git", notRemoved)
	default:
		f.move(ro.Name, fmt.Sprintf("removing %s, %d left", ro.Name, ro.Status.Counts.Removing), notRemoved)
	}
}

// move notes that an add-on moves. counted is the text with counts; uncounted follows the name of the add-on, and is the
// same from start to end, so that it is posted once.
func (f *fleet) move(addOn, counted, uncounted string) {
	text := addOn + " " + uncounted
	if f.counted {
		text = counted
	}
	f.moving = append(f.moving, addOnStanding{addOn, text})
}

// Texts of add-ons that move.
const (
	notRemoved  = "not yet removed"
	notUpToDate = "not yet up to date"
)

// add counts an add-on. If its rollout has not yet observed the spec of the commit, or already has the spec of a
// newer commit, it counts as moving.
func (f *fleet) add(ro *v1alpha1.AddOnRollout, addOn v1alpha1.SourcedAddOn, written writtenRollout) {
	f.finish(ro)
	if ro != nil && ro.Spec.Removal != nil && !written.newer(ro) {
		f.leave(ro)
		return
	}
	if ro == nil || written.newer(ro) || !addOn.Declares(&ro.Spec) || unobserved(ro) {
		f.move(addOn.Name, addOn.Name+" starts", notUpToDate)
		return
	}
	f.updated, f.total = f.updated+ro.Status.Counts.Updated, f.total+ro.Status.Counts.Total
	switch commitstatus.State(ro.Status.Outcome) {
	case commitstatus.Success:
		if counts := ro.Status.Counts; counts.Updated < counts.Total {
			f.partly = append(f.partly, addOnStanding{addOn.Name, fmt.Sprintf("%s %d/%d updated", addOn.Name, counts.Updated, counts.Total)})
			return
		}
		f.upToDate++
	case commitstatus.Failure:
		if ro.Status.Override.Returns() {
			f.back += " " + addOn.Name + " " + string(ro.Status.Phase) + ro.Status.Override.Proposed
		}
		policyFailed := v1alpha1.BlamesPolicy(conditions.GetReason(ro, fluxmeta.StalledCondition))
		edited := policyFailed && ro.SpecEdited() // edited on the hub, by no commit
		f.contentFailed = f.contentFailed || !policyFailed || ro.Spec.PolicyCommit == "" && !edited
		if policyFailed && ro.Spec.PolicyCommit != "" && !edited {
			f.policies = append(f.policies, v1alpha1.CommitOf(ro.Spec.PolicyCommit))
		}
		text := addOn.Name + ": " + failureOf(ro)
		place, object := ro.Annotations[v1alpha1.PacePlaceAnnotation], ro.Annotations[v1alpha1.PaceObjectAnnotation]
		if cause, placed := strings.CutSuffix(text, " at "+place+": "+object); placed {
			text = commitstatus.Refusal{Problem: cause, Place: place, Object: object}.Text(commitstatus.DescriptionLimit)
		}
		f.failed, f.failures = append(f.failed, addOnStanding{addOn.Name, text}), f.failures+" "+addOn.Name+failuresOf(ro)
	default:
		f.stand(ro, addOn.Name)
	}
}

// failuresOf names the first failed clusters of an add-on, their number, and whether others are in flight.
func failuresOf(ro *v1alpha1.AddOnRollout) string {
	texts := []string{fmt.Sprintf(" %d %t", ro.Status.Counts.Failed, ro.Status.Counts.InFlight > 0)}
	for _, f := range ro.Status.Failing {
		texts = append(texts, f.Cluster)
	}
	return strings.Join(texts, " ")
}

// stand counts an add-on whose rollout has not ended.
func (f *fleet) stand(ro *v1alpha1.AddOnRollout, addOn string) {
	if text := holdOf(ro); text != "" {
		f.onHold = append(f.onHold, addOnStanding{addOn, addOn + " " + text})
		return
	}
	counts := ro.Status.Counts
	f.move(addOn, fmt.Sprintf("%s %d/%d", addOn, counts.Updated, counts.Total), notUpToDate)
}

// unobserved reports whether the status is about an older spec. A deletion increases the generation without a change
// of the spec, so a failure of the same content stays.
func unobserved(ro *v1alpha1.AddOnRollout) bool {
	generations := ro.Generation - ro.Status.ObservedGeneration
	if ro.DeletionTimestamp != nil && ro.Status.Outcome == string(commitstatus.Failure) &&
		ro.Status.Target != nil && ro.Status.Target.Digest == ro.Spec.Target.Digest {
		generations--
	}
	return generations > 0
}

// failureOf returns why a rollout failed. The condition is not used, because it also names other waits of the
// rollout, which are not about the commit.
func failureOf(ro *v1alpha1.AddOnRollout) string {
	switch conditions.GetReason(ro, fluxmeta.StalledCondition) {
	case v1alpha1.RolloutFailedReason, v1alpha1.RolledBackReason:
		return ro.Status.Message
	}
	return conditions.GetMessage(ro, fluxmeta.ReadyCondition)
}

// holdOf returns why a rollout is held or suspended; "": it is neither.
func holdOf(ro *v1alpha1.AddOnRollout) string {
	switch {
	case ro.Status.Outcome != string(commitstatus.Pending):
	case ro.Status.Phase == v1alpha1.PhaseHeld:
		return "held: " + strings.Replace(ro.Status.Message, "held: ", "", 1)
	case ro.Status.Phase == v1alpha1.PhaseSuspended:
		return ro.Status.Message
	case conditions.GetReason(ro, fluxmeta.ReconcilingCondition) == v1alpha1.RevisionMissingReason:
		return "held: " + ro.Status.Message
	}
	return ""
}

// held lists the held add-ons; "": there are none.
func (f *fleet) held() string {
	var texts []string
	for _, a := range f.onHold {
		texts = append(texts, a.text)
	}
	return strings.Join(texts, "; ")
}

// state is the state of the whole fleet.
func (f *fleet) state() commitstatus.State {
	switch {
	case len(f.failed) > 0:
		return commitstatus.Failure
	case len(f.onHold)+len(f.moving) > 0:
		return commitstatus.Pending
	default:
		return commitstatus.Success
	}
}

// progress is how many percent of the clusters are up to date. Without counts it is 100, and 0 before the commit is
// applied. So the text of the applied commit is posted after 30 seconds, not after 15 minutes.
func (f *fleet) progress() int {
	if !f.counted || f.total == 0 {
		return 100
	}
	return int(f.updated) * 100 / int(f.total)
}

// text describes the whole fleet: "applied; hello not yet up to date; 11 add-ons up to date".
func (f *fleet) text(applied string) string {
	var parts []string
	if len(f.failed) == 0 {
		parts = append(parts, applied)
	}
	const shown = 3
	standings := slices.Concat(f.failed, f.onHold, f.moving, f.partly)
	for i, a := range standings {
		if i == shown {
			parts = append(parts, fmt.Sprintf("%d more", len(standings)-shown))
			break
		}
		parts = append(parts, a.text)
	}
	switch {
	case f.upToDate == 1:
		parts = append(parts, "1 add-on up to date")
	case f.upToDate > 0:
		parts = append(parts, fmt.Sprintf("%d add-ons up to date", f.upToDate))
	}
	return strings.Join(parts, "; ")
}

// pendingText says what the head waits for. It contains neither an attempt nor a time, so that it is posted only
// once.
func (p *pass) pendingText(h *halt) string {
	switch h.reason {
	case v1alpha1.ReferenceNotFoundReason, v1alpha1.TakingOverReason, v1alpha1.AddOnDeletedReason, v1alpha1.PlacementUndecidedReason:
		return h.text
	case v1alpha1.FetchFailedReason, v1alpha1.InvalidCredentialsReason, v1alpha1.LimitExceededReason, v1alpha1.RefNotFoundReason:
		return "cannot be fetched yet: " + h.reason + ", see AddOnSource " + p.source.Name
	default:
		return p.applying()
	}
}

// applying returns the text of the head's status while no other facts about it are known.
func (p *pass) applying() string {
	return "fetched " + shortRevision(p.head.Ref, p.head.Commit) + ", applying"
}

// shortRevision returns main@abc1234.
func shortRevision(ref, commit string) string {
	short := commit[:min(len(commit), 7)]
	if ref == "" {
		return short
	}
	return ref + "@" + short
}

// refusalText returns the first problem, the number of the others, and the position of the
// first.
func refusalText(h *halt) string {
	if len(h.problems) == 0 {
		return h.text
	}
	first := h.problems[0]
	place := ""
	if first.Path != "" {
		place = problem.Problem{Path: first.Path, Line: first.Line}.String()
	}
	object := problem.Problem{Kind: first.Kind, Name: first.Name, Field: first.Field}.String()
	return commitstatus.Refusal{
		Problem: first.Message, Hint: first.Hint, More: len(h.problems) - 1,
		Place: strings.TrimSuffix(place, ": "), Object: strings.TrimSuffix(object, ": "),
	}.Text(commitstatus.DescriptionLimit)
}
