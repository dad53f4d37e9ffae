package chart

// OCM's add-on framework gives some values to templates of manifests as Go structs. Here they
// are maps that also have the names of the struct's fields: {{ .Key }} and {{ .key }}. A
// missing field is empty, as in a struct.

type toleration map[string]any

func (t toleration) Key() any      { return text(t, "key", "Key") }
func (t toleration) Operator() any { return text(t, "operator", "Operator") }
func (t toleration) Value() any    { return text(t, "value", "Value") }
func (t toleration) Effect() any   { return text(t, "effect", "Effect") }
func (t toleration) TolerationSeconds() any {
	return first(t, "tolerationSeconds", "TolerationSeconds")
}

type requirement map[string]any

func (r requirement) ContainerIDRegex() any { return text(r, "containerIDRegex", "ContainerIDRegex") }

func (r requirement) Resources() any { return resourcesOf(first(r, "resources", "Resources")) }

func (r requirement) ResourcesRaw() any { return resourcesOf(first(r, "resourcesRaw", "ResourcesRaw")) }

type resources map[string]any

func (r resources) Limits() any   { return first(r, "limits", "Limits") }
func (r resources) Requests() any { return first(r, "requests", "Requests") }

func resourcesOf(v any) resources {
	fields, _ := v.(map[string]any)
	return resources(fields)
}

// first returns the value of the first of the names that exists.
func first(fields map[string]any, names ...string) any {
	for _, name := range names {
		if v, ok := fields[name]; ok {
			return v
		}
	}
	return nil
}

// text is first, with an empty string for a missing field.
func text(fields map[string]any, names ...string) any {
	if v := first(fields, names...); v != nil {
		return v
	}
	return ""
}

// addStructs replaces the values that the framework has as structs by maps of these types.
func addStructs(given map[string]any) {
	each(given, "Tolerations", func(item map[string]any) any { return toleration(item) })
	each(given, "ResourceRequirements", func(item map[string]any) any { return requirement(item) })
}

func each(given map[string]any, name string, become func(map[string]any) any) {
	list, isList := given[name].([]any)
	if !isList {
		return
	}
	out := make([]any, 0, len(list))
	for _, item := range list {
		if fields, isObject := item.(map[string]any); isObject {
			item = become(fields)
		}
		out = append(out, item)
	}
	given[name] = out
}
