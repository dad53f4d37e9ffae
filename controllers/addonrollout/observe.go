package addonrollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/uninstalling"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// indexName is the field of an object's name. The API server can select by it, and the watch cache
// has an index with this name, so that the same list works with both.
const indexName = "metadata.name"

// observe reads everything that a plan needs into the observation. The caller read the rollout
// uncached, because slots are reserved in its ledger.
func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory, as rights) (*plan.Observation, error) {
	now, prober := r.Clock.Now(), mem.proberOf(ro)
	o := &plan.Observation{
		Look: plan.Look{Wall: now, Elapsed: r.Elapsed()}, Rollout: ro.DeepCopy(), Memory: mem.plan,
		Settings: plan.Settings{ParkAfter: r.ParkAfter, RemovalGrace: r.RemovalGrace, HookTimeout: r.HookTimeout, HidesTemplateHash: r.HidesTemplateHash, Bounds: as.bounds},
		Prober:   prober.Prober, Policy: prober.policy, InvalidHealth: prober.err, Denied: as.denied,
	}
	o.Refusals, o.Unremoved = mem.refusals()
	var err error
	if o.Source, err = r.readSource(ctx, ro); err != nil {
		return nil, err
	}
	if ro.DeletionTimestamp != nil {
		if o.Uninstalling, err = uninstalling.Cause(ctx, r.Live, ro.Namespace); err != nil {
			return nil, err
		}
	}
	if o.Owner, err = readOwner(ctx, r.Client, ro.Name); err != nil {
		return nil, err
	}
	if o.Owner == nil {
		// The source applied it just before the rollout; the watch may lag.
		if o.Owner, err = readOwner(ctx, r.Live, ro.Name); err != nil {
			return nil, err
		}
	}
	if o.Placements, err = readPlacements(ctx, r.Client, ro.Spec.Placements()); err != nil {
		return nil, err
	}
	if o.Members, o.Unseen, err = r.readMembers(ctx, ro, o.Placements, o.Prober); err != nil {
		return nil, err
	}
	for _, m := range o.Members {
		m.Contested = mem.troubles[m.Name].conflict
	}
	if o.Others, err = r.worksOfOthers(ctx, ro.Name); err != nil {
		return nil, err
	}
	if o.StoredRevisions, err = r.readStored(ctx, ro); err != nil {
		return nil, err
	}
	if o.Orders, err = r.readOrders(ctx, ro); err != nil {
		return nil, err
	}
	if o.Unproven, err = r.proveOrders(ctx, o.Orders); err != nil {
		return nil, err
	}
	o.Choice = o.Choose()
	o.Revisions = r.readContents(ctx, ro, o.Named(), o.StoredAs, as.bounds)
	mem.configs = r.joinConfigs(ctx, o, mem.configs)
	if kept, withdrawn := o.Confirm(); withdrawn { // other content may support other configurations
		o.Choice = kept
		mem.configs = r.joinConfigs(ctx, o, mem.configs)
	}
	if r.Gates != nil && ro.Spec.Removal == nil {
		o.Measured = r.Gates.Results(client.ObjectKeyFromObject(ro))
		if !o.Succeeded.Has(o.Target.Revision) { // otherwise no gate is asked
			if o.Approvals, err = r.readApprovals(ctx, ro); err != nil {
				return nil, err
			}
		}
	}
	if o.Dependencies, o.Cycle, err = r.readDependencies(ctx, ro, mem, as.bounds); err != nil {
		return nil, err
	}
	if o.NeededBy, err = r.readDependents(ctx, ro, o.Others); err != nil {
		return nil, err
	}
	r.joinAuthors(o, mem)
	o.RefusedWrites = mem.refusedWrites()
	return o, nil
}

// readSource reads the source that the target names; nil: it does not exist.
func (r *Reconciler) readSource(ctx context.Context, ro *v1alpha1.AddOnRollout) (*v1alpha1.AddOnSource, error) {
	if ro.Spec.Target == nil {
		return nil, nil
	}
	var s v1alpha1.AddOnSource
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: ro.Namespace, Name: ro.Spec.Target.Source}, &s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read source %s: %w", ro.Spec.Target.Source, err)
	}
	return &s, nil
}

// ownerKind is ClusterManagementAddOn, the owner of an add-on's ManagedClusterAddOns.
func ownerKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "ClusterManagementAddOn"}
}

func addOnKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "ManagedClusterAddOn"}
}

func readOwner(ctx context.Context, c client.Reader, addOn string) (*addonv1alpha1.ClusterManagementAddOn, error) {
	owner := &addonv1alpha1.ClusterManagementAddOn{}
	err := c.Get(ctx, client.ObjectKey{Name: addOn}, owner)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read ClusterManagementAddOn %s: %w", addOn, err)
	}
	return owner, nil
}

// readMembers joins placements, ManagedClusterAddOns, works and clusters by name. unseen: the watch does not show a
// created object yet.
func (r *Reconciler) readMembers(ctx context.Context, ro *v1alpha1.AddOnRollout, placements []rollout.Placement, prober render.Prober) (members []*plan.Member, unseen bool, err error) {
	byName := map[string]*plan.Member{}
	get := func(name string) *plan.Member {
		if byName[name] == nil {
			byName[name] = &plan.Member{Name: name}
		}
		return byName[name]
	}
	selectMembers(ro, placements, get)
	unseenAddOns, err := r.joinAddOns(ctx, ro.Name, get)
	if err != nil {
		return nil, false, err
	}
	clusters, err := r.joinClusters(ctx, labelSelector(ro), byName, get)
	if err != nil {
		return nil, false, err
	}
	unseenWorks, err := r.joinWorks(ctx, ro.Name, byName)
	if err != nil {
		return nil, false, err
	}
	joinHosts(clusters, ro.Name, byName)
	for _, m := range byName {
		report := m.Report(ro.Name)
		m.Health, m.Serves = prober.Observe(report), m.Serving(prober.Available(report))
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b *plan.Member) int { return strings.Compare(a.Name, b.Name) })
	return members, unseenAddOns || unseenWorks, nil
}

// selectMembers enters every cluster that a placement selects, and notes the install placements
// that select it.
func selectMembers(ro *v1alpha1.AddOnRollout, placements []rollout.Placement, get func(string) *plan.Member) {
	install := map[v1alpha1.PlacementReference]bool{}
	if ro.Spec.Install != nil {
		for _, p := range ro.Spec.Install.Placements {
			install[p.PlacementReference] = true
		}
	}
	for _, p := range placements {
		ref := v1alpha1.PlacementReference{Namespace: p.Namespace, Name: p.Name}
		for _, g := range p.Groups {
			for _, name := range g.Clusters {
				m := get(name)
				if install[ref] && !slices.Contains(m.SelectedBy, ref) {
					m.SelectedBy = append(m.SelectedBy, ref)
				}
			}
		}
	}
}

// joinAddOns enters every ManagedClusterAddOn of the add-on. It reports whether the watch does not show one yet.
func (r *Reconciler) joinAddOns(ctx context.Context, addOn string, get func(string) *plan.Member) (bool, error) {
	var list addonv1alpha1.ManagedClusterAddOnList
	err := r.Client.List(ctx, &list, client.MatchingFields{indexName: addOn}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", addOn, err)
	}
	shown := make(map[client.ObjectKey]bool, len(list.Items))
	for i := range list.Items {
		shown[client.ObjectKeyFromObject(&list.Items[i])] = true
		get(list.Items[i].Namespace).AddOn = r.addOns.newest(&list.Items[i])
	}
	unseen, err := r.addOns.confirmed(shown, func(a *addonv1alpha1.ManagedClusterAddOn) bool { return a.Name == addOn },
		func(key client.ObjectKey) (*addonv1alpha1.ManagedClusterAddOn, error) { return r.liveAddOn(ctx, key) })
	for _, a := range unseen {
		get(a.Namespace).AddOn = a
	}
	return len(unseen) > 0, err
}

// liveAddOn reads a ManagedClusterAddOn uncached; nil: it does not exist. It lists by name,
// because the operator has no right to get it.
func (r *Reconciler) liveAddOn(ctx context.Context, key client.ObjectKey) (*addonv1alpha1.ManagedClusterAddOn, error) {
	var list addonv1alpha1.ManagedClusterAddOnList
	err := r.Live.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{indexName: key.Name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// joinWorks enters the works of the add-on on the clusters known so far. Works that lost OCM's label are included if
// AddonFlow found them when it tried to create them. A work on a hosting cluster belongs to the cluster that OCM's
// label names. It reports whether the watch does not show one of the works yet.
func (r *Reconciler) joinWorks(ctx context.Context, addOn string, byName map[string]*plan.Member) (bool, error) {
	var list workv1.ManifestWorkList
	err := r.Client.List(ctx, &list, client.MatchingLabels{addOnNameLabel: addOn}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("cannot list works of %s: %w", addOn, err)
	}
	join := func(w *workv1.ManifestWork) {
		m := byName[render.AddOnNamespace(w)]
		switch {
		case m == nil:
		case render.IsDeployWork(w, addOn):
			m.Works = append(m.Works, w)
		case render.IsPreDeleteWork(w, addOn):
			m.Hooks = append(m.Hooks, w)
		}
	}
	shown := make(map[client.ObjectKey]bool, len(list.Items))
	for i := range list.Items {
		shown[client.ObjectKeyFromObject(&list.Items[i])] = true
		join(r.works.newest(&list.Items[i]))
	}
	unseen, err := r.works.confirmed(shown, func(w *workv1.ManifestWork) bool { return deploys(w, addOn) },
		func(key client.ObjectKey) (*workv1.ManifestWork, error) { return r.liveWork(ctx, key) })
	for _, w := range unseen {
		join(w)
	}
	for _, m := range byName {
		slices.SortFunc(m.Works, func(a, b *workv1.ManifestWork) int { return strings.Compare(a.Name, b.Name) })
	}
	return len(unseen) > 0, err
}

// liveWork reads a work uncached; nil: it does not exist.
func (r *Reconciler) liveWork(ctx context.Context, key client.ObjectKey) (*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	err := r.Live.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{indexName: key.Name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// joinClusters enters the ManagedClusters of the members. A cluster that the selector matches
// becomes a member. It returns all ManagedClusters.
func (r *Reconciler) joinClusters(ctx context.Context, s labels.Selector, byName map[string]*plan.Member, get func(string) *plan.Member) ([]clusterv1.ManagedCluster, error) {
	var list clusterv1.ManagedClusterList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list managed clusters: %w", err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		m := byName[c.Name]
		if m == nil && s.Matches(labels.Set(c.Labels)) {
			m = get(c.Name)
		}
		if m != nil {
			m.Cluster = c
		}
	}
	return list.Items, nil
}

// labelSelector selects ManagedClusters by the labels of the rollout. Without a selector, or with an invalid one, it
// selects none; the planner refuses an invalid selector.
func labelSelector(ro *v1alpha1.AddOnRollout) labels.Selector {
	if ro.Spec.ClusterLabelSelector == nil {
		return labels.Nothing()
	}
	s, err := metav1.LabelSelectorAsSelector(ro.Spec.ClusterLabelSelector)
	if err != nil {
		return labels.Nothing()
	}
	return s
}

// joinHosts enters the hosting clusters of members, after their works are known. A fleet without hosted mode costs
// only the check of one annotation per member.
func joinHosts(clusters []clusterv1.ManagedCluster, addOn string, byName map[string]*plan.Member) {
	var named map[string]*clusterv1.ManagedCluster
	for _, m := range byName {
		if _, hosted := m.HostingName(); !hosted && !m.Departs() {
			continue
		}
		if named == nil {
			named = make(map[string]*clusterv1.ManagedCluster, len(clusters))
			for i := range clusters {
				named[clusters[i].Name] = &clusters[i]
			}
		}
		m.Hosting = hostingOf(m, named)
		m.HostedAt = named[m.HostedBy(addOn)]
	}
}

// hostingOf is the hosted mode that the annotations of a member ask for. clusters are all clusters by
// name.
func hostingOf(m *plan.Member, clusters map[string]*clusterv1.ManagedCluster) addonstatus.Hosting {
	name, hosted := m.HostingName()
	if !hosted {
		return addonstatus.Hosting{}
	}
	return addonstatus.Hosting{Hosted: true, Name: name, Cluster: clusters[name]}
}

// worksOfOthers are the works that AddonFlow wrote for other add-ons, by their namespace. A
// work that lost OCM's label is left out, because it may belong to this add-on.
func (r *Reconciler) worksOfOthers(ctx context.Context, addOn string) (map[string][]*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	theirs, err := labels.Parse(fmt.Sprintf("%s=%s,%s,%s!=%s", v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue, addOnNameLabel, addOnNameLabel, addOn))
	if err != nil {
		return nil, fmt.Errorf("cannot select works of other add-ons: %w", err)
	}
	if err := r.Client.List(ctx, &list, client.MatchingLabelsSelector{Selector: theirs}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list works of other add-ons: %w", err)
	}
	var others map[string][]*workv1.ManifestWork
	for i := range list.Items {
		w := &list.Items[i]
		if others == nil {
			others = map[string][]*workv1.ManifestWork{}
		}
		others[w.Namespace] = append(others[w.Namespace], w)
	}
	for _, works := range others {
		slices.SortFunc(works, func(a, b *workv1.ManifestWork) int { return strings.Compare(a.Name, b.Name) })
	}
	return others, nil
}

// joinAuthors enters the status fields of the add-ons that other writers took over.
func (r *Reconciler) joinAuthors(o *plan.Observation, mem *memory) {
	there := map[types.UID]bool{}
	for _, m := range o.Members {
		if m.AddOn == nil {
			continue
		}
		there[m.AddOn.UID] = true
		if m.Taken = mem.authorOf(m.AddOn.UID).Taken(m.AddOn); len(m.Taken) > 0 {
			m.Decoded = r.renderers.cached(m.AddOn.Name, m.Health.Revision)
		}
	}
	maps.DeleteFunc(mem.authors, func(uid types.UID, _ *addonstatus.Authorship) bool { return !there[uid] })
}
