package rollout

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

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
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		_, err = io.WriteString(z, strings.Join(names, "\n"))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return names, nil // neither the level nor a bytes.Buffer can fail
	}
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
	failed          bool
}

// encode writes entries, in order of name, and reservations of whole steps, with
// verified-at rounded up to a multiple of grain. The result is deterministic: waves
// oldest first.
func encode(entries []named, all []allWave, grain time.Duration) v1alpha1.Ledger {
	var l v1alpha1.Ledger
	groups := map[waveKey][]named{}
	for _, n := range entries {
		k := waveKey{n.revision, n.stage, n.admittedAt.Unix(), n.joining, n.parked, n.failed}
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
		return cmp.Or(strings.Compare(a.Revision, b.Revision), strings.Compare(a.Stage, b.Stage), compareBools(a.Failed, b.Failed))
	})
	return l
}

// compareBools puts false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
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
	pc := v1alpha1.ParkedClusters{Revision: k.revision, Stage: k.stage, Failed: k.failed}
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

// sameLedger compares two ledgers as stored; times by the moment they name.
func sameLedger(a, b v1alpha1.Ledger) bool {
	return slices.EqualFunc(a.Waves, b.Waves, sameWave) &&
		slices.EqualFunc(a.Parked, b.Parked, func(a, b v1alpha1.ParkedClusters) bool {
			return a.Revision == b.Revision && a.Stage == b.Stage && a.Failed == b.Failed &&
				slices.Equal(a.Clusters, b.Clusters) && bytes.Equal(a.ClustersGzip, b.ClustersGzip)
		}) && sameRemoval(a.Removal, b.Removal)
}

func sameWave(a, b v1alpha1.Wave) bool {
	return a.Revision == b.Revision && a.Stage == b.Stage && a.All == b.All && a.Joining == b.Joining &&
		a.AdmittedAt.Equal(&b.AdmittedAt) && slices.Equal(a.Clusters, b.Clusters) && bytes.Equal(a.ClustersGzip, b.ClustersGzip) &&
		slices.EqualFunc(a.Verified, b.Verified, func(a, b v1alpha1.VerifiedAt) bool {
			return a.At.Equal(&b.At) && a.Positions == b.Positions
		})
}

func sameRemoval(a, b *v1alpha1.RemovalBudget) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Since.Equal(&b.Since) && a.Total == b.Total && a.Commit == b.Commit && a.Returned == b.Returned &&
		a.WindowStart.Equal(b.WindowStart) && slices.Equal(a.Removed, b.Removed) && sameLifted(a.Lifted, b.Lifted) &&
		slices.EqualFunc(a.Departed, b.Departed, func(a, b v1alpha1.Departed) bool {
			return a.Since.Equal(&b.Since) && slices.Equal(a.Clusters, b.Clusters) && bytes.Equal(a.ClustersGzip, b.ClustersGzip)
		})
}

func sameLifted(a, b *v1alpha1.LiftedRemoval) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Commit == b.Commit && a.At.Equal(&b.At)
}
