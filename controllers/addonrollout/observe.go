package addonrollout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// indexName is the field that names an object. The API server selects by it, and
// the watch cache has an index of that name, so that both readers take the same reads.
const indexName = "metadata.name"

// observation is the world as far as one rollout is concerned. Reads only; nothing
// in it is written to.
type observation struct {
	rollout *v1alpha1.AddOnRollout
	// source that declares the add-on; nil when it is gone.
	source *v1alpha1.AddOnSource
	// owner is the add-on's ClusterManagementAddOn; nil while it does not exist.
	owner     *addonv1alpha1.ClusterManagementAddOn
	succeeded succeeded
	// prober judges health; policy is what it was made from. invalidHealth says why
	// the declared one could not be made.
	prober        render.Prober
	policy        string
	invalidHealth error
	placements    []rollout.Placement
	// members are every cluster that has the add-on or is selected, by name.
	members []*member
	// revisions that this turn asks for.
	revisions *turnRevisions
	// unseen: the watch has not shown yet everything that was created.
	unseen bool
}

// member is one cluster as far as the add-on is concerned.
type member struct {
	name string
	// cluster is nil when no ManagedCluster of that name exists.
	cluster *clusterv1.ManagedCluster
	// addOn is nil when the add-on is not installed.
	addOn *addonv1alpha1.ManagedClusterAddOn
	// works that deploy the add-on, in the cluster's namespace and in that of its
	// hosting cluster, sorted by name; also those being deleted, whose names are not
	// free yet.
	works []*workv1.ManifestWork
	// hooks are the works that run its pre-delete hooks.
	hooks []*workv1.ManifestWork
	// hosting says where it runs in hosted mode; hostedAt, of a member that departs, is
	// the cluster its hosting works are on, which may not be the one that is named.
	hosting  addonstatus.Hosting
	hostedAt *clusterv1.ManagedCluster
	// hosts: something of it is, or is to be, on the hosting cluster; the plan finds out.
	hosts bool
	// selectedBy are the install placements that select the cluster, in declared order.
	selectedBy []v1alpha1.PlacementReference
	// configs are those its ManagedClusterAddOn names, as the hub has them now.
	configs []render.Config
	// hindered is why it cannot be given anything now; nil where nothing is in the way.
	hindered *hindrance
	// refused is why the target cannot be rendered for it; the plan finds out. What it
	// runs is repaired all the same.
	refused *refusal
	// overruled is why the target, which it runs, is not all there: another add-on deploys
	// one of its objects differently, and had it first.
	overruled *refusal
	// serves: all of its pods are ready, as far as OCM asked its agent.
	serves bool
	// had is the install placement that selected the cluster when its works were
	// written, where none does any more; nil: none, or not known.
	had *v1alpha1.PlacementReference
	// health is what the works say about what they ask for now.
	health render.Observation
}

// observe reads everything a plan needs. The rollout itself was read uncached by
// the caller, because the ledger in it is what budget is spent on.
func (r *Reconciler) observe(ctx context.Context, ro *v1alpha1.AddOnRollout) (*observation, error) {
	o := &observation{rollout: ro, revisions: r.renderers.forTurn(ro.Namespace, ro.Name)}
	o.prober, o.policy, o.invalidHealth = r.probers.of(ro)
	var err error
	if o.source, err = r.readSource(ctx, ro); err != nil {
		return nil, err
	}
	if o.owner, err = readOwner(ctx, r.Client, ro.Name); err != nil {
		return nil, err
	}
	if o.owner == nil {
		// The source applied it just before the rollout; the watch may lag.
		if o.owner, err = readOwner(ctx, r.Live, ro.Name); err != nil {
			return nil, err
		}
	}
	if o.succeeded, o.revisions.listed, err = readRevisions(ctx, r.Client, ro.Namespace, ro.Name); err != nil {
		return nil, err
	}
	if o.placements, err = readPlacements(ctx, r.Client, placementRefs(ro.Spec)); err != nil {
		return nil, err
	}
	if o.members, err = r.readMembers(ctx, o); err != nil {
		return nil, err
	}
	r.joinConfigs(ctx, o)
	return o, nil
}

// readSource reads the source the target names; nil when it is gone.
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

// ownerKind is the kind of what owns an add-on's installations.
func ownerKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "ClusterManagementAddOn"}
}

// addOnKind is the kind of an add-on's installation on one cluster.
func addOnKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: addonv1alpha1.GroupName, Version: "v1alpha1", Kind: "ManagedClusterAddOn"}
}

// readOwner reads the add-on's ClusterManagementAddOn; nil when absent.
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

// readMembers joins placements, ManagedClusterAddOns, works and clusters by name.
func (r *Reconciler) readMembers(ctx context.Context, o *observation) ([]*member, error) {
	byName := map[string]*member{}
	get := func(name string) *member {
		if byName[name] == nil {
			byName[name] = &member{name: name}
		}
		return byName[name]
	}
	selectMembers(o, get)
	if err := r.joinAddOns(ctx, o, get); err != nil {
		return nil, err
	}
	clusters, err := r.joinClusters(ctx, labelSelector(o.rollout), byName, get)
	if err != nil {
		return nil, err
	}
	if err := r.joinWorks(ctx, o, byName); err != nil {
		return nil, err
	}
	joinHosts(clusters, o.rollout.Name, byName)
	members := make([]*member, 0, len(byName))
	for _, m := range byName {
		report := m.report(o.rollout.Name)
		m.health, m.serves = o.prober.Observe(report), m.serving(o.prober.Available(report))
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	return members, nil
}

// selectMembers enters every cluster that any placement selects, and which install
// placements do.
func selectMembers(o *observation, get func(string) *member) {
	install := map[v1alpha1.PlacementReference]bool{}
	if o.rollout.Spec.Install != nil {
		for _, p := range o.rollout.Spec.Install.Placements {
			install[p.PlacementReference] = true
		}
	}
	for _, p := range o.placements {
		ref := v1alpha1.PlacementReference{Namespace: p.Namespace, Name: p.Name}
		for _, g := range p.Groups {
			for _, name := range g.Clusters {
				m := get(name)
				if install[ref] && !slices.Contains(m.selectedBy, ref) {
					m.selectedBy = append(m.selectedBy, ref)
				}
			}
		}
	}
}

// joinAddOns enters every ManagedClusterAddOn of the add-on.
func (r *Reconciler) joinAddOns(ctx context.Context, o *observation, get func(string) *member) error {
	addOn := o.rollout.Name
	var list addonv1alpha1.ManagedClusterAddOnList
	err := r.Client.List(ctx, &list, client.MatchingFields{indexName: addOn}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", addOn, err)
	}
	shown := make(map[client.ObjectKey]bool, len(list.Items))
	for i := range list.Items {
		shown[client.ObjectKeyFromObject(&list.Items[i])] = true
		get(list.Items[i].Namespace).addOn = r.addOns.newest(&list.Items[i])
	}
	unseen, err := r.addOns.confirmed(shown, func(a *addonv1alpha1.ManagedClusterAddOn) bool { return a.Name == addOn },
		func(key client.ObjectKey) (*addonv1alpha1.ManagedClusterAddOn, error) { return r.liveAddOn(ctx, key) })
	for _, a := range unseen {
		o.unseen, get(a.Namespace).addOn = true, a
	}
	return err
}

// liveAddOn reads a ManagedClusterAddOn uncached; nil when it does not exist. It lists
// by name, because that is what the operator may do.
func (r *Reconciler) liveAddOn(ctx context.Context, key client.ObjectKey) (*addonv1alpha1.ManagedClusterAddOn, error) {
	var list addonv1alpha1.ManagedClusterAddOnList
	err := r.Live.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{indexName: key.Name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// joinWorks enters the works of the add-on on the clusters known so far, with those that
// lost OCM's label and were met when they were to be created. A work on a hosting cluster
// belongs to the cluster that OCM's label names. Works of another shape are not compared.
func (r *Reconciler) joinWorks(ctx context.Context, o *observation, byName map[string]*member) error {
	addOn := o.rollout.Name
	var list workv1.ManifestWorkList
	err := r.Client.List(ctx, &list, client.MatchingLabels{addOnNameLabel: addOn}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("cannot list works of %s: %w", addOn, err)
	}
	join := func(w *workv1.ManifestWork) {
		m := byName[render.AddOnNamespace(w)]
		switch {
		case m == nil:
		case render.IsDeployWork(w, addOn):
			m.works = append(m.works, w)
		case render.IsPreDeleteWork(w, addOn):
			m.hooks = append(m.hooks, w)
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
		o.unseen = true
		join(w)
	}
	for _, m := range byName {
		slices.SortFunc(m.works, func(a, b *workv1.ManifestWork) int { return strings.Compare(a.Name, b.Name) })
	}
	return err
}

// liveWork reads a work uncached; nil when it does not exist.
func (r *Reconciler) liveWork(ctx context.Context, key client.ObjectKey) (*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	err := r.Live.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{indexName: key.Name})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// joinClusters enters the ManagedClusters of the members, and those that the selector
// makes members. It returns all there are.
func (r *Reconciler) joinClusters(ctx context.Context, s labels.Selector, byName map[string]*member, get func(string) *member) ([]clusterv1.ManagedCluster, error) {
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
			m.cluster = c
		}
	}
	return list.Items, nil
}

// joinHosts enters where members run in hosted mode, once their works are known. Most
// fleets have no such member, and pay a look at an annotation for each.
func joinHosts(clusters []clusterv1.ManagedCluster, addOn string, byName map[string]*member) {
	var named map[string]*clusterv1.ManagedCluster
	for _, m := range byName {
		if _, hosted := m.hostingName(); !hosted && !m.departs() {
			continue
		}
		if named == nil {
			named = make(map[string]*clusterv1.ManagedCluster, len(clusters))
			for i := range clusters {
				named[clusters[i].Name] = &clusters[i]
			}
		}
		m.hosting = hostingOf(m, named)
		m.hostedAt = named[m.hostedBy(addOn)]
	}
}

// serving reports whether what works that OCM wrote, which carry no digest, say is that the
// add-on runs. Content that does not run proves nothing by being equal: its clusters are
// admitted, and judged, like any others.
func (m *member) serving(said render.Availability) bool {
	is, _ := reachable(m.cluster)
	return is && (said.Status == "" || said.Status == metav1.ConditionTrue && said.Degraded == "")
}

// report is what a prober reads about a member.
func (m *member) report(addOn string) render.Report {
	r := render.Report{AddOn: addOn, Works: m.works}
	if m.addOn != nil {
		r.Available = meta.FindStatusCondition(m.addOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable)
	}
	return r
}
