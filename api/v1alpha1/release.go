package v1alpha1

import "slices"

// ReleaseRequested reports whether the user wants AddonFlow to release the add-on. Any value of
// ReleaseAnnotation but "false" counts, because a user who sets it wants to keep what runs.
// From then on no cluster is admitted and none is removed.
func (r *AddOnRollout) ReleaseRequested() bool {
	value, ok := r.Annotations[ReleaseAnnotation]
	return ok && value != "false"
}

// Releasing reports whether the release may be carried out. The source must have dropped the add-on and
// requested its removal, and the user must have requested its release instead.
func (r *AddOnRollout) Releasing() bool {
	return r.ReleaseRequested() && r.Spec.Removal != nil
}

// Released reports whether the clusters were released: the finalizer is removed, and the source
// does the rest.
func (r *AddOnRollout) Released() bool {
	return r.Releasing() && !slices.Contains(r.Finalizers, Finalizer)
}
