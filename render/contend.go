package render

import (
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Contends names the first object that the cluster is to get and that a work of another
// add-on deploys there too, with other content (reliability, row 42): two works that are
// both applied overwrite each other for ever. "" when there is none. work is one in the
// cluster's own namespace.
//
// A Namespace is none, since whoever deploys into it brings it along; nor is an object
// that both describe alike. Objects on a hosting cluster are not compared.
func (r Rendered) Contends(work *workv1.ManifestWork) string {
	if r.shared == nil || r.Hosting != "" || work.Namespace != r.cluster {
		return ""
	}
	var own []Identity
	for _, i := range r.shared.managed.managed {
		own = append(own, r.shared.objects[i].id.of(r.cluster).Object())
	}
	for i := range work.Spec.Workload.Manifests {
		raw := work.Spec.Workload.Manifests[i].Raw
		theirs, ok := identityIn(raw)
		if !ok || theirs.Kind == "Namespace" {
			continue
		}
		at := slices.Index(own, theirs.Object())
		if at < 0 {
			continue
		}
		object := &r.shared.objects[r.shared.managed.managed[at]]
		if object.workload != nil || !sameMeaning(object.plain.appendTo(nil, r.fill), raw) {
			return theirs.String()
		}
	}
	return ""
}
