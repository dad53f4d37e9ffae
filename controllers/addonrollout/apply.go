package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// applyFor bounds one round of writes, so that a suspend or a new commit is heard
// while thousands of clusters are being written. What is left is left to the next
// round: it is all derived again from what is there. clusterFor bounds the requests of
// one cluster, so that one that hangs costs a worker and not the round; it is far above
// what a hub under load takes, which would otherwise answer 504 and be asked again.
const (
	applyFor   = 5 * time.Second
	clusterFor = 30 * time.Second
)

// configuredAtOnce is how many clusters are told at once of configurations that change
// nothing of what they run.
const configuredAtOnce = 8

// applied says how a round of writes went.
type applied struct {
	// skipped says that there was no round, because nothing may be written.
	skipped bool
	// unfinished says that the round ended before everything was written.
	unfinished bool
	// created says that something was created, which the watch has yet to show.
	created bool
	// next is the first cluster the round did not get to, "" for none; left are all
	// those it did not bring to an end.
	next string
	left []string
	// did are the decisions that the writes carried out besides those of the ledger.
	did []journal.Decision
	// troubles are the clusters that could not be written, and those whose revision
	// has no body any more: they keep what they run and are not repaired.
	troubles map[string]trouble
}

// round is one round of writes for one rollout.
type round struct {
	*Reconciler
	o    *observation
	plan rollout.Plan
	now  metav1.Time
	stop time.Time

	// liveOwner reads the ClusterManagementAddOn from the API server, once in a round.
	liveOwner func() (*addonv1alpha1.ClusterManagementAddOn, error)

	mu     sync.Mutex
	result applied
}

// apply writes what the plan says, cluster by cluster, and repairs what drifted. The
// ledger was written before. One cluster that cannot be written never stops another.
func (r *Reconciler) apply(ctx context.Context, o *observation, plan rollout.Plan, now time.Time) (applied, error) {
	d := &round{
		Reconciler: r, o: o, plan: plan, now: metav1.NewTime(now), stop: r.Clock.Now().Add(applyFor),
		result: applied{troubles: map[string]trouble{}},
	}
	d.liveOwner = sync.OnceValues(func() (*addonv1alpha1.ClusterManagementAddOn, error) {
		return readOwner(ctx, r.Live, o.rollout.Name)
	})
	kinds := map[string]map[rollout.ActionKind]bool{}
	for _, a := range plan.Actions {
		if kinds[a.Cluster] == nil {
			kinds[a.Cluster] = map[rollout.ActionKind]bool{}
		}
		kinds[a.Cluster][a.Kind] = true
	}
	members := map[string]*member{}
	for _, m := range o.members {
		members[m.name] = m
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.Workers)
	for _, i := range d.order(kinds) {
		m := members[plan.Clusters[i].Name]
		switch {
		case m == nil:
		case d.Clock.Now().After(d.stop):
			d.postpone(m.name)
		default:
			g.Go(func() error { return d.cluster(ctx, m, &plan.Clusters[i], kinds[m.name]) })
		}
	}
	err := g.Wait()
	return d.result, err
}

// order returns the positions in plan.Clusters in the order they are written.
func (d *round) order(kinds map[string]map[rollout.ActionKind]bool) []int {
	names := make([]string, len(d.plan.Clusters))
	for i := range d.plan.Clusters {
		names[i] = d.plan.Clusters[i].Name
	}
	return inOrder(names, d.rounds.next(client.ObjectKeyFromObject(d.o.rollout)), func(name string) int {
		switch {
		case kinds[name][rollout.Remove]:
			return 0
		case len(kinds[name]) > 0:
			return 1
		}
		return 2
	})
}

// cluster writes one cluster. Only the end of the context is an error of the round.
func (d *round) cluster(ctx context.Context, m *member, p *rollout.ClusterPlan, kinds map[rollout.ActionKind]bool) error {
	bounded, cancel := context.WithTimeout(ctx, clusterFor)
	defer cancel()
	err := d.write(bounded, m, p, kinds)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && m.overruled != nil:
		d.enter(m.name, trouble{reason: v1alpha1.ObjectConflictReason, text: m.overruled.message})
	case err == nil:
	case fleeting(err):
		// Somebody was faster, or the cluster is going: look again, at what is there.
		d.addOns.forget(client.ObjectKey{Namespace: m.name, Name: d.o.rollout.Name})
		for _, w := range slices.Concat(m.works, m.hooks) {
			d.works.forget(client.ObjectKeyFromObject(w))
		}
		d.leave(m.name)
	case errors.Is(err, errRevisionMissing):
		d.enter(m.name, trouble{reason: v1alpha1.RevisionMissingReason, text: err.Error()})
	default:
		d.enter(m.name, trouble{reason: v1alpha1.ApplyFailedReason, text: err.Error()})
		d.tellFailure(ctx, m, err)
	}
	return nil
}

// enter remembers that a cluster could not be brought to what the plan says.
func (d *round) enter(cluster string, t trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.troubles[cluster] = t
}

// leave says that a cluster is left for the next round.
func (d *round) leave(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.unfinished = true
	d.result.left = append(d.result.left, cluster)
}

// postpone says that the round did not get to a cluster; the next one begins with it.
func (d *round) postpone(cluster string) {
	d.leave(cluster)
	if d.result.next == "" {
		d.result.next = cluster
	}
}

// madeNew notes that something was created.
func (d *round) madeNew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.created = true
}

// write brings one cluster to what its plan says.
func (d *round) write(ctx context.Context, m *member, p *rollout.ClusterPlan, kinds map[rollout.ActionKind]bool) error {
	if kinds[rollout.Remove] {
		return d.remove(ctx, m)
	}
	addOn := m.addOn
	if addOn == nil && kinds[rollout.Install] {
		var err error
		if addOn, err = d.install(ctx, m, p.SelectedBy); err != nil {
			return err
		}
	}
	switch {
	case addOn == nil:
		return nil
	case addOn.DeletionTimestamp != nil:
		return d.depart(ctx, m)
	}
	addOn, err := d.reclaim(ctx, addOn)
	if err != nil {
		return err
	}
	if addOn, err = d.syncAnnotations(ctx, m, addOn, p.SelectedBy); err != nil {
		return err
	}
	return d.bring(ctx, m, p, addOn)
}

// bring writes what an installed cluster is to have, or says why it gets nothing.
func (d *round) bring(ctx context.Context, m *member, p *rollout.ClusterPlan, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	switch {
	case m.hindered != nil:
		return d.hinder(ctx, addOn, *m.hindered)
	case m.refused != nil && (!movable(p) || d.isTarget(p.Revision) || p.State == rollout.Failed):
		return errors.Join(d.repair(ctx, m, p, addOn), d.hinder(ctx, addOn, m.refused.hindrance))
	case m.hostingProblem() != "":
		return d.writeValidity(ctx, m, addOn)
	case p.Revision == rollout.Foreign:
		return d.adopt(ctx, m, p, addOn)
	case !movable(p) && d.waits(p):
		return d.await(ctx, addOn)
	case !movable(p):
		return nil
	}
	return d.sync(ctx, m, p, addOn)
}

// movable reports whether the plan names a revision for the cluster's works.
func movable(p *rollout.ClusterPlan) bool {
	return p.Revision != "" && p.Revision != rollout.Mixed && p.Revision != rollout.Foreign && p.State != rollout.Gone
}

// install creates the ManagedClusterAddOn, as OCM's addon-manager would, with the
// cluster's add-on annotations and our marks.
func (d *round) install(ctx context.Context, m *member, by rollout.Selection) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if d.o.owner == nil || d.o.owner.DeletionTimestamp != nil {
		return nil, errOwnerMissing
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: d.o.rollout.Name, Namespace: m.name, Finalizers: d.firstFinalizers(ctx, m),
		Labels:          map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue},
		Annotations:     selectedBy(addOnAnnotations(m), by),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d.o.owner, ownerKind())},
	}}
	if err := d.Client.Create(ctx, addOn); err != nil {
		return nil, fmt.Errorf("cannot install: %w", err)
	}
	d.addOns.create(addOn)
	d.madeNew()
	return addOn, nil
}

// errOwnerMissing says that the ClusterManagementAddOn is not there yet.
var errOwnerMissing = errors.New("cannot install: the ClusterManagementAddOn does not exist")

// remove deletes our ManagedClusterAddOn; its works go with it by owner reference.
// A hand-made one is never deleted, whatever the plan says.
func (d *round) remove(ctx context.Context, m *member) error {
	if installation(m.addOn) != rollout.Ours {
		return nil
	}
	err := d.Client.Delete(ctx, m.addOn, client.Preconditions{UID: &m.addOn.UID, ResourceVersion: &m.addOn.ResourceVersion})
	if err != nil {
		return fmt.Errorf("cannot remove: %w", err)
	}
	d.addOns.forget(client.ObjectKeyFromObject(m.addOn))
	d.did(journal.Removed, m.name, "", running(m), d.plan.Message)
	return nil
}

// sync writes the add-on's status and then its works, each only where it differs.
func (d *round) sync(ctx context.Context, m *member, p *rollout.ClusterPlan, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	renderer, err := d.o.rendererOf(ctx, m, p)
	if err != nil {
		return err // said also of a cluster that needs nothing now: it cannot be repaired
	}
	key, mark := client.ObjectKeyFromObject(d.o.rollout), markOf(d.o, m, p, addOn, d.Agents.Outcome(d.agentOf(m)))
	if d.synced.is(key, m.name, mark) {
		return nil
	}
	rendered, err := renderer.Render(m.renderInput())
	if err != nil {
		return worksFailed(failedToRender, fmt.Errorf("cannot render: %w", err))
	}
	if !admitted(p) && rendered.Digest != m.health.Digest {
		// What it renders from changed on the hub, such as the placement it is
		// in, or its works do not say what they hold. Writing them is a move like
		// any other: it waits for its admission.
		d.Agents.Assume(d.agentOf(m), rendered.Registration)
		if d.waits(p) {
			return d.await(ctx, addOn)
		}
		return nil
	}
	registered, err := d.accessOf(m, addOn, rendered)
	if err != nil {
		return err
	}
	if p.State == rollout.Parked {
		return nil // lost: what it says of itself is old, and what we say can wait
	}
	if addOn, err = d.holdBack(ctx, addOn, rendered.Finalizers()); err != nil {
		return err
	}
	mv := d.moveOf(m, p, addOn, rendered)
	mv.Supported = renderer.Supported()
	mv.Access = registered
	if !admitted(p) && !mv.Desires(addOn.Status.ConfigReferences) {
		// No admission paces this write: every cluster that has the configuration gets it now.
		if err := d.seat(ctx); err != nil {
			return err
		}
		defer d.leaveSeat()
	}
	addOn, wrote, err := d.writeMove(ctx, m, p, addOn, mv)
	if err != nil {
		return err
	}
	if _, err := d.letGo(ctx, addOn, rendered.Finalizers()); err != nil {
		return err
	}
	if !wrote {
		d.synced.set(key, m.name, mark) // only now: what failed above is tried again
	}
	return nil
}

// seat waits for one of the seats of clusters that are told of configurations.
func (r *Reconciler) seat(ctx context.Context) error {
	select {
	case r.seats <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaveSeat gives the seat to another cluster.
func (r *Reconciler) leaveSeat() { <-r.seats }

// admitted reports whether the ledger holds the cluster at the plan's revision.
func admitted(p *rollout.ClusterPlan) bool {
	return p.State.InFlight() || p.State == rollout.Failed || p.State == rollout.TimedOut
}

// isTarget reports whether a digest is that of the rollout's target.
func (d *round) isTarget(digest string) bool {
	t := d.o.rollout.Spec.Target
	return t != nil && t.Digest == digest
}
