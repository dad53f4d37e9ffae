package addonsource

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// defaultHistoryLimit is how many AddOnRevisions are kept in addition to those in use.
const defaultHistoryLimit = 10

// collect deletes AddOnRevisions beyond the history of the add-ons that this pass changed. Their number grows only
// with a change, so otherwise nothing is listed.
func (p *pass) collect(ctx context.Context, todo plan) error {
	for _, c := range todo.rollouts {
		if err := p.collectRevisions(ctx, c.desired.GetName()); err != nil {
			return retry(v1alpha1.ApplyFailedReason, err)
		}
	}
	return nil
}

// collectRevisions deletes the oldest unused revisions of one add-on.
func (p *pass) collectRevisions(ctx context.Context, addOn string) error {
	revisions, err := p.revisionsOf(ctx, addOn)
	if err != nil {
		return err
	}
	rollout := &v1alpha1.AddOnRollout{}
	if err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.source.Namespace, Name: addOn}, rollout); err != nil {
		return fmt.Errorf("cannot read rollout %s: %w", addOn, err)
	}
	limit := defaultHistoryLimit
	if rollout.Spec.RevisionHistoryLimit != nil {
		limit = int(*rollout.Spec.RevisionHistoryLimit)
	}
	used := usedByRollout(rollout, revisions)
	if len(revisions)-len(used) <= limit {
		return nil
	}
	// Reading every cluster's works is expensive, so it comes last.
	if err := p.usedByWorks(ctx, addOn, used); err != nil {
		return err
	}
	for _, revision := range superfluous(revisions, used, limit) {
		err := p.Client.Delete(ctx, &revision, client.Preconditions{UID: &revision.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete revision %s: %w", revision.Name, err)
		}
	}
	return nil
}

// revisionsOf lists the revisions of an add-on, without their bodies.
func (p *pass) revisionsOf(ctx context.Context, addOn string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind + "List"))
	err := p.Live.List(ctx, list, client.InNamespace(p.source.Namespace), client.MatchingLabels{v1alpha1.AddOnLabel: addOn})
	if err != nil {
		return nil, fmt.Errorf("cannot list revisions of %s: %w", addOn, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
	}
	return list.Items, nil
}

// usedByRollout returns the names of the revisions that a rollout needs: target and stable, those of its records, the
// quarantined and blocked ones, and the newest succeeded one that is neither quarantined nor blocked. A lost status
// is rebuilt from the last of these.
func usedByRollout(r *v1alpha1.AddOnRollout, revisions []metav1.PartialObjectMetadata) map[string]bool {
	used := map[string]bool{}
	for _, target := range []*v1alpha1.Target{r.Spec.Target, r.Status.Target, r.Status.Stable} {
		if target != nil {
			used[target.Revision] = true
		}
	}
	for _, group := range r.Status.Ledger.Records {
		used[render.RevisionName(r.Name, group.Revision)] = true
	}
	newest, at := "", ""
	for _, revision := range revisions {
		if barred(r, revision.Annotations) {
			used[revision.Name] = true
			continue
		}
		// RFC 3339 times in UTC sort as text.
		if succeeded := revision.Annotations[v1alpha1.SucceededAtAnnotation]; succeeded > at {
			newest, at = revision.Name, succeeded
		}
	}
	if newest != "" {
		used[newest] = true
	}
	return used
}

// barred reports whether the revision with the annotations is quarantined, or spec.blocked of its
// rollout names it.
func barred(r *v1alpha1.AddOnRollout, annotations map[string]string) bool {
	_, quarantined := v1alpha1.ReadQuarantine(annotations)
	return quarantined || slices.ContainsFunc(r.Spec.Blocked, func(b v1alpha1.BlockedContent) bool {
		digest := annotations[v1alpha1.RevisionAnnotation]
		return b.Blocks(v1alpha1.Target{Digest: digest}) || slices.ContainsFunc(v1alpha1.Commits(annotations), func(commit string) bool {
			return b.Blocks(v1alpha1.Target{Digest: digest, Commit: commit})
		})
	})
}

// usedByWorks adds the revisions that the works of any cluster name.
func (p *pass) usedByWorks(ctx context.Context, addOn string, used map[string]bool) error {
	for next := ""; ; {
		works := &metav1.PartialObjectMetadataList{}
		works.SetGroupVersionKind(schema.GroupVersionKind{Group: workv1.GroupName, Version: workv1.GroupVersion.Version, Kind: "ManifestWorkList"})
		err := p.Live.List(ctx, works, client.MatchingLabels{addonv1alpha1.AddonLabelKey: addOn},
			client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return fmt.Errorf("cannot list works of %s: %w", addOn, err)
		}
		for _, work := range works.Items {
			if digest := work.Annotations[v1alpha1.RevisionAnnotation]; digest != "" {
				used[render.RevisionName(addOn, digest)] = true
			}
		}
		if next = works.Continue; next == "" {
			return nil
		}
	}
}

// superfluous returns the unused revisions beyond the newest ones, as many as limit.
func superfluous(revisions []metav1.PartialObjectMetadata, used map[string]bool, limit int) []metav1.PartialObjectMetadata {
	unused := slices.DeleteFunc(slices.Clone(revisions), func(r metav1.PartialObjectMetadata) bool { return used[r.Name] })
	slices.SortFunc(unused, func(a, b metav1.PartialObjectMetadata) int {
		if order := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); order != 0 {
			return order
		}
		return slices.Compare([]byte(a.Name), []byte(b.Name))
	})
	return unused[min(limit, len(unused)):]
}
