package render

// inject appends environment variables to every container.
func (p *pod) inject(env []envVariable) {
	for _, c := range p.containers {
		for _, v := range env {
			if c.keep && has(c.fields, "env", "name", v.name) {
				continue
			}
			entry := map[string]any{nameKey: v.name}
			if v.value != "" { // the encoding of the Go type omits an empty value
				entry["value"] = v.value
			}
			appendTo(c.fields, "env", entry)
		}
	}
}
