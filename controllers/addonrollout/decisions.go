package addonrollout

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// decisions of one turn, by cluster and by step.
type decisions struct {
	clusters, steps []journal.Decision
}

// decided returns what the turn decided: the changes of the records, and of the stages and
// the phase. The steps are entered into the journal of next, so that they are stored in the
// same write as what they are about; earlier are those that no write has stored yet.
func (r *Reconciler) decided(ro *v1alpha1.AddOnRollout, next *v1alpha1.AddOnRolloutStatus, plan rollout.Plan, planned bool, stamp metav1.Time, step time.Duration) decisions {
	key := client.ObjectKeyFromObject(ro)
	var d decisions
	if planned {
		// The clock moved the times of both alike.
		before, after := standings(rollout.Shift(ro.Status.Ledger, step)), standings(next.Ledger)
		for i := range after {
			if c, ok := plan.Why(after[i].Cluster); ok {
				after[i].Reason = c.Reason
			}
		}
		d.clusters = journal.Clusters(before, after)
		d.steps = journal.Steps(d.clusters, before, after, sizes(next.Stages))
	}
	var about []journal.Decision
	if next.Target != nil { // else nothing was planned yet: an event says why
		about = journal.Rollout(ro.Status, *next)
	}
	if step != 0 {
		about = append(about, journal.Decision{Kind: journal.ClockStepped, Reason: "by " + step.Round(time.Millisecond).String() + "; the times of what is under way moved with it"})
	}
	for i := range about {
		if gone := ro.Spec.Removal; gone != nil && (about[i].Kind == journal.RemovalStarted || about[i].Kind == journal.RemovalEnded) {
			about[i].Commit, about[i].Revision = gone.Commit, ""
		}
	}
	d.steps = slices.Concat(r.unwritten.of(key), journal.InOrder(about, d.steps))
	for _, all := range [][]journal.Decision{d.clusters, d.steps} {
		nameCommits(all, next)
	}
	next.Journal = journal.Append(next.Journal, stamp, d.steps)
	return d
}

// standings are the records of a ledger. One that cannot be read holds none: then nothing
// is decided either.
func standings(ledger v1alpha1.Ledger) []journal.Standing {
	records, err := rollout.Records(ledger)
	if err != nil {
		return nil
	}
	found := make([]journal.Standing, len(records))
	for i, r := range records {
		found[i] = journal.Standing{Cluster: r.Cluster, Revision: r.Revision, Stage: r.Stage, State: r.State, Since: r.Since}
	}
	return found
}

// sizes are the numbers of clusters of the stages.
func sizes(stages []v1alpha1.StageStatus) map[string]int {
	sizes := make(map[string]int, len(stages))
	for _, s := range stages {
		sizes[s.Name] = int(s.Counts.Total)
	}
	return sizes
}

// nameCommits says which commit each decision is about: the one that brought its revision.
func nameCommits(all []journal.Decision, status *v1alpha1.AddOnRolloutStatus) {
	for i := range all {
		d := &all[i]
		switch {
		case d.Commit != "":
		case status.Target != nil && (d.Revision == status.Target.Digest || d.Revision == ""):
			d.Commit = status.Target.Commit
		case status.Stable != nil && d.Revision == status.Stable.Digest:
			d.Commit = status.Stable.Commit
		}
	}
}

// stored logs what a turn decided, and sends its events, once its status is stored.
func (r *Reconciler) stored(ctx context.Context, ro *v1alpha1.AddOnRollout, d decisions) {
	key := client.ObjectKeyFromObject(ro)
	log := decisionLog(ctx, key)
	for _, earlier := range r.unwritten.take(key) {
		if i := slices.Index(d.steps, earlier); i >= 0 {
			d.steps = slices.Delete(slices.Clone(d.steps), i, i+1) // logged when it was made
		}
	}
	logClusters(log, d.clusters)
	logSteps(log, d.steps)
	r.announce(ro, d.steps)
}

// decisionLog is the log of one rollout's decisions.
func decisionLog(ctx context.Context, key client.ObjectKey) logr.Logger {
	return ctrl.LoggerFrom(ctx).WithValues("rollout", key.String())
}

// logClusters logs decisions about clusters: at debug, a line each.
func logClusters(log logr.Logger, all []journal.Decision) {
	debug := log.V(1)
	if !debug.Enabled() {
		return
	}
	for _, d := range all {
		debug.Info(string(d.Kind), "commit", d.Commit, "revision", d.Revision, "stage", d.Stage, "cluster", d.Cluster,
			"from", d.From, "to", d.To, "reason", d.Reason)
	}
}

// logSteps logs decisions about stages and the whole rollout.
func logSteps(log logr.Logger, all []journal.Decision) {
	for _, d := range all {
		log.Info(string(d.Kind), "commit", d.Commit, "revision", d.Revision, "stage", d.Stage, "clusters", d.Count,
			"from", d.From, "to", d.To, "reason", d.Reason)
	}
}

// carriedOut logs what a round of writes did besides what the ledger says, such as the
// repair of a work, and returns the steps to enter into the journal.
func (r *Reconciler) carriedOut(ctx context.Context, ro *v1alpha1.AddOnRollout, did []journal.Decision) []journal.Decision {
	if len(did) == 0 {
		return nil
	}
	steps := journal.Steps(did, nil, nil, nil)
	nameCommits(did, &ro.Status)
	nameCommits(steps, &ro.Status)
	log := decisionLog(ctx, client.ObjectKeyFromObject(ro))
	logClusters(log, did)
	logSteps(log, steps)
	return steps
}

// writeLost logs that a plan was dropped because another writer was first. The journal has
// it with the next write.
func (r *Reconciler) writeLost(ctx context.Context, ro *v1alpha1.AddOnRollout) {
	d := journal.Decision{Kind: journal.WriteLost, Reason: "another writer was first; the plan is dropped and made anew"}
	if t := ro.Spec.Target; t != nil {
		d.Commit, d.Revision = t.Commit, t.Digest
	}
	key := client.ObjectKeyFromObject(ro)
	r.unwritten.add(key, d)
	logSteps(decisionLog(ctx, key), []journal.Decision{d})
}

// did notes a decision of this round about a cluster.
func (d *round) did(kind journal.Kind, cluster, stage, revision, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.result.did = append(d.result.did, journal.Decision{Kind: kind, Cluster: cluster, Stage: stage, Revision: revision, Reason: reason})
}

// unwritten are decisions that were logged, and that the journal of a rollout gets with the
// next write: what was lost was a write. Those of an operator that ends are in its log.
type unwritten struct {
	mu   sync.Mutex
	open map[client.ObjectKey][]journal.Decision
}

func newUnwritten() *unwritten { return &unwritten{open: map[client.ObjectKey][]journal.Decision{}} }

func (u *unwritten) add(key client.ObjectKey, d journal.Decision) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open[key] = append(u.open[key], d)
}

// of returns those of a rollout.
func (u *unwritten) of(key client.ObjectKey) []journal.Decision {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.open[key])
}

// take returns those of a rollout and forgets them.
func (u *unwritten) take(key client.ObjectKey) []journal.Decision {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer delete(u.open, key)
	return u.open[key]
}
