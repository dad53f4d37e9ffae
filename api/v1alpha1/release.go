package v1alpha1

import "slices"

// ReleaseRequested reports whether the user wants AddonFlow to release the add-on. Any value of ReleaseAnnotation
// except "false" counts, because a user who sets the annotation wants to keep the add-on. From then on no cluster is
// admitted, and no add-on is removed.
func (r *AddOnRollout) ReleaseRequested() bool {
	value, ok := r.Annotations[ReleaseAnnotation]
	return ok && value != "false"
}

// Releasing reports whether the release may be carried out. The source must have dropped the add-on and
// requested its removal, and the user must have requested its release instead.
func (r *AddOnRollout) Releasing() bool {
	return r.ReleaseRequested() && r.Spec.Removal != nil
}

// Released reports whether the clusters were released: the finalizer is removed, and the source does the remaining
// work.
func (r *AddOnRollout) Released() bool {
	return r.Releasing() && !slices.Contains(r.Finalizers, Finalizer)
}
