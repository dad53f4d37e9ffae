package addonstatus

import (
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Authorship is what AddonFlow last wrote to the status of one add-on. By it takeovers are
// found by value: another writer that wrote what AddonFlow had written has taken nothing. The
// zero value is that of an add-on that this process has not seen.
type Authorship struct {
	version string
	// taken in this version.
	taken []Takeover
	// own is what each kind was when it last was ours, or was accepted as if it were.
	own map[string]string
}

// Taken returns which fields of ours other writers took. An add-on whose status AddonFlow never
// wrote has none: what stands there is taken over, not fought for. It reads the managed fields
// of a version once.
func (a *Authorship) Taken(addOn *addonv1alpha1.ManagedClusterAddOn) []Takeover {
	if a.version == addOn.ResourceVersion && a.own != nil {
		return slices.Clone(a.taken)
	}
	a.version, a.taken = addOn.ResourceVersion, nil
	taken := Takeovers(addOn.ManagedFields)
	for _, kind := range Guarded() {
		mine := !slices.ContainsFunc(taken, func(t Takeover) bool { return t.Kind() == kind })
		own, known := a.own[kind]
		switch {
		case mine, !known && OwnWords(addOn, kind):
			// Ours; or taken before this process began, and just what we would write.
			a.keep(addOn, kind)
		case !known || own != Value(addOn, kind):
			for _, t := range taken {
				if t.Kind() == kind {
					a.taken = append(a.taken, t)
				}
			}
		}
	}
	return slices.Clone(a.taken)
}

// Wrote remembers what was written to an add-on's status: it is ours from now on.
func (a *Authorship) Wrote(addOn *addonv1alpha1.ManagedClusterAddOn) {
	for _, kind := range Guarded() {
		a.Accept(addOn, kind)
	}
}

// Accept takes what stands in an add-on's status for ours.
func (a *Authorship) Accept(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) {
	a.keep(addOn, kind)
	a.taken = slices.DeleteFunc(a.taken, func(t Takeover) bool { return t.Kind() == kind })
}

func (a *Authorship) keep(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) {
	if a.own == nil {
		a.own = map[string]string{}
	}
	a.own[kind] = Value(addOn, kind)
}
