package addonstatus

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Authorship is what AddonFlow last wrote to the status of one add-on. It compares values: another writer that writes
// the same value takes nothing over. The zero value belongs to an add-on that this process has not seen.
type Authorship struct {
	version string
	// taken in this version.
	taken []Takeover
	// own are the values that AddonFlow wrote or accepted last, one of each kind.
	own []ownValue
}

// ownValue is the hash of a value. The values themselves would take more memory than the works of the fleet.
type ownValue struct {
	kind string
	sum  uint64
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
		i := a.position(kind)
		switch {
		case mine, i < 0 && OwnWords(addOn, kind):
			// AddonFlow wrote it, or another writer wrote the value that AddonFlow would write.
			a.keep(addOn, kind)
		case i < 0 || a.own[i].sum != sum(addOn, kind):
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

// Accept treats the current value of a kind as written by AddonFlow.
func (a *Authorship) Accept(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) {
	a.keep(addOn, kind)
	a.taken = slices.DeleteFunc(a.taken, func(t Takeover) bool { return t.Kind() == kind })
}

func (a *Authorship) keep(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) {
	if i := a.position(kind); i >= 0 {
		a.own[i].sum = sum(addOn, kind)
		return
	}
	if a.own == nil {
		a.own = make([]ownValue, 0, len(Guarded()))
	}
	a.own = append(a.own, ownValue{kind, sum(addOn, kind)})
}

// position of a kind in own; -1: its value is not known.
func (a *Authorship) position(kind string) int {
	return slices.IndexFunc(a.own, func(v ownValue) bool { return v.kind == kind })
}

// sum is the beginning of the hash of the value of a kind.
func sum(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) uint64 {
	all := sha256.Sum256([]byte(Value(addOn, kind)))
	return binary.BigEndian.Uint64(all[:])
}
