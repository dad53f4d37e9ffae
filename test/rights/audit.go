package rights

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Policy is an audit policy that logs the requests of the operator only.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: ["` + User + `"]
- level: None
`

// Use is a verb on a resource or subresource.
type Use struct{ Group, Resource, Verb string }

// String returns verb resource.group.
func (u Use) String() string { return u.Verb + " " + strings.TrimSuffix(u.Resource+"."+u.Group, ".") }

// Record is the part of an audit log about the operator.
type Record struct {
	// Used counts the requests that were allowed.
	Used map[Use]int
	// Refused are the requests that RBAC refused, with the reason, sorted, each once.
	Refused []string
}

// auditEvent is what is read of an event of audit.k8s.io/v1.
type auditEvent struct {
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// Read reads an audit log written under Policy.
func Read(log io.Reader) (Record, error) {
	r := Record{Used: map[Use]int{}}
	decoder := json.NewDecoder(log)
	for {
		var e auditEvent
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break // the last line may be half written
		} else if err != nil {
			return Record{}, fmt.Errorf("cannot read the audit log: %w", err)
		}
		switch {
		case e.ObjectRef == nil:
			// Requests for /livez/ping need only the headers, which a refusal has as well.
		case e.Annotations["authorization.k8s.io/decision"] == "forbid":
			r.Refused = append(r.Refused, fmt.Sprintf("%s %s: %s", e.Verb, e.URI, e.Annotations["authorization.k8s.io/reason"]))
		default:
			name := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
			r.Used[Use{Group: e.ObjectRef.APIGroup, Resource: name, Verb: e.Verb}]++
		}
	}
	slices.Sort(r.Refused)
	r.Refused = slices.Compact(r.Refused)
	return r, nil
}

// Unused returns the rights that the rules grant and the record does not use, sorted. Read them as a
// hint only: some rights are for situations that no test creates.
func (r Record) Unused(rules []rbacv1.PolicyRule) []string {
	var unused []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if u := (Use{Group: group, Resource: resource, Verb: verb}); r.Used[u] == 0 {
						unused = append(unused, u.String())
					}
				}
			}
		}
	}
	slices.Sort(unused)
	return slices.Compact(unused)
}
