package forge

import (
	"html/template"
	"net/http"
	"slices"
)

// logPage shows the log, newest first. Everything in it is escaped by the template.
const logPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Commit statuses</title>
<style>body{font:14px sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:left}
.success{color:#080}.failure,.error{color:#b00}.pending{color:#960}</style></head>
<body><h1>Commit statuses</h1><table>
<tr><th>#</th><th>time</th><th>commit</th><th>context</th><th>state</th><th>description</th></tr>
{{range .}}<tr><td>{{.Sequence}}</td><td>{{.Time.UTC.Format "15:04:05"}}</td><td>{{printf "%.10s" .SHA}}</td>
<td>{{.Context}}</td><td class="{{.State}}">{{.State}}</td><td>{{.Description}}</td></tr>
{{end}}</table></body></html>
`

// servePage shows the log to people and scripts.
func (f *Forge) servePage(w http.ResponseWriter, r *http.Request) {
	entries := f.Log()
	if r.URL.Path == "/log.json" {
		if entries == nil {
			entries = []Entry{}
		}
		reply(w, http.StatusOK, entries)
		return
	}
	slices.Reverse(entries)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = template.Must(template.New("log").Parse(logPage)).Execute(w, entries)
}
