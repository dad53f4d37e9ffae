package gitsource

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/addonflow/addonflow/api/problem"
)

// unmatched warns of patches whose target matches no object, because kustomize accepts them and changes nothing. Only
// kustomize can match targets. So in a second build, each of these patches sets its own annotation. If no object has
// the annotation, the patch matched nothing.
func (w *walker) unmatched(ctx context.Context, dir string) {
	targets := map[string]problem.Problem{} // by annotation
	for _, k := range w.kustomizations {
		value := maps.Clone(w.values[k.file])
		list, _ := value["patches"].([]any)
		list = slices.Clone(list)
		for i := range list {
			entry, _ := list[i].(map[string]any)
			if entry["target"] == nil {
				continue // kustomize refuses a patch that names a missing object
			}
			p := k.problem(fmt.Sprintf("patches[%d].target", i))
			p.Message, p.Hint = "matches no object: the patch changes nothing", "compare it with the kinds and names of the resources"
			mark := fmt.Sprintf("patch-%d", len(targets))
			targets[mark] = p
			list[i] = map[string]any{"target": entry["target"], "patch": string(canonical(map[string]any{
				"apiVersion": "v1", "kind": "Any", "metadata": map[string]any{"name": "any", "annotations": map[string]any{mark: ""}},
			}))}
		}
		if len(list) > 0 {
			value["patches"] = list
			w.files[k.file] = canonical(value)
		}
	}
	if len(targets) == 0 {
		return
	}
	marked, err := w.run(ctx, dir)
	if err != nil {
		return
	}
	for _, r := range marked.Resources() {
		maps.DeleteFunc(targets, func(mark string, _ problem.Problem) bool { _, set := r.GetAnnotations()[mark]; return set })
	}
	var unmatched problem.List
	for _, p := range targets {
		unmatched = append(unmatched, p)
	}
	for _, p := range unmatched.Sorted() {
		w.warn(p)
	}
}
