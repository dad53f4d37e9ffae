package addonrollout

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/rollout"
)

// Change is what the target of a rollout changes on one cluster.
type Change struct {
	// Cluster is the first one of the stage that does not run the target.
	Cluster string
	// Clusters of the stage that do not run the target.
	Clusters int
	// From is the content that Before are the objects of: what the cluster runs, or the stable revision if the cluster
	// runs the target or nothing that is stored; nil: none. After are the objects of the target.
	From          *v1alpha1.Target
	Before, After []*unstructured.Unstructured
}

// ChangeOf returns what the target changes on a cluster of a stage, and writes nothing. It reads
// as Inspect does. A stage whose clusters all run the target has no change.
func ChangeOf(ctx context.Context, c client.Client, key client.ObjectKey, stage string, charts chart.Engines) (Change, error) {
	i, err := NewInspector(c, key, charts).explained(ctx)
	if err != nil {
		return Change{}, err
	}
	return i.changeOfFirst(ctx, func(at *plan.Cluster) bool { return at.Planned.Stage == stage && at.Planned.State != rollout.Done })
}

// ChangeOn is ChangeOf for one cluster, whatever its state; for "", the first cluster that does not
// run the target. A cluster that the plan does not have is an error.
func ChangeOn(ctx context.Context, c client.Client, key client.ObjectKey, cluster string, charts chart.Engines) (Change, error) {
	i, err := NewInspector(c, key, charts).explained(ctx)
	if err != nil {
		return Change{}, err
	}
	change, err := i.changeOfFirst(ctx, func(at *plan.Cluster) bool {
		return at.Name == cluster || cluster == "" && at.Planned.State != rollout.Done && at.Planned.State != rollout.Unchanged
	})
	if err == nil && cluster != "" && change.Cluster == "" {
		return Change{}, fmt.Errorf("cannot find cluster %q in the plan", cluster)
	}
	return change, err
}

// changeOfFirst is the change on the first wanted cluster; empty without such a cluster.
func (i *Inspection) changeOfFirst(ctx context.Context, wanted func(*plan.Cluster) bool) (Change, error) {
	p := i.plan
	var change Change
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
		return Change{}, nil
	}
	change.Cluster = first.Name
	var err error
	if change.From = p.Observed.Replaces(first); change.From != nil {
		if change.Before, err = i.objectsOf(ctx, first, change.From.Digest); err != nil {
			return Change{}, err
		}
	}
	change.After, err = i.objectsOf(ctx, first, p.Observed.Target.Digest)
	return change, err
}

// Change returns what the target changes on a cluster, against the content of a digest; against
// nothing for "". A cluster that the plan does not have is an error.
func (i *Inspection) Change(ctx context.Context, cluster, from string) (before, after []*unstructured.Unstructured, err error) {
	at := slices.IndexFunc(i.plan.Clusters, func(c plan.Cluster) bool { return c.Name == cluster })
	if at < 0 {
		return nil, nil, fmt.Errorf("cannot find cluster %q in the plan", cluster)
	}
	if from != "" {
		if before, err = i.objectsOf(ctx, &i.plan.Clusters[at], from); err != nil {
			return nil, nil, err
		}
	}
	after, err = i.objectsOf(ctx, &i.plan.Clusters[at], i.plan.Observed.Target.Digest)
	return before, after, err
}

func (i *Inspection) objectsOf(ctx context.Context, c *plan.Cluster, digest string) ([]*unstructured.Unstructured, error) {
	ro := i.plan.Observed.Rollout
	renderer, err := i.shown.get(ctx, ro.Namespace, ro.Name, digest, nil)
	if err != nil {
		return nil, err
	}
	rendered, err := renderer.Render(c.RenderInput())
	if err != nil {
		return nil, fmt.Errorf("cannot render %s for cluster %s: %w", digest, c.Name, err)
	}
	return rendered.Objects()
}
