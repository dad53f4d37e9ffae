package render

import (
	"cmp"
	"slices"

	workv1 "open-cluster-management.io/api/work/v1"
)

// Contention is an object that two add-ons deploy on one cluster with different content.
type Contention struct {
	// Object is its kind and name.
	Object string
	// Yields: this add-on deployed the object first, so the other add-on must stop deploying
	// it.
	Yields bool
	// Alone: the object has feedback rules, which name one content, so two add-ons cannot share
	// it.
	Alone bool
}

// Contends returns the first object of this rendering that a work of another add-on also deploys on the cluster, with
// different content: the two works would overwrite each other for ever. It returns false if there is none. work is in
// the cluster's own namespace; own are the present works of this add-on there.
//
// An object belongs to the add-on whose work with the object is the oldest. An object that belongs to the other
// add-on is returned before an object that Yields.
//
// Namespaces are ignored, because every add-on declares the Namespace into which it deploys. Objects with the same
// content in both are ignored, too. Objects on a hosting cluster are not compared.
func (r Rendered) Contends(work *workv1.ManifestWork, own []*workv1.ManifestWork) (Contention, bool) {
	if r.rendering == nil || r.Hosting != "" || work.Namespace != r.rendering.cluster {
		return Contention{}, false
	}
	var wanted []Identity
	deployed := r.bins().managed
	for _, i := range deployed {
		wanted = append(wanted, r.rendering.objects[i].id.Object())
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
		object := &r.rendering.objects[deployed[at]]
		if object.workload == nil && sameMeaning(object.plain, raw) {
			continue
		}
		found, contends = Contention{Object: theirs.String(), Alone: object.workload != nil, Yields: hadFirst(theirs.Object(), own, work)}, true
		if !found.Yields {
			break
		}
	}
	return found, contends
}

// hadFirst reports whether one of own deploys the object and is older than work.
func hadFirst(id Identity, own []*workv1.ManifestWork, work *workv1.ManifestWork) bool {
	return slices.ContainsFunc(own, func(w *workv1.ManifestWork) bool {
		return w.Namespace == work.Namespace && older(w, work) &&
			slices.ContainsFunc(identitiesOf(w), func(held Identity) bool { return held.Object() == id })
	})
}

// older orders works by creation time, and within a second by name, so that two add-ons that
// compare each other get the same result.
func older(a, b *workv1.ManifestWork) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}
