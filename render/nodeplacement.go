package render

import "k8s.io/apimachinery/pkg/runtime"

// place replaces node selector and tolerations by those of the configuration,
// each when it is given. OCM replaces tolerations only together with a node
// selector, and removes them when only the selector is given.
func (p *pod) place(nodeSelector, tolerations given) {
	replace(p.spec, "nodeSelector", nodeSelector)
	replace(p.spec, "tolerations", tolerations)
}

func replace(fields map[string]any, name string, g given) {
	switch {
	case !g.ok:
	case empty(g.value):
		delete(fields, name)
	default:
		fields[name] = runtime.DeepCopyJSONValue(g.value)
	}
}

func empty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil
}
