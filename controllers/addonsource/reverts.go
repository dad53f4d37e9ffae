package addonsource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/predicates"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/hubclient"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/rollout/clock"
)

// revertTimeout limits the work on one proposal. revertAgain is the pause before the next try if the forge or the
// repository did not answer.
const (
	revertTimeout = 3 * time.Minute
	revertAgain   = 15 * time.Second
	// revertRarely is the pause before the next try if the newest commit does not allow a proposal, because a later
	// commit may. It doubles up to revertSeldom as long as the reason is the same, because each try reads the repository
	// and the forge.
	revertRarely = 5 * time.Minute
	revertSeldom = time.Hour
)

// Reverter proposes pull requests for content that was rolled back. It is a separate controller, so that neither a
// forge nor a repository delays a rollout. A visit works for one source outside of the workers, so that a server that
// hangs delays no other source. The state is the branch of a proposal and its pull request. They are found by the
// name of the branch, which follows from the quarantine of the content. The quarantine names the pull request for the
// texts of the rollout.
type Reverter struct {
	*Reconciler
	// visits take turns like the errands of sources.
	visits *errands
}

// NewReverter returns a reverter that reads repositories as the reconciler does. The reconciler's sources show the
// results of the proposals.
func NewReverter(r *Reconciler) *Reverter { return &Reverter{Reconciler: r, visits: newErrands()} }

// SetupWithManager registers the controller.
func (v *Reverter) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("revertrequests").
		For(&v1alpha1.AddOnSource{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, suspensionChanged(), hubclient.NewestCommitChanged()))).
		Watches(&v1alpha1.AddOnRollout{}, handler.EnqueueRequestsFromMapFunc(sourceOf), builder.WithPredicates(returned())).
		WatchesRawSource(v.visits.ends()).
		WithOptions(options).
		Complete(v)
}

// returned passes rollouts that were rolled back, that move back to other content, or that no longer differ from Git.
// A new rollout needs no event, because its source is new to the controller, too.
func returned() predicate.Predicate {
	return hubclient.Updates(func(before, after *v1alpha1.AddOnRollout) bool { return revertOf(before) != revertOf(after) })
}

// revertOf is the proposal that makes Git declare the content to which the clusters of a rollout moved back, because
// the content of Git was rolled back; zero: the clusters did not. Content that Git itself blocks needs no proposal.
func revertOf(r *v1alpha1.AddOnRollout) proposal.Revert {
	o, target := r.Status.Override, r.Status.Target
	if !o.Returns() || o.Waits() || r.Status.Phase != v1alpha1.PhaseRolledBack || target == nil ||
		o.Kind != v1alpha1.OverrideRollback && o.Kind != v1alpha1.OverrideRecall || !strings.Contains(target.Commit, "sha1:") {
		return proposal.Revert{}
	}
	return proposal.Revert{
		AddOn: r.Name, From: o.Declared.Digest, To: target.Digest, Bad: v1alpha1.CommitOf(o.Declared.Commit),
		Good: v1alpha1.CommitOf(v1alpha1.LastCommit(r.Annotations, *target)),
	}
}

// Reconcile begins or ends a visit, which makes the proposals for a source's rollouts. An error becomes a condition
// of the source, and is retried.
func (v *Reverter) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	source := &v1alpha1.AddOnSource{}
	if err := v.Live.Get(ctx, req.NamespacedName, source); err != nil {
		if apierrors.IsNotFound(err) {
			v.visits.stop(req.NamespacedName)
			v.reverts.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read the source: %w", err)
	}
	spec := source.Spec.CommitStatus
	if spec == nil || !spec.RevertPullRequest || !source.DeletionTimestamp.IsZero() {
		v.leave(source)
		return ctrl.Result{}, nil
	}
	if suspended(source) {
		v.visits.stop(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	wanted, err := v.wanted(ctx, source)
	if err != nil {
		return ctrl.Result{}, err
	}
	key := errandKey{
		generation: source.Generation, requestedAt: source.Annotations[fluxmeta.ReconcileRequestAnnotation],
		// A visit is for these pull requests only, and so are its outcomes.
		attempted: strings.Join(append(branchesOf(wanted), source.Status.LastAppliedRevision), " "),
	}
	if result, ended := v.visits.take(req.NamespacedName, key); ended {
		if result.err != nil {
			return ctrl.Result{}, result.err
		}
		if after, tried := v.reverts.next(req.NamespacedName, wanted); tried {
			return ctrl.Result{RequeueAfter: after}, nil
		}
	}
	switch {
	case len(wanted) == 0:
		v.leave(source)
		return ctrl.Result{}, nil
	case v.visits.awaits(req.NamespacedName, key):
		return ctrl.Result{}, nil // its end queues the source
	}
	host, _ := gitsource.HostOf(source.Spec.URL) // without a host, the outcome has the error
	v.visits.send(ctx, req.NamespacedName, &errand{
		key: key, host: host, doubtful: v.reverts.failed(req.NamespacedName), sent: v.Clock(),
		run: func(ctx context.Context) fetchResult { return fetchResult{err: v.visit(ctx, source, wanted)} },
	})
	return ctrl.Result{}, nil
}

// branchesOf returns the branches of the wanted pull requests, sorted.
func branchesOf(wanted []wantedRevert) []string {
	branches := make([]string, len(wanted))
	for i, w := range wanted {
		branches[i] = w.branch
	}
	slices.Sort(branches)
	return branches
}

// leave ends the work for a source that wants no pull request.
func (v *Reverter) leave(source *v1alpha1.AddOnSource) {
	v.visits.stop(client.ObjectKeyFromObject(source))
	v.note(source, nil)
}

// visit makes or finds the wanted pull requests, and notes the outcomes.
func (v *Reverter) visit(ctx context.Context, source *v1alpha1.AddOnSource, wanted []wantedRevert) error {
	outcomes := make([]revertOutcome, 0, len(wanted))
	for _, w := range wanted {
		outcome, known := v.reverts.opened(client.ObjectKeyFromObject(source), w.branch)
		if !known {
			outcome = v.propose(ctx, source, w)
			if err := ctx.Err(); err != nil {
				return err // the reason for the visit ended, and its result is dropped
			}
			if outcome.reason == v1alpha1.NotRevertibleReason {
				outcome.again = v.reverts.pause(client.ObjectKeyFromObject(source), outcome)
			}
		}
		// If the forge or the repository did not answer, the name stays.
		if outcome.url != w.noted && (outcome.url != "" || outcome.reason == v1alpha1.NotRevertibleReason) {
			if err := v.name(ctx, w.revision, outcome.url); err != nil {
				return err
			}
		}
		outcomes = append(outcomes, outcome)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, o := range v.note(source, outcomes) {
		kind := corev1.EventTypeNormal
		if o.url == "" {
			kind = corev1.EventTypeWarning
		}
		v.Events.Event(source, kind, o.reason, o.text)
	}
	return nil
}

// note stores the outcomes of a source and returns the new ones. If an outcome changed, the source is reconciled, so
// that it shows the change.
func (v *Reverter) note(source *v1alpha1.AddOnSource, outcomes []revertOutcome) []revertOutcome {
	key := client.ObjectKeyFromObject(source)
	fresh, changed := v.reverts.keep(key, outcomes)
	if changed && (len(outcomes) > 0 || conditions.Has(source, v1alpha1.RevertProposedCondition)) {
		v.errands.wake(key)
	}
	return fresh
}

// wantedRevert is a wanted pull request.
type wantedRevert struct {
	proposal.Revert
	branch string
	// revision has the quarantine. noted is the pull request that the quarantine names; "": none yet.
	revision *metav1.PartialObjectMetadata
	noted    string
}

// name stores the address of a pull request in its quarantine, where the texts of the rollout read it. Without a pull
// request that restores the content, the address is "".
func (v *Reverter) name(ctx context.Context, revision *metav1.PartialObjectMetadata, url string) error {
	quarantine, _ := v1alpha1.ReadQuarantine(revision.Annotations)
	quarantine.Proposed = url
	value, err := json.Marshal(quarantine)
	if err != nil {
		return fmt.Errorf("cannot encode the quarantine of %s: %w", revision.Name, err)
	}
	named := revision.DeepCopy()
	named.Annotations[v1alpha1.QuarantinedAnnotation] = string(value)
	if err := v.Client.Patch(ctx, named, client.MergeFromWithOptions(revision, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot name the pull request in the quarantine of %s: %w", revision.Name, err)
	}
	return nil
}

// wanted are the wanted pull requests, by add-on.
func (v *Reverter) wanted(ctx context.Context, source *v1alpha1.AddOnSource) ([]wantedRevert, error) {
	var rollouts v1alpha1.AddOnRolloutList
	if err := v.Live.List(ctx, &rollouts, client.InNamespace(source.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list rollouts: %w", err)
	}
	var wanted []wantedRevert
	for i := range rollouts.Items {
		r := &rollouts.Items[i]
		w := wantedRevert{Revert: revertOf(r)}
		if key, ok := namespacedName(r.Annotations[v1alpha1.SourceAnnotation]); !ok || key != client.ObjectKeyFromObject(source) || w.AddOn == "" {
			continue
		}
		declared, revision := r.Status.Override.Declared.Revision, metadataOf(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
		if err := v.Live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: declared}, revision); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("cannot read revision %s: %w", declared, err)
		}
		quarantine, ok := v1alpha1.ReadQuarantine(revision.Annotations)
		if !ok || quarantine.Time.IsZero() {
			continue
		}
		w.Reason, w.Author = quarantine.Reason, quarantine.Author
		w.branch, w.revision, w.noted = revertBranch(w.Revert, quarantine), revision, quarantine.Proposed
		wanted = append(wanted, w)
	}
	slices.SortFunc(wanted, func(a, b wantedRevert) int { return cmp.Compare(a.AddOn, b.AddOn) })
	return wanted, nil
}

// revertBranch is the name of the branch for a quarantine. If the same content is quarantined again, it gets another
// branch. Gitea's API accepts at most a hundred characters.
func revertBranch(r proposal.Revert, q v1alpha1.Quarantine) string {
	sum := sha256.Sum256([]byte(r.AddOn + "\n" + r.From + "\n" + r.To + "\n" + q.Time.UTC().Format(time.RFC3339)))
	return fmt.Sprintf("addonflow/revert-%.60s-%s", r.AddOn, hex.EncodeToString(sum[:5]))
}

// propose makes or finds one pull request. It reads the state before it writes and after each write, so that it
// continues where an earlier operator ended.
func (v *Reverter) propose(ctx context.Context, source *v1alpha1.AddOnSource, w wantedRevert) revertOutcome {
	ctx, cancel := context.WithTimeout(ctx, revertTimeout)
	defer cancel()
	into := forge.Branch(source)
	if into == "" {
		return w.not(v1alpha1.NotRevertibleReason, "the source follows no branch")
	}
	proposals, err := v.Desk.Proposals(ctx, source)
	if err != nil {
		return w.failed(err, "")
	}
	p := commitstatus.Proposal{Branch: w.branch, Into: into, Title: w.Title(), Body: w.Markdown()}
	opened, found, err := proposals.Opened(ctx, p)
	if err != nil {
		return w.failed(err, proposals.Permission())
	}
	for range 2 { // the branch is created, and then read back
		change, why, err := v.restore(ctx, source, w)
		if found && !change.there { // another author may have opened it, or closed it and deleted the branch
			why = fmt.Sprintf("%s; see pull request %d", cmp.Or(why, "branch "+w.branch+" does not exist"), opened.Number)
		}
		switch {
		case err != nil:
			return w.failed(err, "")
		case why != "":
			return w.not(v1alpha1.NotRevertibleReason, why)
		case found:
			return w.done(opened, nil, proposals)
		case change.there:
			opened, err := proposals.Open(ctx, p)
			return w.done(opened, err, proposals)
		}
		p.Head = change.head
		p.Files = p.Files[:0]
		for _, f := range change.files {
			p.Files = append(p.Files, commitstatus.ProposedFile{Path: f.Path, Before: f.Before, After: f.After, Content: f.Content})
		}
		if err := proposals.Branch(ctx, p); err != nil {
			return w.failed(err, proposals.Permission())
		}
	}
	return w.failed(&commitstatus.DeliveryError{Reason: "the forge does not show branch " + w.branch + " yet"}, "")
}

// restored is the change that reverts content.
type restored struct {
	head  string
	files []gitsource.FileChange
	// there: the branch has exactly this change.
	there bool
}

// restore finds the change that reverts the content. If there is no such change, it returns the reason in why.
func (v *Reverter) restore(ctx context.Context, source *v1alpha1.AddOnSource, w wantedRevert) (change restored, why string, err error) {
	// A pass with its own memory, because the source's reconciles run meanwhile.
	p, err := v.beside(ctx, source)
	if err != nil {
		return change, "", err
	}
	repository, err := p.openGit(ctx)
	if err != nil {
		return change, "", err
	}
	restoration, err := repository.Restore(ctx, w.Good, w.branch)
	if errors.Is(err, gitsource.ErrRefNotFound) || errors.Is(err, gitsource.ErrLimitExceeded) {
		return change, err.Error(), nil
	}
	if err != nil {
		return change, "", err
	}
	defer restoration.Close()
	change.head = restoration.Head.Revision().Commit
	change.files, why, err = p.takeBack(ctx, restoration, w)
	if err != nil || why != "" || restoration.Proposed == nil {
		return change, why, err
	}
	if change.there = gitsource.SameChanges(change.files, *restoration.Proposed); !change.there {
		why = fmt.Sprintf("branch %s exists and changes something else; it can be deleted", w.branch)
	}
	return change, why, nil
}

// takeBack restores the fewest files that give an add-on the content of the earlier commit, and builds the result. If
// no set of files does, why has the reason. It tries three sets, the smallest first: templates, packages and
// configurations; these and the ClusterManagementAddOn; all files of their directories that a build of one of the
// commits has read, and that declare no other object.
// AddOnRollouts are policy and stay unchanged. If the branch of the proposal exists, the files are those that were
// proposed at the commit at which it began, so that a later commit of another does not make the proposal foreign.
func (p *pass) takeBack(ctx context.Context, r *gitsource.Restoration, w wantedRevert) (files []gitsource.FileChange, why string, err error) {
	head, objects, why, err := p.declaring(ctx, "the newest commit", r.Head, w)
	if err == nil && why == "" && r.Began != r.Head {
		head, objects, why, err = p.declaring(ctx, "the commit at which branch "+w.branch+" began", r.Began, w)
	}
	if err != nil || why != "" {
		return nil, why, err
	}
	then, earlier, err := p.compileTree(ctx, "the earlier commit", r.Then, p.chartOwner()+"/revert", p.lookUp)
	if err != nil {
		return nil, "", err
	}
	own := newRevertFiles(r.Reads)
	own.add(w.AddOn, objects, head.Commit)
	own.add(w.AddOn, earlier, then.Commit)
	for _, selects := range []func(string) bool{own.content, own.addOn, own.directories} {
		selected := slices.DeleteFunc(slices.Clone(r.Changes), func(c gitsource.FileChange) bool { return !selects(c.Path) })
		if len(selected) == 0 || len(selected) == len(files) {
			continue
		}
		files = selected
		if i := slices.IndexFunc(files, func(c gitsource.FileChange) bool { return c.Odd != "" }); i >= 0 {
			why = files[i].Path + " " + files[i].Odd
			continue
		}
		if files, err = r.Read(selected); errors.Is(err, gitsource.ErrManyChanges) {
			files, why = selected, err.Error()
			continue
		} else if err != nil {
			return nil, "", err
		}
		tree, err := r.With(files)
		if err != nil {
			return nil, "", err
		}
		after, _, err := p.compileTree(ctx, "the result", tree, p.chartOwner()+"/revert", p.lookUp)
		if err != nil {
			return nil, "", err
		}
		if after.Commit.Interrupted != nil {
			return nil, "", fmt.Errorf("cannot build the result now: %w", after.Commit.Interrupted)
		}
		if why = proposal.Reverts(head, after, w.AddOn, w.To); why == "" {
			return files, "", nil
		}
	}
	return nil, cmp.Or(why, "no file of the add-on differs from the earlier commit"), nil
}

// declaring compiles a commit that declares the content that was rolled back. If the commit does not, why says so.
func (p *pass) declaring(ctx context.Context, name string, tree *gitsource.Tree, w wantedRevert) (side proposal.Side, objects []gitsource.Object, why string, err error) {
	side, objects, err = p.compileTree(ctx, "the branch", tree, p.chartOwner()+"/revert", p.lookUp)
	if err != nil {
		return side, nil, "", err
	}
	switch i := slices.IndexFunc(side.Commit.AddOns, func(a load.AddOn) bool { return a.Name == w.AddOn }); {
	case i >= 0 && side.Commit.AddOns[i].Unfetched != "":
		why = "chart " + side.Commit.AddOns[i].Unfetched + " is in a registry, which is not read for this"
	case i < 0 || side.Commit.AddOns[i].Digest != w.From:
		why = name + " does not declare the content that was rolled back"
	}
	return side, objects, why, nil
}

// revertFiles are the files of one add-on in two commits.
type revertFiles struct {
	// own are the files with the content of the add-on, folders the directories that its packages name, declared
	// the file with its ClusterManagementAddOn, and foreign the files with any other object.
	own, folders, declared, foreign map[string]bool
	// read reports whether a build has read a file.
	read func(file string) bool
}

func newRevertFiles(read func(file string) bool) revertFiles {
	return revertFiles{read: read, own: map[string]bool{}, folders: map[string]bool{}, declared: map[string]bool{}, foreign: map[string]bool{}}
}

// add sorts the files of a commit.
func (f revertFiles) add(addOn string, objects []gitsource.Object, commit load.Commit) {
	content := map[string]bool{}
	for i := range commit.AddOns {
		if a := &commit.AddOns[i]; a.Name == addOn {
			for _, t := range a.Content.Templates {
				content["AddOnTemplate//"+t.Name] = true
			}
			for _, c := range a.Content.Configs {
				content[c.Kind+"/"+c.Namespace+"/"+c.Name] = true
			}
		}
	}
	for _, o := range objects {
		file, _ := o.Position("")
		of, _, _ := unstructured.NestedString(o.Object, "spec", "addOn")
		switch {
		case file == "":
		case o.GetKind() == v1alpha1.AddOnPackageKind && of == addOn:
			f.own[file] = true
			for _, dir := range o.Folders() {
				f.folders[dir] = true
			}
		case content[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()]:
			f.own[file] = true
		case o.GetKind() == addOnKind && o.GetName() == addOn:
			f.declared[file] = true
		default:
			f.foreign[file] = true
		}
	}
}

// content selects files of templates, packages and configurations.
func (f revertFiles) content(file string) bool {
	if f.own[file] {
		return true
	}
	for dir := range f.folders {
		if file == dir || strings.HasPrefix(file, dir+"/") {
			return true
		}
	}
	return false
}

// addOn also selects the file of the ClusterManagementAddOn.
func (f revertFiles) addOn(file string) bool { return f.content(file) || f.declared[file] }

// directories also selects the files in the directories of these files that a build has read, except files that only
// declare other objects.
func (f revertFiles) directories(file string) bool {
	if f.addOn(file) {
		return true
	}
	if f.foreign[file] || !f.read(file) {
		return false
	}
	for _, files := range []map[string]bool{f.own, f.declared} {
		for known := range files {
			if dir := path.Dir(known); dir == "." || strings.HasPrefix(file, dir+"/") {
				return true
			}
		}
	}
	return false
}

// revertOutcome is the result of a proposal.
type revertOutcome struct {
	branch string
	// url is the address of the pull request. If it is "", reason and text say why. again is the time until the next
	// try; 0: the next try waits for a change.
	url, reason, text string
	again             time.Duration
}

// not is the outcome if no proposal is made. The texts keep their command.
func (w wantedRevert) not(reason, why string) revertOutcome {
	return revertOutcome{branch: w.branch, reason: reason, again: revertRarely, text: fmt.Sprintf("%s: no pull request restores it: %s", w.AddOn, why)}
}

// done is the outcome of a proposal that was found or opened.
func (w wantedRevert) done(o commitstatus.Opened, err error, by commitstatus.Proposals) revertOutcome {
	if err != nil {
		return w.failed(err, by.Permission())
	}
	url := cmp.Or(o.URL, fmt.Sprintf("#%d", o.Number))
	return revertOutcome{
		branch: w.branch, url: url, reason: v1alpha1.ProposedReason,
		text: fmt.Sprintf("%s: pull request %d restores commit %.10s: %s", w.AddOn, o.Number, w.Good, url),
	}
}

// failed is the outcome if the forge, the repository or the hub refused the proposal.
func (w wantedRevert) failed(err error, permission string) revertOutcome {
	o := w.not(v1alpha1.DeliveryFailedReason, err.Error())
	o.again = revertAgain
	refused, ok := errors.AsType[*commitstatus.DeliveryError](err)
	if !ok {
		return o
	}
	o.again = max(o.again, min(refused.RetryAfter, 10*time.Minute))
	if refused.Permanent && refused.RetryAfter == 0 {
		o.again = time.Hour
	}
	if refused.Denied != "" {
		o.reason = string(refused.Denied)
		if permission != "" {
			o.text += "; it needs " + permission
		}
	}
	return o
}

// revertOutcomes has the outcomes of all sources. They are not stored: after a restart the forge is read.
type revertOutcomes struct {
	mu sync.Mutex
	of map[types.NamespacedName][]revertOutcome
}

// opened returns the outcome of a branch that has its pull request.
func (r *revertOutcomes) opened(source types.NamespacedName, branch string) (revertOutcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.of[source] {
		if o.branch == branch && o.url != "" {
			return o, true
		}
	}
	return revertOutcome{}, false
}

// pause returns the time until the next try after an outcome: twice that of the last try if that had the same outcome.
func (r *revertOutcomes) pause(source types.NamespacedName, outcome revertOutcome) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.of[source] {
		if o.branch == outcome.branch && o.text == outcome.text {
			return min(2*o.again, revertSeldom)
		}
	}
	return outcome.again
}

// next returns the time until the next try of a source; 0: none is due. tried: each wanted pull request was made or
// tried.
func (r *revertOutcomes) next(source types.NamespacedName, wanted []wantedRevert) (after time.Duration, tried bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range wanted {
		i := slices.IndexFunc(r.of[source], func(o revertOutcome) bool { return o.branch == w.branch })
		if i < 0 {
			return 0, false
		}
		if again := r.of[source][i].again; again > 0 {
			after = clock.Sooner(after, again)
		}
	}
	return after, true
}

// failed reports whether the last visit to a source had no answer.
func (r *revertOutcomes) failed(source types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.of[source], func(o revertOutcome) bool { return o.reason == v1alpha1.DeliveryFailedReason })
}

// keep replaces the outcomes of a source. It returns the new ones, and whether an outcome changed.
func (r *revertOutcomes) keep(source types.NamespacedName, outcomes []revertOutcome) (fresh []revertOutcome, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.of[source]
	for _, o := range outcomes {
		if !slices.ContainsFunc(before, func(b revertOutcome) bool { return b.branch == o.branch && b.text == o.text }) {
			fresh = append(fresh, o)
		}
	}
	if r.of == nil {
		r.of = map[types.NamespacedName][]revertOutcome{}
	}
	r.of[source] = outcomes
	return fresh, !known || len(before) != len(outcomes) || len(fresh) > 0
}

// get returns the outcomes of a source; false: they are not known yet.
func (r *revertOutcomes) get(source types.NamespacedName) ([]revertOutcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	outcomes, known := r.of[source]
	return outcomes, known
}

func (r *revertOutcomes) forget(source types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(key types.NamespacedName, _ []revertOutcome) bool { return key == source })
}

// setRevertProposed sets the condition RevertProposed from the newest outcomes. After a restart the condition does
// not change until the outcomes are known.
func (p *pass) setRevertProposed() {
	outcomes, known := p.reverts.get(p.key().NamespacedName)
	spec := p.source.Spec.CommitStatus
	switch {
	case spec == nil || !spec.RevertPullRequest || known && len(outcomes) == 0:
		conditions.Delete(p.source, v1alpha1.RevertProposedCondition)
		return
	case !known:
		return
	}
	texts := make([]string, 0, len(outcomes))
	reason := v1alpha1.ProposedReason
	for _, o := range outcomes {
		texts = append(texts, o.text)
		if o.url == "" && reason == v1alpha1.ProposedReason {
			reason = o.reason
		}
	}
	text := strings.Join(texts, "; ")
	if reason == v1alpha1.ProposedReason {
		conditions.MarkTrue(p.source, v1alpha1.RevertProposedCondition, reason, "%s", text)
		return
	}
	conditions.MarkFalse(p.source, v1alpha1.RevertProposedCondition, reason, "%s", text)
}
