package gitsource

import (
	"fmt"
	"sync"
	"testing"

	"github.com/addonflow/addonflow/test/gitserver"
)

// fleetTree is a directory of n objects, with a kustomization or without.
func fleetTree(n int, kustomization string) tree {
	files := tree{}
	resources := ""
	for i := range n {
		name := fmt.Sprintf("cm-%04d.yaml", i)
		files[name] = configMap(fmt.Sprintf("cm-%04d", i), "v")
		resources += "- " + name + "\n"
	}
	if kustomization != "" {
		files["kustomization.yaml"] = kustomization + "resources:\n" + resources
	}
	return files
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{20, 200} {
		for name, kustomization := range map[string]string{"plain": "", "kustomize": "namePrefix: x-\n"} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				tr := fleetTree(n, kustomization).local(b)
				b.ReportAllocs()
				for b.Loop() {
					if _, problems := tr.Build(b.Context(), BuildOptions{}); len(problems) > 0 {
						b.Fatal(problems)
					}
				}
			})
		}
	}
}

// TestConcurrentBuilds is for the race detector: many builds read one tree at once.
func TestConcurrentBuilds(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.write("all", fleetTree(20, "namePrefix: x-\n"))
	tr, err := fetchMain(t.Context(), t, h.URL())
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if objects, problems := tr.Build(t.Context(), BuildOptions{}); len(objects) != 20 || len(problems) > 0 {
				t.Errorf("got %d objects and %v", len(objects), lines(problems))
			}
		})
	}
	group.Wait()
}
