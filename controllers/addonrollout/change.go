package addonrollout

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
)

// ErrNoSuchCluster means that the plan does not have the cluster.
var ErrNoSuchCluster = errors.New("cannot find the cluster in the plan")

// Change is the difference that content makes on one cluster.
type Change struct {
	// Cluster is the first one of the stage that does not run the target.
	Cluster string
	// Clusters of the stage that do not run the target.
	Clusters int
	// From is the content that the cluster ran before To; nil: none. If the cluster ran To all along, From has the
	// digest of To. Before and After are the objects of both.
	From          *v1alpha1.Target
	To            v1alpha1.Target
	Before, After []*unstructured.Unstructured
}

// ChangeOf returns the change by the target on a cluster of a stage, and writes nothing. It reads as Inspect does. If
// all clusters of the stage run the target, there is no change.
func ChangeOf(ctx context.Context, c client.Client, key client.ObjectKey, stage string, charts chart.Engines) (Change, error) {
	i, err := NewInspector(c, key, charts).explained(ctx)
	if err != nil {
		return Change{}, err
	}
	return i.changeOfFirst(ctx, func(at *plan.Cluster) bool { return at.Planned.Stage == stage && at.Planned.State != rollout.Done })
}

// ChangeOn returns the change by the target on the named cluster, whatever its state. If cluster is "", it takes the
// first cluster that does not run the target. A cluster that the plan does not have is an error.
func ChangeOn(ctx context.Context, c client.Client, key client.ObjectKey, cluster string, charts chart.Engines) (Change, error) {
	i, err := NewInspector(c, key, charts).explained(ctx)
	if err != nil {
		return Change{}, err
	}
	change, err := i.changeOfFirst(ctx, func(at *plan.Cluster) bool {
		return at.Name == cluster || cluster == "" && at.Planned.State != rollout.Done && at.Planned.State != rollout.Unchanged
	})
	if err == nil && cluster != "" && change.Cluster == "" {
		return Change{}, fmt.Errorf("%w: %q", ErrNoSuchCluster, cluster)
	}
	return change, err
}

// changeOfFirst is the change by the target on the first wanted cluster; without such a cluster it has only To.
func (i *Inspection) changeOfFirst(ctx context.Context, wanted func(*plan.Cluster) bool) (Change, error) {
	p := i.plan
	change := Change{To: p.Observed.Target}
	var first *plan.Cluster
	for i := range p.Clusters {
		at := &p.Clusters[i]
		if !wanted(at) {
			continue
		}
		if first == nil {
			first = at
		}
		change.Clusters++
	}
	if first == nil {
		return change, nil
	}
	steps, err := p.Steps()
	if err != nil {
		return Change{}, err
	}
	return i.change(ctx, steps.ToTarget(first), change)
}

// Change returns the change by content of the rollout on a cluster that gets or got the content. Without such a
// cluster, it has only To.
func (i *Inspection) Change(ctx context.Context, by v1alpha1.Target) (Change, error) {
	steps, err := i.plan.Steps()
	if err != nil {
		return Change{}, err
	}
	return i.change(ctx, steps.ToContent(by), Change{To: by})
}

// change adds the objects that a step renders.
func (i *Inspection) change(ctx context.Context, step plan.Step, change Change) (Change, error) {
	if step.Cluster == nil {
		return change, nil
	}
	var err error
	change.Cluster, change.From = step.Cluster.Name, step.From
	if change.From != nil {
		if change.Before, err = i.objectsOf(ctx, step.Cluster, change.From.Digest); err != nil {
			return Change{}, err
		}
	}
	if change.After, err = i.objectsOf(ctx, step.Cluster, change.To.Digest); err != nil {
		return Change{}, err
	}
	return change, nil
}

func (i *Inspection) objectsOf(ctx context.Context, c *plan.Cluster, digest string) ([]*unstructured.Unstructured, error) {
	ro := i.plan.Observed.Rollout
	renderer, err := i.shown.get(ctx, revisionKey{ro.Namespace, ro.Name, digest}, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := renderer.Render(c.RenderInput())
	if err != nil {
		return nil, fmt.Errorf("cannot render %s for cluster %s: %w", digest, c.Name, err)
	}
	return rendered.Objects()
}
