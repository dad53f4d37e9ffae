package render

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func sha256Text(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:])
}

// BenchmarkRender is the cost of the first cluster: parsing and rendering all.
func BenchmarkRender(b *testing.B) {
	content := contentOf(b, helloTemplate, helloAgent)
	b.ReportAllocs()
	for b.Loop() {
		r := newRenderer(b, content)
		if _, err := r.Render(Cluster{Name: "cluster1"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRenderOneMoreCluster is the cost of each further cluster: its name, its digest over
// all its bytes, and the works to write.
func BenchmarkRenderOneMoreCluster(b *testing.B) {
	r := newRenderer(b, contentOf(b, helloTemplate, helloAgent))
	clusters := make([]Cluster, 1000)
	for i := range clusters {
		clusters[i].Name = fmt.Sprintf("cluster-%04d", i)
	}
	render := func(b *testing.B, i int) Rendered {
		b.Helper()
		rendered, err := r.Render(clusters[i%len(clusters)])
		if err != nil {
			b.Fatal(err)
		}
		return rendered
	}
	render(b, 0)
	b.Run("digest", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			render(b, i)
		}
	})
	b.Run("digest and works", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, _, err := render(b, i).Works(owner, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	first, _, err := render(b, 0).Works(Owner{Name: "hello", Namespace: "cluster-0000"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("digest and works over existing", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := render(b, 1).Works(Owner{Name: "hello", Namespace: "cluster-0000"}, first); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkInputs(b *testing.B) {
	r := newRenderer(b, contentOf(b, helloTemplate, helloAgent))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Inputs(Cluster{Name: "cluster1"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompareAndObserve(b *testing.B) {
	works, _, err := newRendered(b).Works(owner, nil)
	if err != nil {
		b.Fatal(err)
	}
	existing := works[0].DeepCopy()
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			if Compare(works[0], existing) != Same {
				b.Fatal("not the same")
			}
		}
	})
	b.Run("observe", func(b *testing.B) {
		for b.Loop() {
			observed([]*workv1.ManifestWork{existing})
		}
	})
}

func newRendered(b *testing.B) Rendered {
	b.Helper()
	return renderedFor(b, contentOf(b, helloTemplate, helloAgent), Cluster{Name: "cluster1"})
}

// BenchmarkObserveCEL is the cost of observing one cluster with two expressions.
func BenchmarkObserveCEL(b *testing.B) {
	p, err := NewProber(&v1alpha1.Health{Prober: v1alpha1.ProberCEL, HealthCheckExprs: []v1alpha1.HealthCheckExpr{{
		APIVersion: "apps/v1", Kind: "Deployment",
		Failed:  "has(feedback.phase) && feedback.phase == 'Broken'",
		Current: "feedback['addonflow.ready'] >= feedback['addonflow.desired'] && conditions.Applied.status == 'True'",
	}}})
	if err != nil {
		b.Fatal(err)
	}
	works, _, err := renderedFor(b, contentOf(b, podTemplate("apps/v1", "Deployment", "{containers: [{name: c}]}"), ""), Cluster{Name: "cluster1"}).
		Works(Owner{Name: "hello", Namespace: "cluster1"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	work := report(b, works[0], healthyDeployment)
	work.Status.ResourceStatus.Manifests[0].Conditions = []metav1.Condition{{Type: "Applied", Status: metav1.ConditionTrue}}
	for b.Loop() {
		if o := p.Observe(Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}}); !o.Verified {
			b.Fatal(o.Reason)
		}
	}
}

// BenchmarkOutlines prints what a Renderer remembers of each cluster.
func BenchmarkOutlines(b *testing.B) {
	const clusters = 10_000
	for b.Loop() {
		r := newRenderer(b, contentOf(b, helloTemplate, helloAgent))
		before := heapInUse()
		for i := range clusters {
			if _, err := r.Digest(Cluster{Name: fmt.Sprintf("cluster-%05d", i)}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heapInUse()-before)/clusters, "B/cluster")
		runtime.KeepAlive(r)
	}
}

// heapInUse is the memory of what can be reached.
func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
