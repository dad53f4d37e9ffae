package addonsource

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/gitsource"
)

// overtaken is content that another commit replaced before its rollout saw it. Only the source can report on the
// commit that introduced it.
type overtaken struct {
	addOn, commit string
}

// overtake returns the content that the plan replaced before its rollouts saw it. rollouts are the rollouts before
// the plan was applied, because after that a rollout sees only the new target. So for each commit either the rollout
// or the source reports, never both.
func (p *pass) overtake(ctx context.Context, todo plan, rollouts map[string]*v1alpha1.AddOnRollout) ([]overtaken, error) {
	var all []overtaken
	for _, next := range todo.addOns {
		ro := rollouts[next.Name]
		if ro == nil || ro.Spec.Target == nil || ro.Spec.Removal != nil {
			continue
		}
		before := unseen(*ro, next, p.source.Status.AddOns)
		if before.Commit == "" {
			continue
		}
		judged, err := p.judgedBefore(ctx, ro, before.Revision)
		if err != nil {
			return nil, err
		}
		if !judged {
			all = append(all, overtaken{addOn: next.Name, commit: before.Commit})
		}
	}
	return all, nil
}

// ownRollouts returns the rollouts that belong to the source.
func (p *pass) ownRollouts(seen *observation) map[string]*v1alpha1.AddOnRollout {
	own := maps.Clone(seen.rollouts)
	maps.DeleteFunc(own, func(_ string, ro *v1alpha1.AddOnRollout) bool {
		return ro.Annotations[v1alpha1.SourceAnnotation] != p.name()
	})
	return own
}

// replacedRollouts returns the rollouts of the source as they were when the plan was applied. Their spec was read
// before; their status is in the API server's answer to the write of the target.
func (p *pass) replacedRollouts(seen *observation) (map[string]*v1alpha1.AddOnRollout, error) {
	rollouts := p.ownRollouts(seen)
	for name, ro := range rollouts {
		written := p.applied[rolloutKey(ro.Namespace, name)]
		if written == nil {
			continue
		}
		var after v1alpha1.AddOnRollout
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written.Object, &after); err != nil {
			return nil, fmt.Errorf("cannot read rollout %s as it was written: %w", name, err)
		}
		rollouts[name] = ro.DeepCopy()
		rollouts[name].Status = after.Status
	}
	return rollouts, nil
}

// unseen returns the target that next replaces, if the rollout did not see it; otherwise an empty one. If an earlier
// pass did not complete, the rollout may already have next; then the status of the source has the previous target. In
// this case, equal content of another commit counts as seen, because the history of a rollout names only the newest
// commit of a content.
func unseen(ro v1alpha1.AddOnRollout, next v1alpha1.SourcedAddOn, applied []v1alpha1.SourcedAddOn) v1alpha1.Target {
	before := *ro.Spec.Target
	if before.Commit == next.Commit {
		i := slices.IndexFunc(applied, func(a v1alpha1.SourcedAddOn) bool { return a.Name == next.Name })
		if i < 0 || slices.ContainsFunc(seenTargets(ro), func(t v1alpha1.Target) bool { return t.Digest == applied[i].Digest }) {
			return v1alpha1.Target{}
		}
		before = v1alpha1.Target{Revision: applied[i].Revision, Digest: applied[i].Digest, Commit: applied[i].Commit}
	}
	seen := func(t v1alpha1.Target) bool { return t.Commit == before.Commit }
	if before.Commit == next.Commit || before.Digest == next.Digest || slices.ContainsFunc(seenTargets(ro), seen) {
		return v1alpha1.Target{}
	}
	return before
}

// seenTargets are the targets that a rollout has seen, even if the fleet does not run them: the rollout reports on
// those, too.
func seenTargets(ro v1alpha1.AddOnRollout) []v1alpha1.Target {
	var targets []v1alpha1.Target
	if ro.Status.Target != nil {
		targets = append(targets, *ro.Status.Target)
	}
	if o := ro.Status.Override; o != nil {
		targets = append(targets, o.Declared, o.Leaves())
	}
	for _, entry := range ro.Status.History {
		targets = append(targets, entry.Target)
	}
	return targets
}

// judgedBefore reports whether a rollout without a history completed the content before its status was lost. Then its
// commit has a verdict.
func (p *pass) judgedBefore(ctx context.Context, ro *v1alpha1.AddOnRollout, revision string) (bool, error) {
	if len(seenTargets(*ro)) > 0 {
		return false, nil
	}
	stored := metadataOf(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: ro.Namespace, Name: revision}, stored)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot read revision %s: %w", revision, err))
	}
	return metav1.HasAnnotation(stored.ObjectMeta, v1alpha1.SucceededAtAnnotation), nil
}

// supersede supersedes the add-on's context on commits whose content was replaced.
func (p *pass) supersede(book *forge.Book, all []overtaken) {
	if p.source.Spec.CommitStatus.DetailOrDefault() == v1alpha1.DetailSource {
		return
	}
	for _, o := range all {
		old, err := gitsource.ParseRevision(o.commit)
		if err != nil || old.Commit == p.head.Commit {
			continue
		}
		book.Enter(commitstatus.Want{SHA: old.Commit, Context: forge.ContextName(p.source, o.addOn), State: commitstatus.Pending})
		book.Supersede(old.Commit, p.head.Commit)
	}
}
