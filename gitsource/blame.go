package gitsource

import (
	"context"
	"fmt"
	"maps"
	"sort"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/addonflow/addonflow/api/problem"
)

// What is built again to find what fails: as many directories, of as many bytes together.
const (
	blamed      = 16
	blamedBytes = 1 << 20
)

// changing are the fields of a kustomization that change what its resources say, in the
// order in which kustomize applies them.
func changing() []string {
	return []string{"components", "patchesStrategicMerge", "patches", "patchesJson6902", "replacements"}
}

// blame starts the problem of a directory that kustomize does not build: at the innermost
// kustomization that fails by itself, and in it at the first entry without which those
// before it do build. Kustomize's own words name neither file nor line.
func (w *walker) blame(ctx context.Context, dir string) problem.Problem {
	at, size := w.kustomizations[dir], 0
	for _, content := range w.files {
		size += len(content)
	}
	if size > blamedBytes {
		return problem.Problem{Path: at.file}
	}
	for _, base := range w.order[max(0, len(w.order)-blamed):] {
		k := w.kustomizations[base]
		if _, err := w.run(ctx, base, "", nil); k.Kind != types.ComponentKind && err != nil {
			at = k
			break
		}
	}
	for _, field := range changing() {
		list, _ := w.values[at.file][field].([]any)
		fails := func(n int) bool {
			value := maps.Clone(w.values[at.file])
			value[field] = list[:n]
			_, err := w.run(ctx, at.dir, at.file, canonical(value))
			return err != nil
		}
		if len(list) == 0 || fails(0) {
			continue
		}
		i := sort.Search(len(list)-1, func(i int) bool { return fails(i + 1) })
		return at.problem(fmt.Sprintf("%s[%d]", field, i))
	}
	return problem.Problem{Path: at.file}
}
