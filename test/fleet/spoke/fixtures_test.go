package spoke

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"
)

// workOf returns a work of the given YAML manifests, at a generation.
func workOf(t *testing.T, generation int64, manifests ...string) *workv1.ManifestWork {
	t.Helper()
	work := &workv1.ManifestWork{}
	work.Name, work.Namespace, work.Generation = "addon-hello-deploy-0", "cluster-1", generation
	for _, manifest := range manifests {
		raw, err := yaml.YAMLToJSON([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return work
}

// workloadYAML is a workload of any kind with one image. more is YAML below
// spec, in flow style.
func workloadYAML(kind, image, digest, more string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata:
  name: hello
  namespace: default
  annotations: {addonflow.io/digest: %q}
spec:
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec: {containers: [{name: hello, image: %q}]}
%s`, kind, digest, image, more)
}

func deploymentYAML(replicas int, image, digest string) string {
	return workloadYAML("Deployment", image, digest, fmt.Sprintf("  replicas: %d\n", replicas))
}

func newCluster(opts Options) *Cluster { return NewWorld(opts).NewCluster() }

// apply fails the test on any refusal.
func apply(t *testing.T, c *Cluster, work *workv1.ManifestWork) {
	t.Helper()
	for _, result := range c.Apply(work) {
		if result.Err != nil {
			t.Fatalf("%s %s: %v", result.Meta.Kind, result.Meta.Name, result.Err)
		}
	}
}

// settle steps until nothing changes.
func settle(t *testing.T, c *Cluster, work *workv1.ManifestWork) {
	t.Helper()
	for range 1000 {
		if !c.Step(work.Name) {
			return
		}
	}
	t.Fatal("the model does not come to rest")
}

// statusOf decodes what a controller says of the one workload.
func statusOf(t *testing.T, c *Cluster, into any) {
	t.Helper()
	for _, o := range c.objects {
		if o.workload == nil {
			continue
		}
		status, err := o.workload.status()
		if err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, into); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no workload")
}
