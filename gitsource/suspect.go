package gitsource

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// What is built again at the most: as many patches, of builds of as many bytes.
const (
	probed      = 64
	probedBytes = 1 << 20
)

// never is a patch that fails on every object.
const never = `[{"op": "test", "path": "/kind", "value": ""}]`

// suspects tells of patches whose target matches no object: kustomize takes them and
// changes nothing. What matches is kustomize's to know: in place of the patch it is given
// one that fails on every object, and builds if there was none.
func (w *walker) suspects(ctx context.Context, dir string) {
	size := 0
	for _, content := range w.files {
		size += len(content)
	}
	if w.suspect == nil || size > probedBytes || w.warns() {
		return
	}
	left := probed
	for _, base := range w.order {
		k := w.kustomizations[base]
		list, _ := w.values[k.file]["patches"].([]any)
		for i := range list {
			entry, _ := list[i].(map[string]any)
			if entry["target"] == nil {
				continue // one that names its object itself is refused where there is none
			}
			if left--; left < 0 {
				return
			}
			value := maps.Clone(w.values[k.file])
			value["patches"] = append(slices.Clone(list[:i]), map[string]any{"target": entry["target"], "patch": never})
			if _, err := w.run(ctx, dir, k.file, canonical(value)); err == nil {
				p := k.problem(fmt.Sprintf("patches[%d].target", i))
				p.Message, p.Hint = "matches no object: the patch changes nothing", "compare it with the kinds and names of the resources"
				w.suspect(p)
			}
		}
	}
}

// warns tells whether kustomize prints a line at every build, for fields that it wants
// others for.
func (w *walker) warns() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(w.kustomizations)), func(k kustomization) bool {
		return k.PatchesStrategicMerge != nil || k.PatchesJson6902 != nil //nolint:staticcheck // deprecated, which is why it does
	})
}

// renewed writes deprecated fields as kustomize itself reads them, so that it has nothing
// to print about them: to the terminal of whoever runs this, and without a file's name.
func renewed(value map[string]any) {
	for _, f := range []struct {
		old, now string
		entries  func(any) []any
	}{
		{"imageTags", "images", func(old any) []any { list, _ := old.([]any); return list }},
		{"commonLabels", "labels", func(old any) []any { return []any{map[string]any{"pairs": old, "includeSelectors": true}} }},
	} {
		if old := value[f.old]; old != nil {
			list, _ := value[f.now].([]any)
			value[f.now] = append(slices.Clone(list), f.entries(old)...)
			delete(value, f.old)
		}
	}
}
