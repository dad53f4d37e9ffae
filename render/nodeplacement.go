package render

import "k8s.io/apimachinery/pkg/runtime"

// place replaces node selector and tolerations by those of the configuration, each only if it is given. OCM replaces
// tolerations only together with a node selector, and removes them if only the selector is given.
func (p *pod) place(nodeSelector, tolerations any) {
	replace(p.spec, "nodeSelector", nodeSelector)
	replace(p.spec, "tolerations", tolerations)
}

func replace(fields map[string]any, name string, value any) {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case value == nil:
	case isObject && len(object) == 0, isList && len(list) == 0:
		delete(fields, name)
	default:
		fields[name] = runtime.DeepCopyJSONValue(value)
	}
}
