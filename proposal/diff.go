package proposal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/show"
)

// largestCompared is the size up to which objects are compared line by line. The time of a
// comparison grows faster than the size.
const largestCompared = 512 << 10

// linesOf is a unified diff of the objects that differ; no lines: no object differs. Values of Secrets are masked.
// Small objects are compared first, so that the author of a change cannot displace it with a long object. Objects that
// are too large together are only named.
func linesOf(before, after []*unstructured.Unstructured) ([]string, error) {
	before, after = differing(before, after), differing(after, before)
	sizes := map[string]int{}
	for _, o := range slices.Concat(before, after) {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot print %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		sizes[nameOf(o)] += len(text)
	}
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[a], sizes[b]), cmp.Compare(a, b))
	})
	room, large, named := largestCompared, map[string]bool{}, []string(nil)
	for _, name := range names {
		if sizes[name] <= room {
			room -= sizes[name]
			continue
		}
		large[name] = true
		named = append(named, brief.Visible("--- "+name), brief.Visible("+++ "+name), "@@ too large to be compared @@")
	}
	isLarge := func(o *unstructured.Unstructured) bool { return large[nameOf(o)] }
	before, after = slices.DeleteFunc(before, isLarge), slices.DeleteFunc(after, isLarge)
	diff, err := show.DiffLines(before, after)
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(diff)+len(named))
	for _, line := range diff {
		lines = append(lines, line.Text)
	}
	return append(lines, named...), nil
}

// nameOf is a name such as apps/v1 Deployment agents/hello, as the lines of a diff have it.
func nameOf(o *unstructured.Unstructured) string {
	return o.GetAPIVersion() + " " + o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// differing are the objects that have no equal among others.
func differing(objects, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	known := map[string][]*unstructured.Unstructured{}
	for _, o := range others {
		known[nameOf(o)] = append(known[nameOf(o)], o)
	}
	var out []*unstructured.Unstructured
	for _, o := range objects {
		same := known[nameOf(o)]
		// Objects of one name are compared together: in hosted mode they are on different clusters.
		if len(same) == 1 && equality.Semantic.DeepEqual(same[0].Object, o.Object) {
			continue
		}
		out = append(out, o)
	}
	return out
}
