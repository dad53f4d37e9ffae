package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrUnknownPlacement is returned for a placement that Place never made.
var ErrUnknownPlacement = errors.New("placement was never placed by this fleet")

// Placement is an OCM Placement with its intended decisions.
type Placement struct {
	// Namespace is "default" when empty.
	Namespace string
	Name      string
	// Clusters are selected by name, in addition to those of Selector.
	Clusters []string
	// Selector is evaluated over the fleet's clusters by Place and Refresh.
	Selector *metav1.LabelSelector
	// Groups are named decision groups, in their order. The remaining clusters follow in groups
	// without a name.
	Groups []Group
	// ClustersPerGroup cuts groups: a number or a percentage of all selected
	// clusters. Zero: one group.
	ClustersPerGroup intstr.IntOrString
}

// Group is a named decision group: clusters by name and by selector.
type Group struct {
	Name     string
	Clusters []string
	Selector *metav1.LabelSelector
}

func (p Placement) key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// Place creates or updates a Placement, its decisions and its status, as OCM's
// placement controller writes them. The namespace must exist.
func (f *Fleet) Place(ctx context.Context, p Placement) error {
	if p.Namespace == "" {
		p.Namespace = metav1.NamespaceDefault
	}
	f.mu.Lock()
	f.placements[p.key()] = p
	f.mu.Unlock()
	return f.place(ctx, p)
}

// Refresh evaluates the selectors of all placements again. Deleted placements stay deleted.
func (f *Fleet) Refresh(ctx context.Context) error {
	f.mu.Lock()
	placements := slices.Collect(maps.Values(f.placements))
	f.mu.Unlock()
	for _, p := range placements {
		if p.Selector == nil && len(p.Groups) == 0 {
			continue
		}
		err := f.hub.Get(ctx, p.key(), &clusterv1beta1.Placement{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot refresh placement %s: %w", p.key(), err)
		}
		if err := f.place(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Join adds clusters to a placement by name.
func (f *Fleet) Join(ctx context.Context, namespace, name string, clusters ...string) error {
	return f.edit(ctx, namespace, name, func(p *Placement) {
		p.Clusters = append(slices.Clone(p.Clusters), clusters...)
	})
}

// Leave takes clusters out of a placement by name. A cluster that the placement's selector
// matches stays in it; use Relabel and Refresh for that.
func (f *Fleet) Leave(ctx context.Context, namespace, name string, clusters ...string) error {
	return f.edit(ctx, namespace, name, func(p *Placement) {
		p.Clusters = slices.DeleteFunc(slices.Clone(p.Clusters), func(c string) bool { return slices.Contains(clusters, c) })
	})
}

// DeletePlacement deletes the Placement and then its decisions, as a garbage
// collector would.
func (f *Fleet) DeletePlacement(ctx context.Context, namespace, name string) error {
	p, err := f.known(namespace, name)
	if err != nil {
		return err
	}
	placement := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	if err := client.IgnoreNotFound(f.hub.Delete(ctx, placement)); err != nil {
		return fmt.Errorf("cannot delete placement %s: %w", p.key(), err)
	}
	return f.deleteDecisions(ctx, p, nil)
}

// RestorePlacement makes a deleted placement again, as it was last.
func (f *Fleet) RestorePlacement(ctx context.Context, namespace, name string) error {
	p, err := f.known(namespace, name)
	if err != nil {
		return err
	}
	return f.place(ctx, p)
}

func (f *Fleet) known(namespace, name string) (Placement, error) {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p, found := f.placements[types.NamespacedName{Namespace: namespace, Name: name}]
	if !found {
		return Placement{}, fmt.Errorf("%s/%s: %w", namespace, name, ErrUnknownPlacement)
	}
	return p, nil
}

func (f *Fleet) edit(ctx context.Context, namespace, name string, edit func(*Placement)) error {
	p, err := f.known(namespace, name)
	if err != nil {
		return err
	}
	edit(&p)
	return f.Place(ctx, p)
}

// dropFromPlacements follows a cluster's removal.
func (f *Fleet) dropFromPlacements(ctx context.Context, cluster string) error {
	f.mu.Lock()
	placements := slices.Collect(maps.Values(f.placements))
	f.mu.Unlock()
	for _, p := range placements {
		if !slices.Contains(p.Clusters, cluster) {
			continue
		}
		if err := f.Leave(ctx, p.Namespace, p.Name, cluster); err != nil {
			return err
		}
	}
	return f.Refresh(ctx)
}

// place writes the Placement, then the decisions, then the status: OCM's order.
func (f *Fleet) place(ctx context.Context, p Placement) error {
	groups, err := p.decide(f.labels())
	if err != nil {
		return fmt.Errorf("cannot decide placement %s: %w", p.key(), err)
	}
	placement, err := f.upsertPlacement(ctx, p)
	if err != nil {
		return fmt.Errorf("cannot place %s: %w", p.key(), err)
	}
	decisions, status := p.objects(groups, placement)
	kept := map[string]bool{}
	for i := range decisions {
		kept[decisions[i].Name] = true
		if err := f.upsertDecision(ctx, &decisions[i]); err != nil {
			return fmt.Errorf("cannot write decision %s: %w", decisions[i].Name, err)
		}
	}
	if err := f.deleteDecisions(ctx, p, kept); err != nil {
		return err
	}
	before := placement.DeepCopy()
	status.Conditions = placement.Status.Conditions
	for _, condition := range satisfied(status.NumberOfSelectedClusters) {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	placement.Status = status
	if equality.Semantic.DeepEqual(before.Status, placement.Status) {
		return nil
	}
	if err := f.hub.Status().Patch(ctx, placement, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the status of placement %s: %w", p.key(), err)
	}
	return nil
}

// labels are those of the clusters that have joined.
func (f *Fleet) labels() map[string]map[string]string {
	found := map[string]map[string]string{}
	for _, m := range f.named(AllClusters) {
		m.mu.Lock()
		found[m.name] = maps.Clone(m.labels)
		m.mu.Unlock()
	}
	return found
}

func (f *Fleet) upsertPlacement(ctx context.Context, p Placement) (*clusterv1beta1.Placement, error) {
	placement := &clusterv1beta1.Placement{}
	err := f.hub.Get(ctx, p.key(), placement)
	if apierrors.IsNotFound(err) {
		placement = &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Spec: p.spec()}
		return placement, f.hub.Create(ctx, placement)
	}
	if err != nil || equality.Semantic.DeepEqual(placement.Spec, p.spec()) {
		return placement, err
	}
	before := placement.DeepCopy()
	placement.Spec = p.spec()
	return placement, f.hub.Patch(ctx, placement, client.MergeFrom(before))
}

func (f *Fleet) upsertDecision(ctx context.Context, wanted *clusterv1beta1.PlacementDecision) error {
	decisions := wanted.Status.DeepCopy().Decisions
	current := &clusterv1beta1.PlacementDecision{}
	err := f.hub.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		// Without the status: the server ignores it on create and answers without it.
		current = &clusterv1beta1.PlacementDecision{ObjectMeta: *wanted.ObjectMeta.DeepCopy()}
		err = f.hub.Create(ctx, current)
	}
	if err != nil {
		return err
	}
	if !maps.Equal(current.Labels, wanted.Labels) || !equality.Semantic.DeepEqual(current.OwnerReferences, wanted.OwnerReferences) {
		before := current.DeepCopy()
		current.Labels, current.OwnerReferences = wanted.Labels, wanted.OwnerReferences
		if err := f.hub.Patch(ctx, current, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	if current.Status.Decisions != nil && equality.Semantic.DeepEqual(current.Status.Decisions, decisions) {
		return nil
	}
	before := current.DeepCopy()
	current.Status.Decisions = decisions
	return f.hub.Status().Patch(ctx, current, client.MergeFrom(before))
}

// deleteDecisions deletes a placement's decisions except those to keep.
func (f *Fleet) deleteDecisions(ctx context.Context, p Placement, kept map[string]bool) error {
	list := &clusterv1beta1.PlacementDecisionList{}
	err := f.hub.List(ctx, list, client.InNamespace(p.Namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: p.Name})
	if err != nil {
		return fmt.Errorf("cannot list the decisions of %s: %w", p.key(), err)
	}
	for i := range list.Items {
		if kept[list.Items[i].Name] {
			continue
		}
		if err := client.IgnoreNotFound(f.hub.Delete(ctx, &list.Items[i])); err != nil {
			return fmt.Errorf("cannot delete decision %s: %w", list.Items[i].Name, err)
		}
	}
	return nil
}
