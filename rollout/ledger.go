package rollout

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// parked: lost after admission, it holds no slot.
	parked bool
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
			_, err = r.add(names, entry{revision: pc.Revision, stage: pc.Stage, parked: true})
		}
		if err != nil {
			return record{}, fmt.Errorf("%w: parked list %d: %w", ErrCorruptLedger, i, err)
		}
	}
	return r, nil
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

// pack returns names in the form they are stored in.
func pack(names []string) (plain []string, packed []byte) {
	size := 0
	for _, name := range names {
		size += len(name) + 1
	}
	if size <= gzipAbove {
		return names, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	// A bytes.Buffer takes every write, so that neither call can fail.
	_, _ = io.WriteString(z, strings.Join(names, "\n"))
	_ = z.Close()
	return nil, b.Bytes()
}

// named is a cluster and its entry.
type named struct {
	cluster string
	*entry
}

// waveKey is what clusters must share to stand in one wave.
type waveKey struct {
	revision, stage string
	at              int64
	joining, parked bool
}

// encode writes entries, in order of name, and reservations of whole steps, with
// verified-at rounded up to a multiple of grain. The result is deterministic: waves
// oldest first.
func encode(entries []named, all []allWave, grain time.Duration) v1alpha1.Ledger {
	var l v1alpha1.Ledger
	groups := map[waveKey][]named{}
	for _, n := range entries {
		k := waveKey{n.revision, n.stage, n.admittedAt.Unix(), n.joining, n.parked}
		if n.parked {
			k.at, k.joining = 0, false
		}
		groups[k] = append(groups[k], n)
	}
	for k, members := range groups {
		if k.parked {
			l.Parked = append(l.Parked, parkedList(k, members))
			continue
		}
		l.Waves = append(l.Waves, wave(k, members, grain))
	}
	for _, a := range all {
		l.Waves = append(l.Waves, v1alpha1.Wave{Revision: a.revision, Stage: a.stage, AdmittedAt: metav1.NewTime(a.at), All: true})
	}
	slices.SortFunc(l.Waves, compareWaves)
	slices.SortFunc(l.Parked, func(a, b v1alpha1.ParkedClusters) int {
		return cmp.Or(strings.Compare(a.Revision, b.Revision), strings.Compare(a.Stage, b.Stage))
	})
	return l
}

func compareWaves(a, b v1alpha1.Wave) int {
	kind := func(w v1alpha1.Wave) int {
		switch {
		case w.All:
			return 2
		case w.Joining:
			return 1
		}
		return 0
	}
	return cmp.Or(
		a.AdmittedAt.Compare(b.AdmittedAt.Time), strings.Compare(a.Revision, b.Revision),
		strings.Compare(a.Stage, b.Stage), cmp.Compare(kind(a), kind(b)),
	)
}

func wave(k waveKey, members []named, grain time.Duration) v1alpha1.Wave {
	w := v1alpha1.Wave{
		Revision: k.revision, Stage: k.stage, Joining: k.joining,
		AdmittedAt: metav1.NewTime(time.Unix(k.at, 0).UTC()),
	}
	names, times := make([]string, len(members)), map[int64][]int{}
	for i, n := range members {
		names[i] = n.cluster
		if !n.verifiedAt.IsZero() {
			at := roundUp(n.verifiedAt, grain).Unix()
			times[at] = append(times[at], i)
		}
	}
	w.Clusters, w.ClustersGzip = pack(names)
	for at, positions := range times {
		w.Verified = append(w.Verified, v1alpha1.VerifiedAt{
			At: metav1.NewTime(time.Unix(at, 0).UTC()), Positions: formatPositions(positions),
		})
	}
	slices.SortFunc(w.Verified, func(a, b v1alpha1.VerifiedAt) int { return a.At.Compare(b.At.Time) })
	return w
}

func parkedList(k waveKey, members []named) v1alpha1.ParkedClusters {
	names := make([]string, len(members))
	for i, n := range members {
		names[i] = n.cluster
	}
	pc := v1alpha1.ParkedClusters{Revision: k.revision, Stage: k.stage}
	pc.Clusters, pc.ClustersGzip = pack(names)
	return pc
}

// roundUp returns the first time at or after t that is a multiple of grain.
func roundUp(t time.Time, grain time.Duration) time.Time {
	down := t.Truncate(grain)
	if down.Equal(t) {
		return down.UTC()
	}
	return down.Add(grain).UTC()
}

// size is the number of bytes the ledger has in an object.
func size(l v1alpha1.Ledger) int {
	text, err := json.Marshal(l)
	if err != nil {
		return DefaultLedgerLimit + 1 // no type in a Ledger can fail; hold if one ever does
	}
	return len(text)
}
