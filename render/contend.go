package render

import (
	"cmp"
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Contention is an object that two add-ons deploy on one cluster, differently.
type Contention struct {
	// Object in words.
	Object string
	// Yields: the cluster has it from this add-on before, so that the other one is to give way.
	Yields bool
	// Alone: feedback is asked of it, which names one content, so that it cannot be shared.
	Alone bool
}

// Contends returns the first object that the cluster is to get and that a work of another
// add-on deploys there too, with other content: two works that are
// both applied overwrite each other for ever. False when there is none. work is one in the
// cluster's own namespace.
//
// An object belongs to whose work of those that hold it is the oldest; own are the works
// that this add-on has there now. One that this add-on may not write, because the other
// one had it first, is returned before one that Yields.
//
// A Namespace is none, since whoever deploys into it brings it along; nor is an object
// that both describe alike. Objects on a hosting cluster are not compared.
func (r Rendered) Contends(work *workv1.ManifestWork, own []*workv1.ManifestWork) (Contention, bool) {
	if r.shared == nil || r.Hosting != "" || work.Namespace != r.cluster {
		return Contention{}, false
	}
	var wanted []Identity
	for _, i := range r.shared.managed.managed {
		wanted = append(wanted, r.shared.objects[i].id.of(r.cluster).Object())
	}
	var found Contention
	contends := false
	for i := range work.Spec.Workload.Manifests {
		raw := work.Spec.Workload.Manifests[i].Raw
		theirs, ok := identityIn(raw)
		if !ok || theirs.Kind == "Namespace" {
			continue
		}
		at := slices.Index(wanted, theirs.Object())
		if at < 0 {
			continue
		}
		object := &r.shared.objects[r.shared.managed.managed[at]]
		if object.workload == nil && sameMeaning(object.plain.appendTo(nil, r.fill), raw) {
			continue
		}
		found, contends = Contention{Object: theirs.String(), Alone: object.workload != nil, Yields: hadFirst(theirs.Object(), own, work)}, true
		if !found.Yields {
			break
		}
	}
	return found, contends
}

// hadFirst tells whether one of own deploys the object and is older than work.
func hadFirst(id Identity, own []*workv1.ManifestWork, work *workv1.ManifestWork) bool {
	return slices.ContainsFunc(own, func(w *workv1.ManifestWork) bool {
		return w.Namespace == work.Namespace && older(w, work) &&
			slices.ContainsFunc(identitiesOf(w), func(held Identity) bool { return held.Object() == id })
	})
}

// older orders works by when they were created, and within a second by name, so that two
// add-ons which look at each other see the same.
func older(a, b *workv1.ManifestWork) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}
