package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// applyFor limits one round of writes, so that a suspend or a new commit takes effect while thousands of clusters are
// being written. A new spec, such as that of a new commit, ends the round at once. The next round continues with a
// new plan. clusterFor limits the requests of one cluster, so that a request that hangs blocks a worker and not the
// round. It is far above the response time of a hub under load; a shorter limit would cause 504 and retries. It
// begins after the rendering of the cluster, which can wait for its turn and has its own limit.
const (
	applyFor   = 5 * time.Second
	clusterFor = 30 * time.Second
)

// configuredAtOnce is how many clusters are written at the same time when only the names of
// their configurations change.
const configuredAtOnce = 8

// applied is the result of a round of writes.
type applied struct {
	// skipped: there was no round, because nothing may be written.
	skipped bool
	// unfinished are the clusters that the round did not finish.
	unfinished []string
	// created: an object was created that the watch does not show yet.
	created bool
	// next is the first cluster that the round did not reach; "": it reached all.
	next string
	// did are the decisions of this round that are not in the ledger.
	did []journal.Decision
	// troubles are the clusters that could not be written, and the clusters whose revision has no body any more.
	// Clusters without the body keep their works and are not repaired.
	troubles map[string]trouble
}

// trouble is why the plan of one cluster could not be carried out.
type trouble struct {
	// reason is RevisionMissing, ApplyFailed, ObjectConflict or OwnershipConflict.
	reason string
	text   string
	// refusal says which object the hub refused to write, and why; "": the write failed for a reason that may be over
	// at the next attempt.
	refusal string
	// removal: the ManagedClusterAddOn was to be deleted.
	removal bool
	// conflict about a work of the cluster; nil: none.
	conflict error
}

// round is one round of writes for one rollout.
type round struct {
	*Reconciler
	reserved
	now  metav1.Time
	stop time.Time

	// liveOwner reads the ClusterManagementAddOn from the API server, once in a round.
	liveOwner func() (*addonv1alpha1.ClusterManagementAddOn, error)

	// mu guards the fields below and the memory.
	mu     sync.Mutex
	result applied
}

// apply carries out the plan, cluster by cluster, and repairs works that differ from it. The ledger was written
// before. If a cluster cannot be written, the others are still written.
func (r *Reconciler) apply(ctx context.Context, p reserved) (applied, error) {
	if !p.Writable() {
		return applied{skipped: true}, nil
	}
	d := &round{
		Reconciler: r, reserved: p, now: metav1.NewTime(p.Observed.Look.Wall), stop: r.Clock.Now().Add(applyFor),
		result: applied{troubles: map[string]trouble{}},
	}
	d.liveOwner = sync.OnceValues(func() (*addonv1alpha1.ClusterManagementAddOn, error) {
		return readOwner(ctx, r.Live, d.rollout.Name)
	})
	p.mem.dropCounts(p.rollout, d.now.Time)
	there := make(map[string]bool, len(p.Clusters))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.Workers)
	for _, i := range inOrder(p.Clusters, p.mem.next) {
		c := &p.Clusters[i]
		there[c.Name] = true
		if d.Clock.Now().After(d.stop) || r.respecified(ctx, client.ObjectKeyFromObject(p.rollout), p.mem) {
			d.postpone(c.Name)
			continue
		}
		g.Go(func() error {
			return d.note(ctx, c, d.write(ctx, c))
		})
	}
	err := g.Wait()
	maps.DeleteFunc(p.mem.unchanged, func(name string, _ plan.Fingerprint) bool { return !there[name] })
	return d.result, err
}

// inOrder returns the positions of clusters, sorted by name, in the order of the writes. Departures come first,
// because they free objects that other clusters wait for; then clusters with an action; then the other clusters,
// which are checked for drift. Each of these groups starts at next, so that clusters that the last round did not
// reach come first.
func inOrder(clusters []plan.Cluster, next string) []int {
	urgency := func(i int) int {
		switch c := &clusters[i]; {
		case c.Remove:
			return 0
		case c.Install || c.Move:
			return 1
		}
		return 2
	}
	start, _ := slices.BinarySearchFunc(clusters, next, func(c plan.Cluster, name string) int { return strings.Compare(c.Name, name) })
	order := make([]int, 0, len(clusters))
	for i := range clusters {
		order = append(order, (start+i)%len(clusters))
	}
	slices.SortStableFunc(order, func(a, b int) int { return urgency(a) - urgency(b) })
	return order
}

// note stores the result of the writes to a cluster. Only the end of the context is an error of the round.
func (d *round) note(ctx context.Context, c *plan.Cluster, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && d.stays(c):
		d.enter(c.Name, d.mem.troubles[c.Name])
	case err == nil && c.Overruled != nil:
		d.enter(c.Name, trouble{reason: v1alpha1.ObjectConflictReason, text: c.Overruled.Message})
	case err == nil:
	case fleeting(err):
		// Another writer was faster, or the cluster is being deleted. The next turn plans from the present state.
		d.deferCluster(c.Name)
	case errors.Is(err, plan.ErrRevisionMissing):
		d.enter(c.Name, trouble{reason: v1alpha1.RevisionMissingReason, text: err.Error()})
	case errors.Is(err, plan.ErrContested):
		d.enter(c.Name, trouble{reason: v1alpha1.OwnershipConflictReason, text: err.Error(), conflict: err})
	default:
		d.enter(c.Name, trouble{reason: v1alpha1.ApplyFailedReason, text: err.Error(), refusal: refusal(err), removal: c.Remove})
		d.setFailure(ctx, c, err)
	}
	return nil
}

// stays reports whether a cluster whose removal the hub refused waits for the next attempt.
func (d *round) stays(c *plan.Cluster) bool {
	return d.mem.troubles[c.Name].removal && !c.Remove && c.Planned.State == rollout.Removing
}

// enter notes that the plan of a cluster could not be carried out.
func (d *round) enter(cluster string, t trouble) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.troubles[cluster] = t
}

// deferCluster notes that the next round finishes a cluster.
func (d *round) deferCluster(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.unfinished = append(d.result.unfinished, cluster)
}

// postpone notes that the round did not reach a cluster; the next round starts with it.
func (d *round) postpone(cluster string) {
	d.deferCluster(cluster)
	if d.result.next == "" {
		d.result.next = cluster
	}
}

func (d *round) madeNew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.created = true
}

// did notes a decision of this round about a cluster.
func (d *round) did(kind journal.Kind, cluster, stage, revision, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.did = append(d.result.did, journal.Decision{Kind: kind, Cluster: cluster, Stage: stage, Revision: revision, Reason: reason})
}

func (d *round) setUnchanged(cluster string, fingerprint plan.Fingerprint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem.unchanged[cluster] = fingerprint
}

// unchanged reports whether a cluster needed no write when it had this fingerprint.
func (d *round) unchanged(cluster string, fingerprint plan.Fingerprint) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mem.unchanged[cluster] == fingerprint
}

// write writes one cluster: its ManagedClusterAddOn, and its works by sync.
func (d *round) write(ctx context.Context, c *plan.Cluster) error {
	if c.Remove {
		return d.remove(ctx, c)
	}
	addOn := c.AddOn
	if addOn == nil && c.Install {
		var err error
		if addOn, err = d.install(ctx, c); err != nil {
			return err
		}
		if runs := c.Running(); runs != "" && runs != rollout.Foreign { // if its works are gone, too, the ledger shows the repair
			d.did(journal.Repaired, c.Name, c.Planned.Stage, runs, "ManagedClusterAddOn was missing")
		}
	}
	switch {
	case addOn == nil:
		return nil
	case addOn.DeletionTimestamp != nil:
		return d.depart(ctx, c)
	}
	hub, cancel := context.WithTimeout(ctx, clusterFor)
	defer cancel()
	addOn, err := d.reclaim(hub, addOn)
	if err != nil {
		return err
	}
	if addOn, err = d.syncAnnotations(hub, c, addOn); err != nil {
		return err
	}
	switch {
	case c.Hindered != nil:
		return d.setConditions(hub, addOn, c.Hindered.Conditions()...)
	case c.Refused != nil && (!c.Movable() || d.IsTarget(c.Planned.Revision) || c.Planned.State == rollout.Failed):
		return errors.Join(d.setConditions(hub, addOn, c.Refused.Conditions()...), d.repair(ctx, c, addOn))
	case c.HostingProblem() != "":
		// The works on both clusters stay until the annotation is corrected.
		return d.setConditions(hub, addOn, *c.Hosting.Condition())
	case c.Planned.Revision == rollout.Foreign && c.Adopted != nil:
		return d.sync(ctx, c, addOn, c.Adopted)
	case c.Movable():
		renderer, err := d.RendererOf(c)
		if err != nil {
			return err // reported even without a write: the cluster cannot be repaired
		}
		return d.sync(ctx, c, addOn, renderer)
	case d.Waits(c):
		return d.await(hub, addOn)
	}
	return nil
}

// sync writes the add-on's status and then its works, each only if it differs. For an adopted cluster, it writes no
// work, because OCM wrote the works with the content that the fleet runs. AddonFlow's marks are written with the
// next content.
func (d *round) sync(ctx context.Context, c *plan.Cluster, addOn *addonv1alpha1.ManagedClusterAddOn, renderer *render.Renderer) error {
	permissions := d.Agents.Outcome(d.agentOf(c))
	fingerprint := d.Fingerprint(c, addOn, string(permissions.State), permissions.Message)
	if d.unchanged(c.Name, fingerprint) {
		return nil
	}
	rendered, err := renderer.Render(c.RenderInput())
	if err != nil {
		return worksFailed(failedToRender, fmt.Errorf("cannot render: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, clusterFor)
	defer cancel()
	adopted := c.Planned.Revision == rollout.Foreign
	if !adopted && !c.Admitted() && rendered.Digest != c.Health.Digest {
		// An input of the cluster changed on the hub, such as its placement, or its works do not name their content.
		// To write them would be a move, which needs an admission.
		d.Agents.Assume(d.agentOf(c), rendered.Registration)
		if d.Waits(c) {
			return d.await(ctx, addOn)
		}
		return nil
	}
	access, err := d.accessOf(c, addOn, rendered)
	if err != nil {
		return err
	}
	if !adopted && c.Planned.State == rollout.Parked {
		return nil // the cluster is lost: its feedback is old, and the status can wait
	}
	// The works that are written next may have hooks; with these finalizers a deletion waits for them.
	if addOn, err = d.setFinalizers(ctx, addOn, render.WithFinalizers(addOn.Finalizers, rendered.Finalizers())); err != nil {
		return err
	}
	mv := d.Move(c, addOn, renderer, rendered)
	mv.Access = access
	if !adopted && !c.Admitted() && !mv.Desires(addOn.Status.ConfigReferences) {
		// No admission paces this write: every cluster with the configuration gets it now.
		select {
		case d.seats <- struct{}{}:
			defer func() { <-d.seats }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// The status is written first, so that it describes the works when they change. For the exception, see unapplied.
	wrote := !adopted && unapplied(addOn)
	if wrote {
		if _, err := d.writeWorks(ctx, c, addOn, rendered); err != nil {
			return err
		}
	}
	if addOn, err = d.writeStatus(ctx, addOn, mv); err != nil {
		return err
	}
	if !adopted && !wrote {
		if wrote, err = d.writeWorks(ctx, c, addOn, rendered); err != nil {
			return err
		}
	}
	if _, err := d.setFinalizers(ctx, addOn, render.WithoutFinalizers(addOn.Finalizers, rendered.Finalizers())); err != nil {
		return err
	}
	if !wrote {
		d.setUnchanged(c.Name, fingerprint) // a failed write is not noted, so the next round retries it
	}
	return nil
}

// repair restores works that another writer changed or deleted, on a cluster for which the target cannot be rendered.
// If its current content now renders other objects, the works stay unchanged: to write them would be a move without
// an admission.
func (d *round) repair(ctx context.Context, c *plan.Cluster, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if !c.Movable() || d.IsTarget(c.Planned.Revision) || c.HostingProblem() != "" || c.Refused.Contended && len(c.Works) == 0 {
		return nil
	}
	renderer, err := d.Observed.Renderer(c.Planned.Revision)
	if err != nil {
		return err
	}
	rendered, err := renderer.Render(c.RenderInput())
	if err != nil {
		return worksFailed(failedToRender, err)
	}
	if len(c.Works) > 0 && rendered.Digest != c.Health.Digest {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clusterFor)
	defer cancel()
	_, err = d.writeWorks(ctx, c, addOn, rendered)
	return err
}
