package spoke

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Truth sees the cluster as it is.
func (c *Cluster) Truth() View {
	return func(m workv1.ManifestResourceMeta) (*unstructured.Unstructured, error) {
		o := c.objects[identityOf(m)]
		if o == nil {
			return nil, nil
		}
		return o.snapshot()
	}
}

// Identify returns the results of a work as if it had been applied, or, with an error, as if
// every manifest had been refused. The cluster does not change.
func (c *Cluster) Identify(work *workv1.ManifestWork, refusal error) []Result {
	results := make([]Result, len(work.Spec.Workload.Manifests))
	for i, manifest := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(manifest.Raw); err != nil {
			results[i] = Result{Meta: workv1.ManifestResourceMeta{Ordinal: shown(i)}, Err: err}
			continue
		}
		found, err := c.identify(i, object)
		if err == nil {
			err = refusal
		}
		results[i] = Result{Meta: found, Err: err}
	}
	return results
}

// Pretend shows what an agent would report that never applied the work and claims that all is
// well: objects as they were before, with their old digest and generation and healthy counts.
// Objects that did not exist before are shown as healthy, without a digest.
func (c *Cluster) Pretend(work *workv1.ManifestWork) View {
	wanted := map[identity]*unstructured.Unstructured{}
	for i, manifest := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(manifest.Raw) != nil {
			continue
		}
		if m, err := c.identify(i, object); err == nil {
			wanted[identityOf(m)] = object
		}
	}
	return func(m workv1.ManifestResourceMeta) (*unstructured.Unstructured, error) {
		id := identityOf(m)
		if o := c.objects[id]; o != nil {
			return c.healthy(o.live, o.generation)
		}
		live := wanted[id]
		if live == nil {
			return nil, nil
		}
		live = live.DeepCopy()
		annotations := live.GetAnnotations()
		delete(annotations, DigestAnnotation)
		live.SetAnnotations(annotations)
		return c.healthy(live, 1)
	}
}

// healthy is an object as it would be if every image started.
func (c *Cluster) healthy(live *unstructured.Unstructured, generation int64) (*unstructured.Unstructured, error) {
	rosy := &World{opts: c.world.opts}
	rosy.opts.ImageStarts = func(string) bool { return true }
	o := &object{live: live, workload: rosy.workloadFor(live)}
	if o.workload == nil {
		return live.DeepCopy(), nil
	}
	if err := o.workload.want(live, generation); err != nil {
		return nil, err
	}
	for o.workload.step() {
	}
	shown, err := o.snapshot()
	if err != nil {
		return nil, err
	}
	shown.SetGeneration(generation)
	return shown, nil
}
