package proposal

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/show"
)

// largestCompared is the size up to which objects are compared line by line. The time of a
// comparison grows faster than the size.
const largestCompared = 512 << 10

var errTooLarge = errors.New("too large to be compared")

// linesOf is a unified diff of the objects that differ; no lines: no object differs. Values of
// Secrets are masked.
func linesOf(before, after []*unstructured.Unstructured) ([]string, error) {
	before, after = differing(before, after), differing(after, before)
	size := 0
	for _, o := range append(append([]*unstructured.Unstructured(nil), before...), after...) {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot print %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		size += len(text)
	}
	if size > largestCompared {
		return nil, fmt.Errorf("%s differ: %w", brief.Count(max(len(before), len(after)), "object"), errTooLarge)
	}
	diff, err := show.DiffLines(before, after)
	if err != nil {
		return nil, err
	}
	lines := make([]string, 0, len(diff))
	for _, line := range diff {
		lines = append(lines, line.Text)
	}
	return lines, nil
}

// differing are the objects that have no equal among others.
func differing(objects, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	known := map[string][]*unstructured.Unstructured{}
	id := func(o *unstructured.Unstructured) string {
		return o.GetAPIVersion() + " " + o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	for _, o := range others {
		known[id(o)] = append(known[id(o)], o)
	}
	var out []*unstructured.Unstructured
	for _, o := range objects {
		same := known[id(o)]
		// Objects of one name are compared together: in hosted mode they are on different clusters.
		if len(same) == 1 && equality.Semantic.DeepEqual(same[0].Object, o.Object) {
			continue
		}
		out = append(out, o)
	}
	return out
}
