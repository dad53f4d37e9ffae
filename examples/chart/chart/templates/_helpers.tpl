{{- define "log-shipper.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/version: {{ .Chart.Version | quote }}
{{- end }}
