{{/* Labels of every object, as manifests/install gives them. */}}
{{- define "addonflow.labels" -}}
app.kubernetes.io/name: addonflow
app.kubernetes.io/part-of: addonflow
{{- end -}}
