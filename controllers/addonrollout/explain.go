package addonrollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
)

// The operator's defaults of --park-after, --removal-grace-period and --pre-delete-timeout.
const (
	DefaultParkAfter    = 10 * time.Minute
	DefaultRemovalGrace = 5 * time.Minute
	DefaultHookTimeout  = 10 * time.Minute
)

// Explain returns the plan the operator would make of a rollout right now, and
// writes nothing: the same reads and the same planner, with the caller's own
// credentials. c may read uncached. The operator's flags are those that its last
// status names; for a rollout that no operator planned yet, the defaults.
//
// The error is that of reading, one of rollout.New's, or says that the rollout has
// no target yet. With a *MissingError the plan is good: it says where every cluster
// stands, and of those that an AddOnRevision is missing for, that they are held.
func Explain(ctx context.Context, c client.Client, key client.ObjectKey, charts chart.Engines) (rollout.Plan, error) {
	var ro v1alpha1.AddOnRollout
	if err := c.Get(ctx, key, &ro); err != nil {
		return rollout.Plan{}, fmt.Errorf("cannot read rollout %s: %w", key.Name, err)
	}
	if ro.Spec.Target == nil {
		return rollout.Plan{}, fmt.Errorf("rollout %s has no target yet: its source has not declared the add-on", key.Name)
	}
	r := New(Options{
		Client: c, Live: c, Charts: charts, Clock: clock.RealClock{},
		ParkAfter:    published(ro.Status.ParkAfter, DefaultParkAfter),
		RemovalGrace: published(ro.Status.RemovalGracePeriod, DefaultRemovalGrace),
		HookTimeout:  DefaultHookTimeout,
	})
	o, err := r.observe(ctx, &ro)
	if err != nil {
		return rollout.Plan{}, err
	}
	contested := cmp.Or(o.conflict(), o.fenceDown(), told(&ro))
	if contested != nil && ro.Status.Target == nil {
		return rollout.Plan{}, contested
	}
	if o.invalidHealth != nil {
		return rollout.Plan{}, o.invalidHealth
	}
	now := r.Clock.Now()
	status := advance(ro.Status, *ro.Spec.Target, o.succeeded, metav1.NewTime(now))
	in, err := r.input(ctx, o, &status, now)
	if err != nil {
		return rollout.Plan{}, err
	}
	in.Contested = said(contested)
	plan, err := rollout.New(in)
	if err != nil {
		return rollout.Plan{}, err
	}
	if err := nameLeft(&plan, ro.Spec.Target.Digest); err != nil {
		return rollout.Plan{}, err
	}
	return plan, o.nameMissing(ctx, &plan)
}

// nameLeft adds the clusters that left the add-on and have a record of the target: their stage still
// counts them, although no placement selects them.
func nameLeft(plan *rollout.Plan, target string) error {
	records, err := rollout.Records(plan.Ledger)
	if err != nil {
		return err
	}
	for _, r := range records {
		if _, known := plan.Why(r.Cluster); known || r.Revision != target {
			continue
		}
		left := rollout.ClusterPlan{
			Name: r.Cluster, Stage: r.Stage, State: r.State,
			Reason: "it left the add-on; its stage counts it until it is selected again or new content is committed",
		}
		at, _ := slices.BinarySearchFunc(plan.Clusters, r.Cluster, func(c rollout.ClusterPlan, name string) int { return strings.Compare(c.Name, name) })
		plan.Clusters = slices.Insert(plan.Clusters, at, left)
	}
	return nil
}

// MissingError says which AddOnRevisions a rollout needs and the hub does not have.
type MissingError struct {
	// Target: the content to reach is among them, so that nobody is admitted to it.
	Target bool
	// Details are, per revision, its name and what is wrong with it, sorted.
	Details []string
}

// Error lists the revisions.
func (e *MissingError) Error() string { return strings.Join(e.Details, "; ") }

// nameMissing says of every cluster that is held at another revision than the target, for
// want of its AddOnRevision, which revision that is; of the target's the plan tells. The
// error is a *MissingError, or that of reading.
func (o *observation) nameMissing(ctx context.Context, plan *rollout.Plan) error {
	digest := o.rollout.Spec.Target.Digest
	missing := map[string]string{}
	look := func(m *member, digest string) (string, error) {
		switch digest {
		case "", rollout.Mixed, rollout.Foreign:
			return "", nil
		}
		_, err := o.repairs(ctx, m, digest)
		if errors.Is(err, errRevisionMissing) {
			missing[digest] = err.Error()
			return missing[digest], nil
		}
		return "", err
	}
	if _, err := look(nil, digest); err != nil {
		return err
	}
	members := map[string]*member{}
	for _, m := range o.members {
		members[m.name] = m
	}
	for i := range plan.Clusters {
		c := &plan.Clusters[i]
		why, err := look(members[c.Name], c.Revision)
		if err != nil {
			return err
		}
		if why != "" && c.Revision != digest {
			c.Reason = join(c.Reason, "held at what it runs: "+why)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &MissingError{Target: missing[digest] != "", Details: slices.Sorted(maps.Values(missing))}
}

// join puts one reason behind another, of which the first may be empty.
func join(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// published is what the operator's status says of a flag, usual where it says nothing.
func published(flag *metav1.Duration, usual time.Duration) time.Duration {
	if flag == nil {
		return usual
	}
	return flag.Duration
}
