package rollout

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	// DefaultLedgerLimit is the most bytes an encoded ledger has.
	DefaultLedgerLimit = 512 << 10
	// gzipAbove is the size of a list of names above which it is stored gzip'd.
	gzipAbove = 64 << 10
	// namesLimit bounds what a stored list may unpack to.
	namesLimit = 64 << 20
)

// entry is one cluster in the ledger. A cluster has at most one.
type entry struct {
	revision, stage string
	// admittedAt starts the progress deadline; verifiedAt, zero until then, the soak.
	admittedAt, verifiedAt time.Time
	// joining: it ran nothing when it was admitted, to the stable revision.
	joining bool
	// parked: lost after admission, or its works cannot be written; it holds no slot.
	parked bool
	// failed: of one that is parked, that it had failed when it left.
	failed bool
	// covered: it stands in a reservation of its whole step, not by name.
	covered bool
}

// allWave is the reservation of a whole step.
type allWave struct {
	revision, stage string
	at              time.Time
}

// record is a ledger in memory.
type record struct {
	entries map[string]*entry
	all     []allWave
	// departed is when each cluster that is leaving was first seen to.
	departed map[string]time.Time
}

// decode reads a stored ledger and refuses one that breaks its invariants: names are
// sorted and stand once, positions exist. The error is ErrCorruptLedger.
func decode(l v1alpha1.Ledger) (record, error) {
	r := record{entries: map[string]*entry{}}
	for i, w := range l.Waves {
		if err := r.addWave(w); err != nil {
			return record{}, fmt.Errorf("%w: wave %d: %w", ErrCorruptLedger, i, err)
		}
	}
	for i, pc := range l.Parked {
		names, err := unpack(pc.Clusters, pc.ClustersGzip)
		if err == nil {
			_, err = r.add(names, entry{revision: pc.Revision, stage: pc.Stage, parked: true, failed: pc.Failed})
		}
		if err != nil {
			return record{}, fmt.Errorf("%w: parked list %d: %w", ErrCorruptLedger, i, err)
		}
	}
	if l.Removal != nil {
		for i, d := range l.Removal.Departed {
			if err := r.addDeparted(d); err != nil {
				return record{}, fmt.Errorf("%w: departed list %d: %w", ErrCorruptLedger, i, err)
			}
		}
	}
	return r, nil
}

func (r *record) addDeparted(d v1alpha1.Departed) error {
	names, err := unpack(d.Clusters, d.ClustersGzip)
	if err != nil {
		return err
	}
	if r.departed == nil {
		r.departed = make(map[string]time.Time, len(names))
	}
	for _, name := range names {
		if _, ok := r.departed[name]; ok {
			return fmt.Errorf("cluster %q departed twice", name)
		}
		r.departed[name] = d.Since.UTC()
	}
	return nil
}

func (r *record) addWave(w v1alpha1.Wave) error {
	names, err := unpack(w.Clusters, w.ClustersGzip)
	if err != nil {
		return err
	}
	if w.All {
		if len(names) > 0 {
			return fmt.Errorf("it reserves all and names %d clusters", len(names))
		}
		r.all = append(r.all, allWave{revision: w.Revision, stage: w.Stage, at: w.AdmittedAt.UTC()})
		return nil
	}
	added, err := r.add(names, entry{
		revision: w.Revision, stage: w.Stage, admittedAt: w.AdmittedAt.UTC(), joining: w.Joining,
	})
	if err != nil {
		return err
	}
	for _, v := range w.Verified {
		err := eachPosition(v.Positions, len(added), func(i int) { added[i].verifiedAt = v.At.UTC() })
		if err != nil {
			return err
		}
	}
	return nil
}

// add gives each name a copy of e.
func (r *record) add(names []string, e entry) ([]entry, error) {
	if e.revision == "" {
		return nil, fmt.Errorf("it names no revision")
	}
	added := make([]entry, len(names))
	for i, name := range names {
		if i > 0 && names[i-1] >= name {
			return nil, fmt.Errorf("cluster %q is out of order", name)
		}
		if r.entries[name] != nil {
			return nil, fmt.Errorf("cluster %q stands in the ledger twice", name)
		}
		added[i] = e
		r.entries[name] = &added[i]
	}
	return added, nil
}

// unpack returns the names of a list, from whichever form it is stored in.
func unpack(names []string, packed []byte) ([]string, error) {
	if len(packed) == 0 {
		return names, nil
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("it lists clusters in two forms")
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the clusters: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, namesLimit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot unpack the clusters: %w", err)
	}
	if len(text) > namesLimit {
		return nil, fmt.Errorf("cannot unpack the clusters: more than %d bytes", namesLimit)
	}
	return strings.Split(string(text), "\n"), nil
}

// Admission is one cluster in a ledger, for those who show it.
type Admission struct {
	// Cluster admitted; "" where the whole stage is reserved.
	Cluster string
	// Revision is the digest it was admitted to, Stage the step it belonged to.
	Revision, Stage string
	// AdmittedAt is zero for a parked cluster, VerifiedAt for one that is not verified.
	AdmittedAt, VerifiedAt time.Time
	// Parked: it was lost after admission. Joining: it was admitted to the stable
	// revision, as its first. Failed: parked, and it had failed when the add-on left it.
	Parked, Joining, Failed bool
}

// Admissions lists what a ledger holds, by cluster, reservations of whole stages
// first. The error is ErrCorruptLedger.
func Admissions(l v1alpha1.Ledger) ([]Admission, error) {
	r, err := decode(l)
	if err != nil {
		return nil, err
	}
	found := make([]Admission, 0, len(r.all)+len(r.entries))
	for _, a := range r.all {
		found = append(found, Admission{Revision: a.revision, Stage: a.stage, AdmittedAt: a.at})
	}
	for name, e := range r.entries {
		found = append(found, Admission{
			Cluster: name, Revision: e.revision, Stage: e.stage,
			AdmittedAt: e.admittedAt, VerifiedAt: e.verifiedAt, Parked: e.parked, Joining: e.joining, Failed: e.failed,
		})
	}
	slices.SortFunc(found, func(a, b Admission) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Stage, b.Stage),
			strings.Compare(a.Revision, b.Revision), a.AdmittedAt.Compare(b.AdmittedAt))
	})
	return found, nil
}
