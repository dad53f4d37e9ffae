package proxy

import (
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Write is a request that changes something.
type Write struct {
	// Verb is create, update, patch, apply or delete; post at a forge.
	Verb string
	// Resource is the plural, with its subresource: addonrollouts/status.
	Resource string
	// Phase is the state of the object in the body of a status. For a patch it is what the patch is of: annotations by
	// their names, finalizers, or spec; "" if the body has none.
	Phase string
	// Namespace and Name of the object; Name is empty if the server generates it.
	Namespace, Name string
}

// Class groups the writes that a fault does not tell apart.
func (w Write) Class() string {
	return strings.TrimSuffix(w.Verb+" "+w.Resource+" "+w.Phase, " ")
}

// Kind is the resource without its subresource.
func (w Write) Kind() string {
	kind, _, _ := strings.Cut(w.Resource, "/")
	return kind
}

// Object is what a write changes: the resource without its subresource, and the name.
type Object struct{ Kind, Namespace, Name string }

// Object is that of the write.
func (w Write) Object() Object { return Object{w.Kind(), w.Namespace, w.Name} }

// Classifier returns the write of a request; false: the request changes nothing.
type Classifier func(r *http.Request, body []byte) (Write, bool)

// notStored are the resources that an API server answers and does not store.
var notStored = map[string]bool{
	"selfsubjectaccessreviews": true, "subjectaccessreviews": true, "localsubjectaccessreviews": true,
	"selfsubjectrulesreviews": true, "selfsubjectreviews": true, "tokenreviews": true, "serviceaccounts/token": true,
}

// Kubernetes classifies the requests of an API server.
func Kubernetes(r *http.Request, body []byte) (Write, bool) {
	w, ok := target(r.URL.Path)
	if !ok || r.URL.Query().Get("dryRun") != "" || notStored[w.Resource] {
		return Write{}, false
	}
	switch r.Method {
	case http.MethodPost:
		w.Verb = "create"
	case http.MethodPut:
		w.Verb = "update"
	case http.MethodPatch:
		w.Verb = "patch"
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
			w.Verb = "apply"
		}
	case http.MethodDelete:
		w.Verb = "delete"
	default:
		return Write{}, false
	}
	w.read(body)
	return w, true
}

// read takes from a body what the path does not say.
func (w *Write) read(body []byte) {
	var object struct {
		Metadata struct {
			Name        string          `json:"name"`
			Annotations map[string]any  `json:"annotations"`
			Finalizers  json.RawMessage `json:"finalizers"`
		} `json:"metadata"`
		Spec   json.RawMessage `json:"spec"`
		Status struct {
			Phase      string `json:"phase"`
			Conditions []struct{ Type, Reason string }
		} `json:"status"`
	}
	if json.Unmarshal(body, &object) != nil {
		return // protobuf or YAML; neither has a phase
	}
	if w.Name == "" {
		w.Name = object.Metadata.Name
	}
	if !strings.HasSuffix(w.Resource, "/status") {
		if w.Verb == "patch" {
			parts := slices.Sorted(maps.Keys(object.Metadata.Annotations))
			if object.Metadata.Finalizers != nil {
				parts = append(parts, "finalizers")
			}
			if object.Spec != nil {
				parts = append(parts, "spec")
			}
			w.Phase = strings.ReplaceAll(strings.Join(parts, ","), "addonflow.io/", "")
		}
		return
	}
	w.Phase = object.Status.Phase
	for _, c := range object.Status.Conditions {
		if w.Phase == "" && (c.Type == "Ready" || c.Type == "Progressing") {
			w.Phase = c.Reason
		}
	}
}

// target reads a path of an API server: /api/v1/..., /apis/<group>/<version>/...
func target(of string) (Write, bool) {
	parts := strings.Split(strings.Trim(of, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return Write{}, false
	}
	var w Write
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		w.Namespace, parts = parts[1], parts[2:]
	}
	w.Resource = parts[0]
	if len(parts) > 1 {
		w.Name = parts[1]
	}
	if len(parts) > 2 {
		w.Resource += "/" + parts[2]
	}
	return w, true
}

// Statuses classifies the requests of a forge: its writes are commit statuses. The commit is the end of the path.
func Statuses(r *http.Request, body []byte) (Write, bool) {
	if r.Method != http.MethodPost {
		return Write{}, false
	}
	var status struct{ State, Context string }
	if json.Unmarshal(body, &status) != nil {
		return Write{}, false
	}
	return Write{Verb: "post", Resource: "statuses", Phase: status.State, Namespace: path.Base(r.URL.Path), Name: status.Context}, true
}

// Questions classifies the requests of gates: each asks for a measurement.
func Questions(resource string) Classifier {
	return func(r *http.Request, _ []byte) (Write, bool) {
		return Write{Verb: "ask", Resource: resource}, r.Method == http.MethodPost
	}
}
