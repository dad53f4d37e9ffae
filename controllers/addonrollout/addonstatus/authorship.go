package addonstatus

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Authorship is what AddonFlow last wrote to the status of one add-on. With it takeovers are
// found by value: a writer that writes the same value takes nothing over. The zero value is
// that of an add-on that this process has not seen.
type Authorship struct {
	version string
	// taken in this version.
	taken []Takeover
	// own are the sums of the values that AddonFlow wrote or accepted last, by kind. The values of a fleet
	// would take more memory than the works.
	own map[string]uint64
}

// Taken returns the fields of AddonFlow that other writers took over. An add-on whose status
// AddonFlow never wrote has none: its status is adopted and is not a conflict. Taken reads the
// managed fields of a version once.
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
			// AddonFlow wrote it, or another writer wrote the value that AddonFlow would write.
			a.keep(addOn, kind)
		case !known || own != sum(addOn, kind):
			for _, t := range taken {
				if t.Kind() == kind {
					a.taken = append(a.taken, t)
				}
			}
		}
	}
	return slices.Clone(a.taken)
}

// Wrote remembers the values that AddonFlow wrote to an add-on's status.
func (a *Authorship) Wrote(addOn *addonv1alpha1.ManagedClusterAddOn) {
	for _, kind := range Guarded() {
		a.Accept(addOn, kind)
	}
}

// Accept treats the present value of a kind as written by AddonFlow.
func (a *Authorship) Accept(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) {
	a.keep(addOn, kind)
	a.taken = slices.DeleteFunc(a.taken, func(t Takeover) bool { return t.Kind() == kind })
}

func (a *Authorship) keep(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) {
	if a.own == nil {
		a.own = make(map[string]uint64, len(Guarded()))
	}
	a.own[kind] = sum(addOn, kind)
}

// sum is the beginning of the hash of the value of a kind.
func sum(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) uint64 {
	all := sha256.Sum256([]byte(Value(addOn, kind)))
	return binary.BigEndian.Uint64(all[:])
}
