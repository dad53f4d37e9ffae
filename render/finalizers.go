package render

import (
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Finalizers returns OCM's finalizers that the cluster's ManagedClusterAddOn must have while its works exist; nil:
// none. There is one for hooks on the managed cluster, one for hooks on the hosting cluster, and one for all objects
// on a hosting cluster, because no owner reference deletes those.
func (r Rendered) Finalizers() []string {
	hooks := r.Hooks()
	var out []string
	if hooks.Managed {
		out = append(out, addonv1alpha1.AddonPreDeleteHookFinalizer)
	}
	if hooks.Hosting {
		out = append(out, addonv1alpha1.AddonHostingPreDeleteHookFinalizer)
	}
	if r.Hosts() {
		out = append(out, addonv1alpha1.AddonHostingManifestFinalizer)
	}
	return out
}

// WithFinalizers returns current with the missing finalizers of wanted, and without OCM's deprecated spellings, which
// no other controller removes. If nothing changes, it returns current itself.
func WithFinalizers(current, wanted []string) []string {
	out := current
	if slices.ContainsFunc(current, deprecatedFinalizer) {
		out = slices.DeleteFunc(slices.Clone(current), deprecatedFinalizer)
	}
	for _, f := range wanted {
		if !slices.Contains(out, f) {
			out = append(slices.Clip(out), f)
		}
	}
	return out
}

// WithoutFinalizers returns current without OCM's finalizers that are not wanted, deprecated spellings included.
// Finalizers of others stay.
func WithoutFinalizers(current, wanted []string) []string {
	drop := func(f string) bool { return HoldsAddOn(f) && !slices.Contains(wanted, f) }
	if !slices.ContainsFunc(current, drop) {
		return current
	}
	return slices.DeleteFunc(slices.Clone(current), drop)
}

// HoldsAddOn reports whether a finalizer of a ManagedClusterAddOn is one of OCM's for
// hooks or hosted manifests, deprecated ones included.
func HoldsAddOn(finalizer string) bool {
	switch finalizer {
	case addonv1alpha1.AddonPreDeleteHookFinalizer,
		addonv1alpha1.AddonHostingPreDeleteHookFinalizer,
		addonv1alpha1.AddonHostingManifestFinalizer:
		return true
	}
	return deprecatedFinalizer(finalizer)
}

func deprecatedFinalizer(finalizer string) bool {
	switch finalizer {
	case addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer,
		addonv1alpha1.AddonDeprecatedHostingPreDeleteHookFinalizer,
		addonv1alpha1.AddonDeprecatedHostingManifestFinalizer:
		return true
	}
	return false
}
