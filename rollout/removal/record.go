package removal

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/positions"
)

// Record is the state of removals between two plans. The zero value belongs to a fleet from which no cluster leaves.
type Record struct {
	// Commit that removed the add-on from Git; "" while single clusters leave.
	Commit string
	// Total is the number of ManagedClusterAddOns when the removal began.
	Total int
	// Leaving holds the departure of every cluster that leaves, by its name.
	Leaving map[string]Departure
	// UsedApproval is the commit of an approval that lifted the limits once and is still declared. It removes no
	// further cluster.
	UsedApproval string
	// Spent counts removals that were carried out, the newest at SpentAt.
	Spent   int
	SpentAt time.Time
}

// Departure is the state of one cluster that leaves.
type Departure struct {
	// Since is when the operator first saw that the cluster is to leave.
	Since time.Time
	// Approved: an approval lifts grace period and budget.
	Approved bool
	// Reserved: the removal is decided and holds a share of the budget.
	Reserved bool
}

// Names are the clusters of the record, sorted. The ledger's list of names must hold them.
func (r Record) Names() []string { return slices.Sorted(maps.Keys(r.Leaving)) }

// retimed is a copy of the record with every time changed.
func (r Record) retimed(change func(time.Time) time.Time) Record {
	if !r.SpentAt.IsZero() {
		r.SpentAt = change(r.SpentAt)
	}
	leaving := make(map[string]Departure, len(r.Leaving))
	for name, d := range r.Leaving {
		d.Since = change(d.Since)
		leaving[name] = d
	}
	r.Leaving = leaving
	return r
}

// Encode writes the record for a ledger with the names, which are sorted. Times are rounded up to
// grain. An empty record gives nil. It is an error if a name is missing.
func (r Record) Encode(names []string, grain time.Duration) (*v1alpha1.RemovalRecord, error) {
	if len(r.Leaving) == 0 && r.Spent == 0 && r.UsedApproval == "" {
		return nil, nil
	}
	out := &v1alpha1.RemovalRecord{Commit: r.Commit, Total: count32(r.Total), UsedApproval: r.UsedApproval, Spent: count32(r.Spent)}
	if r.Spent > 0 {
		at := metav1.NewTime(clock.RoundUp(r.SpentAt, grain))
		out.SpentAt = &at
	}
	alike := map[Departure][]int{}
	for name, d := range r.Leaving {
		at, ok := slices.BinarySearch(names, name)
		if !ok {
			return nil, fmt.Errorf("cluster %q leaves and is not in the ledger's list of names", name)
		}
		d.Since = clock.RoundUp(d.Since, grain)
		alike[d] = append(alike[d], at)
	}
	for d, at := range alike {
		slices.Sort(at)
		out.Leaving = append(out.Leaving, v1alpha1.LeavingClusters{
			Since: metav1.NewTime(d.Since), Approved: d.Approved, Reserved: d.Reserved, Clusters: positions.Format(at),
		})
	}
	slices.SortFunc(out.Leaving, func(a, b v1alpha1.LeavingClusters) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Clusters, b.Clusters))
	})
	return out, nil
}

// Decode reads a stored record of a ledger with the names. An error says what is corrupt.
func Decode(stored *v1alpha1.RemovalRecord, names []string) (Record, error) {
	if stored == nil {
		return Record{}, nil
	}
	r := Record{
		Commit: stored.Commit, Total: int(stored.Total), Leaving: map[string]Departure{},
		UsedApproval: stored.UsedApproval, Spent: int(stored.Spent),
	}
	if stored.SpentAt != nil {
		r.SpentAt = stored.SpentAt.UTC()
	}
	if r.Total < 0 || r.Spent < 0 || (r.Spent > 0) != (stored.SpentAt != nil) {
		return Record{}, fmt.Errorf("removal: %d spent of %d clusters at %v", r.Spent, r.Total, stored.SpentAt)
	}
	for _, g := range stored.Leaving {
		d := Departure{Since: g.Since.UTC(), Approved: g.Approved, Reserved: g.Reserved}
		twice := ""
		err := positions.Each(g.Clusters, len(names), func(i int) {
			if _, ok := r.Leaving[names[i]]; ok {
				twice = names[i]
			}
			r.Leaving[names[i]] = d
		})
		if err != nil {
			return Record{}, fmt.Errorf("removal: %w", err)
		}
		if twice != "" {
			return Record{}, fmt.Errorf("removal: cluster %q leaves twice", twice)
		}
	}
	return r, nil
}

func count32(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
