package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/forge"
)

const (
	// workload of examples/hello on a cluster, as the fleet names it.
	workload = "Deployment/open-cluster-management-agent-addon/" + AddOn
	// stuck is why a Deployment gives up, in its own Progressing condition.
	stuck = "ProgressDeadlineExceeded"

	stateSuccess = "success"
	stateFailure = "failure"
)

// contexts of commit statuses.
func sourceContext() string        { return "addonflow/" + SourceName }
func addOnContext() string         { return sourceContext() + "/" + AddOn }
func stageContext(n string) string { return addOnContext() + "/" + n }

// Rollout reads the add-on's rollout.
func (w *World) Rollout(ctx context.Context) (*v1alpha1.AddOnRollout, error) {
	var r v1alpha1.AddOnRollout
	err := w.Client.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: AddOn}, &r)
	return &r, err
}

// Generations are those of the add-on's works, by cluster and name: a work with the same
// generation was not changed.
func (w *World) Generations(ctx context.Context) (map[types.NamespacedName]int64, error) {
	var works workv1.ManifestWorkList
	if err := w.Client.List(ctx, &works, client.MatchingLabels{"open-cluster-management.io/addon-name": AddOn}); err != nil {
		return nil, fmt.Errorf("cannot list works: %w", err)
	}
	out := map[types.NamespacedName]int64{}
	for i := range works.Items {
		out[client.ObjectKeyFromObject(&works.Items[i])] = works.Items[i].Generation
	}
	return out, nil
}

// Moved names the clusters whose works differ, sorted.
func Moved(before, after map[types.NamespacedName]int64) []string {
	var moved []string
	for key, generation := range after {
		if before[key] != generation {
			moved = append(moved, key.Namespace)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			moved = append(moved, key.Namespace)
		}
	}
	slices.Sort(moved)
	return slices.Compact(moved)
}

// AwaitStatus returns the newest status of a context as soon as it is a verdict: any
// state but pending.
func (w *World) AwaitStatus(ctx context.Context, sha, context string) (forge.Entry, error) {
	var found forge.Entry
	err := w.Forge.WaitFor(ctx, func([]forge.Entry) bool {
		entry, ok := w.Forge.Latest(sha, context)
		found = entry
		return ok && entry.State != "pending"
	})
	return found, err
}

func (s *show) rollout(ctx context.Context) (*v1alpha1.AddOnRollout, error) {
	return s.world.Rollout(ctx)
}

// others are the clusters other than the canaries.
func (s *show) others() []string {
	return slices.DeleteFunc(slices.Clone(s.clusters), func(name string) bool { return slices.Contains(s.canaries, name) })
}

// green checks that a commit is rolled out: in the API, at the forge, on the fleet.
func (s *show) green(ctx context.Context, sha, tag string) error {
	r, err := s.rollout(ctx)
	if err != nil {
		return err
	}
	total := int32(len(s.clusters)) //nolint:gosec // a number of clusters that were simulated
	switch status := r.Status; {
	case status.Phase != v1alpha1.PhaseSucceeded || status.Counts.Updated != total || status.Counts.Total != total:
		return fmt.Errorf("the rollout is %s at %d/%d, not Succeeded at %d/%d", status.Phase, status.Counts.Updated, status.Counts.Total, total, total)
	case status.Target == nil || !strings.HasSuffix(status.Target.Commit, sha):
		return fmt.Errorf("the rollout's target is %+v, not commit %s", status.Target, sha)
	}
	s.checked("API: AddOnRollout %s Succeeded, %d/%d", AddOn, total, total)
	if err := s.posted(ctx, sha, stateSuccess, sourceContext(), addOnContext(), stageContext(firstStage), stageContext(lastStage)); err != nil {
		return err
	}
	if err := s.runs(tag, s.clusters...); err != nil {
		return err
	}
	s.checked("works: every cluster runs %s, and no old pod is left", Image(tag))
	return nil
}

// posted checks that the forge has a verdict in every context, and shows the texts.
func (s *show) posted(ctx context.Context, sha, state string, contexts ...string) error {
	for _, name := range contexts {
		entry, err := s.world.AwaitStatus(ctx, sha, name)
		if err != nil {
			return err
		}
		if entry.State != state {
			return fmt.Errorf("the forge has %s for %s on %.7s, not %s: %s", entry.State, name, sha, state, entry.Description)
		}
		s.checked("forge: %.7s %s %s: %s", sha, name, entry.State, entry.Description)
	}
	return nil
}

// runs checks that clusters run the image and nothing else.
func (s *show) runs(tag string, clusters ...string) error {
	want := []string{Image(tag)}
	for _, cluster := range clusters {
		w, ok := s.world.Fleet.Running(cluster)[workload]
		if !ok {
			return fmt.Errorf("cluster %s does not run %s", cluster, workload)
		}
		if !slices.Equal(w.Images, want) || !slices.Equal(w.ReadyImages, want) {
			return fmt.Errorf("cluster %s is asked for %v and has %v ready, not %v", cluster, w.Images, w.ReadyImages, want)
		}
	}
	return nil
}

// untouchedBut checks that the works of all clusters except some are unchanged. It returns how
// many clusters those are.
func (s *show) untouchedBut(ctx context.Context, before map[types.NamespacedName]int64, but []string) (int, error) {
	after, err := s.world.Generations(ctx)
	if err != nil {
		return 0, err
	}
	if moved := Moved(before, after); !slices.Equal(moved, slices.Sorted(slices.Values(but))) {
		return 0, fmt.Errorf("the works of clusters %v changed, not those of %v", moved, but)
	}
	return len(s.clusters) - len(but), nil
}

// red checks that the canaries stopped a commit, with the Deployment's own reason.
func (s *show) red(ctx context.Context, sha string) error {
	r, err := s.rollout(ctx)
	if err != nil {
		return err
	}
	if r.Status.Phase != v1alpha1.PhaseFailed || len(r.Status.Failing) == 0 {
		return fmt.Errorf("the rollout is %s with %d failing clusters, not Failed with some", r.Status.Phase, len(r.Status.Failing))
	}
	first := r.Status.Failing[0]
	if !slices.Contains(s.canaries, first.Cluster) || !strings.Contains(first.Reason, stuck) {
		return fmt.Errorf("%s fails with %q, not a canary with %s", first.Cluster, first.Reason, stuck)
	}
	s.checked("API: AddOnRollout %s Failed: %s: %s", AddOn, first.Cluster, first.Reason)
	if err := s.posted(ctx, sha, stateFailure, addOnContext(), stageContext(firstStage)); err != nil {
		return err
	}
	entry, ok := s.world.Forge.Latest(sha, addOnContext())
	named := slices.ContainsFunc(s.canaries, func(name string) bool { return strings.Contains(entry.Description, name) })
	if !ok || !named || !strings.Contains(entry.Description, stuck) {
		return fmt.Errorf("the commit status %q names no canary or not the Deployment's reason %s", entry.Description, stuck)
	}
	return nil
}

// refused checks that a commit was refused with its position, in the API and at the forge.
func (s *show) refused(ctx context.Context, sha, place string) error {
	var source v1alpha1.AddOnSource
	if err := s.world.Client.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: SourceName}, &source); err != nil {
		return err
	}
	ready := apimeta.FindStatusCondition(source.Status.Conditions, meta.ReadyCondition)
	switch {
	case ready == nil:
		return errors.New("the source has no Ready condition")
	case !strings.HasSuffix(source.Status.LastAttemptedRevision, sha) || strings.HasSuffix(source.Status.LastAppliedRevision, sha):
		return fmt.Errorf("the source attempted %s and applied %s", source.Status.LastAttemptedRevision, source.Status.LastAppliedRevision)
	case ready.Status != "False" || ready.Reason != v1alpha1.ValidationFailedReason || !strings.Contains(ready.Message, place):
		return fmt.Errorf("the source is Ready=%s, %s: %s; not refused at %s", ready.Status, ready.Reason, ready.Message, place)
	}
	s.checked("API: AddOnSource %s %s: %s", SourceName, ready.Reason, ready.Message)
	if err := s.posted(ctx, sha, stateFailure, sourceContext()); err != nil {
		return err
	}
	if entry, _ := s.world.Forge.Latest(sha, sourceContext()); !strings.Contains(entry.Description, place) {
		return fmt.Errorf("the commit status %q does not name %s", entry.Description, place)
	}
	return nil
}

// delivered returns when the forge has accepted every commit status of the rollout.
func (s *show) delivered(ctx context.Context) error {
	for {
		r, err := s.rollout(ctx)
		if err != nil {
			return err
		}
		c := apimeta.FindStatusCondition(r.Status.Conditions, v1alpha1.CommitStatusReportedCondition)
		if c == nil || c.Status == metav1.ConditionTrue {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the forge has not accepted every commit status: %s: %w", c.Message, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
