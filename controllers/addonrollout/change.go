package addonrollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Before are the objects of the stable revision; none without one. After are those of the
	// target.
	Before, After []*unstructured.Unstructured
}

// ChangeOf returns what the target changes on a cluster of a stage, and writes nothing. It reads
// as Explain does. A stage whose clusters all run the target has no change.
func ChangeOf(ctx context.Context, c client.Client, key client.ObjectKey, stage string, charts chart.Engines) (Change, error) {
	p, err := explained(ctx, c, key, charts)
	if err != nil {
		return Change{}, err
	}
	var change Change
	var first *plan.Cluster
	for i := range p.Clusters {
		at := &p.Clusters[i]
		if at.Planned.Stage != stage || at.Planned.State == rollout.Done {
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
	if stable := p.Observed.Rollout.Status.Stable; stable != nil {
		if change.Before, err = objectsOf(p.Observed, first, stable.Digest); err != nil {
			return Change{}, err
		}
	}
	change.After, err = objectsOf(p.Observed, first, p.Observed.Target.Digest)
	return change, err
}

// objectsOf renders a revision for a cluster.
func objectsOf(o *plan.Observation, c *plan.Cluster, digest string) ([]*unstructured.Unstructured, error) {
	renderer, err := o.Revisions.Renderer(digest)
	if err != nil {
		return nil, err
	}
	rendered, err := renderer.Render(c.RenderInput())
	if err != nil {
		return nil, fmt.Errorf("cannot render %s for cluster %s: %w", digest, c.Name, err)
	}
	return rendered.Objects()
}
