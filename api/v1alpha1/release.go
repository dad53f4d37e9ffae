package v1alpha1

import "slices"

// ReleaseRequested tells whether the user wants AddonFlow to let go of the add-on: any
// value of ReleaseAnnotation but "false", because whoever sets it means to keep what
// runs. From then on nobody is admitted and nobody is removed.
func (r *AddOnRollout) ReleaseRequested() bool {
	value, ok := r.Annotations[ReleaseAnnotation]
	return ok && value != "false"
}

// Releasing tells whether the release may be carried out: the source, which does not
// declare the add-on any more, asked for its removal, and the user for its release
// instead.
func (r *AddOnRollout) Releasing() bool {
	return r.ReleaseRequested() && r.Spec.Removal != nil
}

// Released tells whether the clusters were let go of: the finalizer is off, and what is
// left to do is the source's.
func (r *AddOnRollout) Released() bool {
	return r.Releasing() && !slices.Contains(r.Finalizers, Finalizer)
}
