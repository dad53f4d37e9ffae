package rollout

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// drawEntries are entries of some clusters, in order of name.
func drawEntries(t *rapid.T) []named {
	names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z0-9]{1,8}`), rapid.ID[string]).Draw(t, "clusters")
	slices.Sort(names)
	second := func(label string) time.Time {
		return noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, label)) * time.Second)
	}
	entries := make([]named, len(names))
	for i, name := range names {
		e := &entry{
			revision: rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "revision"),
			stage:    rapid.SampledFrom([]string{"", "canary"}).Draw(t, "stage"),
			parked:   rapid.Bool().Draw(t, "parked"),
		}
		if !e.parked {
			e.admittedAt, e.joining = second("admitted"), rapid.Bool().Draw(t, "joining")
			if rapid.Bool().Draw(t, "verified") {
				e.verifiedAt = second("verified at")
			}
		}
		entries[i] = named{name, e}
	}
	return entries
}

func TestLedgerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		all := []allWave{{revision: "v2", stage: "all", at: noon}}
		l := encode(entries, all, time.Second)
		back, err := decode(l)
		if err != nil {
			t.Fatal(err)
		}
		want := record{entries: map[string]*entry{}, all: all}
		for _, n := range entries {
			want.entries[n.cluster] = n.entry
		}
		if diff := cmp.Diff(want, back, cmp.AllowUnexported(record{}, entry{}, allWave{})); diff != "" {
			t.Fatalf("what was read is not what was written (-written +read):\n%s", diff)
		}
		if again := encode(entries, all, time.Second); !sameLedger(l, again) || cmp.Diff(l, again) != "" {
			t.Fatal("written twice, two ledgers")
		}
		for i, w := range l.Waves {
			if !slices.IsSorted(w.Clusters) {
				t.Fatalf("wave %d is out of order: %v", i, w.Clusters)
			}
			if i > 0 && w.AdmittedAt.Before(&l.Waves[i-1].AdmittedAt) {
				t.Fatalf("wave %d is older than the one before it", i)
			}
		}
	})
}

func TestLedgerMergesWavesOfASecond(t *testing.T) {
	entries := []named{
		{"a", &entry{revision: "v2", stage: "s", admittedAt: noon, verifiedAt: noon.Add(time.Minute)}},
		{"b", &entry{revision: "v2", stage: "s", admittedAt: noon}},
		{"c", &entry{revision: "v2", stage: "s", admittedAt: noon, verifiedAt: noon.Add(time.Minute)}},
	}
	want := v1alpha1.Ledger{Waves: []v1alpha1.Wave{{
		Revision: "v2", Stage: "s", AdmittedAt: metav1.NewTime(noon), Clusters: []string{"a", "b", "c"},
		Verified: []v1alpha1.VerifiedAt{{At: metav1.NewTime(noon.Add(time.Minute)), Positions: "0,2"}},
	}}}
	if diff := cmp.Diff(want, encode(entries, nil, time.Second)); diff != "" {
		t.Error(diff)
	}
}

func TestLedgerCorrupt(t *testing.T) {
	at := metav1.NewTime(noon)
	good := v1alpha1.Wave{Revision: "v2", AdmittedAt: at, Clusters: []string{"a", "b"}}
	with := func(change func(*v1alpha1.Wave)) v1alpha1.Ledger {
		w := *good.DeepCopy()
		change(&w)
		return v1alpha1.Ledger{Waves: []v1alpha1.Wave{w}}
	}
	for name, l := range map[string]v1alpha1.Ledger{
		"out of order":       with(func(w *v1alpha1.Wave) { w.Clusters = []string{"b", "a"} }),
		"twice in a wave":    with(func(w *v1alpha1.Wave) { w.Clusters = []string{"a", "a"} }),
		"twice in two waves": {Waves: []v1alpha1.Wave{good, good}},
		"wave and parked":    {Waves: []v1alpha1.Wave{good}, Parked: []v1alpha1.ParkedClusters{{Revision: "v2", Clusters: []string{"a"}}}},
		"no revision":        with(func(w *v1alpha1.Wave) { w.Revision = "" }),
		"position too high":  with(func(w *v1alpha1.Wave) { w.Verified = []v1alpha1.VerifiedAt{{At: at, Positions: "2"}} }),
		"no position":        with(func(w *v1alpha1.Wave) { w.Verified = []v1alpha1.VerifiedAt{{At: at, Positions: "x"}} }),
		"range backwards":    with(func(w *v1alpha1.Wave) { w.Verified = []v1alpha1.VerifiedAt{{At: at, Positions: "1-0"}} }),
		"not gzip":           with(func(w *v1alpha1.Wave) { w.Clusters, w.ClustersGzip = nil, []byte("a\nb") }),
		"two forms":          with(func(w *v1alpha1.Wave) { w.ClustersGzip = []byte{1} }),
		"all and names":      with(func(w *v1alpha1.Wave) { w.All = true }),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := decode(l); !errors.Is(err, ErrCorruptLedger) {
				t.Errorf("it was read: %v", err)
			}
			plan, err := New(Input{Now: noon, Ledger: l, Clusters: []Cluster{{Name: "a", Installed: Ours, Reachable: true}}})
			if !errors.Is(err, ErrCorruptLedger) {
				t.Errorf("it was planned with: %v", err)
			}
			if plan.LedgerChanged || len(plan.Actions) > 0 || plan.Phase != v1alpha1.PhaseHeld {
				t.Errorf("it is not held: %+v", plan)
			}
		})
	}
}

// longNames are n names of 63 characters, the most a cluster's name can have, which
// compress as badly as names can.
func longNames(n int) []string {
	r := rand.New(rand.NewSource(1))
	names := make([]string, n)
	for i := range names {
		var b strings.Builder
		for b.Len() < 63 {
			b.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789"[r.Intn(36)])
		}
		names[i] = b.String()
	}
	slices.Sort(names)
	return names
}

// TestLedgerFull: 10,000 clusters of 63-character names, all to be moved at once. What
// fits is admitted, the rest wait for room, and room for what is noted later is kept:
// however the clusters are verified, the ledger stays within its limit.
func TestLedgerFull(t *testing.T) {
	names := longNames(10000)
	in := Input{
		Now: noon, Stable: "v1", Previous: Previous{Target: "v1"}, ParkAfter: time.Minute,
		Placements: []Placement{{Namespace: "default", Name: "all", Existence: Exists, Settlement: Settled, Groups: []Group{{Clusters: names}}}},
	}
	in.Spec.Target = &v1alpha1.Target{Digest: "v2"}
	in.Spec.Stages = []v1alpha1.Stage{{
		Name: "everyone", Placement: v1alpha1.PlacementReference{Namespace: "default", Name: "all"},
		MinSuccessTime: metav1.Duration{Duration: 24 * time.Hour},
	}}
	for _, name := range names {
		in.Clusters = append(in.Clusters, Cluster{Name: name, Installed: Ours, Reachable: true, Running: "v1", UpToDateStable: true})
	}
	plan, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	admitted := int(plan.Counts.InFlight)
	if got := size(plan.Ledger); got > DefaultLedgerLimit {
		t.Fatalf("the ledger has %d bytes", got)
	}
	if admitted < 5000 || admitted == len(names) {
		t.Fatalf("%d were admitted; more than half fit, and not all", admitted)
	}
	if full := waitingForRoom(plan); full != len(names)-admitted {
		t.Errorf("%d wait for room in the ledger, want %d", full, len(names)-admitted)
	}
	// Verified in an order that no range can shorten, each time in another second.
	for round := range 5 { // each of them verifies a fifth
		in.Now, in.Ledger, in.Previous.Target = in.Now.Add(time.Second), plan.Ledger, "v2"
		for i := range in.Clusters {
			if plan.Clusters[i].Revision == "v2" {
				in.Clusters[i].Running, in.Clusters[i].UpToDate, in.Clusters[i].UpToDateStable = "v2", true, false
				if (i*7)%5 == round {
					in.Clusters[i].Health.State = HealthVerified
				}
			}
		}
		if plan, err = New(in); err != nil {
			t.Fatal(err)
		}
		if got := size(plan.Ledger); got > DefaultLedgerLimit {
			t.Fatalf("round %d: the ledger has %d bytes", round, got)
		}
	}
	if int(plan.Counts.InFlight) < admitted {
		t.Errorf("%d in flight, %d were admitted", plan.Counts.InFlight, admitted)
	}
}

// TestLedgerFullOfDepartures: where those who left do not fit, who left last is struck off
// first. They stay, are told so, and their grace period begins once there is room.
func TestLedgerFullOfDepartures(t *testing.T) {
	names := longNames(2000)
	early, late := names[1500:], names[:1500] // whatever their order by name
	in := Input{
		Now: noon, Stable: "v1", Previous: Previous{Target: "v1"}, RemovalGrace: time.Hour, LedgerLimit: 60 << 10,
		Placements: []Placement{{Namespace: "default", Name: "all", Existence: Exists, Settlement: Settled}},
	}
	in.Spec.Target = &v1alpha1.Target{Digest: "v1"}
	in.Spec.Install = &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{
		{PlacementReference: v1alpha1.PlacementReference{Namespace: "default", Name: "all"}},
	}}
	in.Ledger.Removal = &v1alpha1.RemovalBudget{
		Since: metav1.NewTime(noon.Add(-time.Minute)), Total: 2000,
		Departed: []v1alpha1.Departed{{Since: metav1.NewTime(noon.Add(-time.Minute)), Clusters: early}},
	}
	for _, name := range names {
		in.Clusters = append(in.Clusters, Cluster{Name: name, Installed: Ours, Reachable: true, Running: "v1", UpToDate: true, UpToDateStable: true})
	}
	plan, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := size(plan.Ledger); got > in.LedgerLimit {
		t.Fatalf("the ledger has %d bytes", got)
	}
	departed := map[string]time.Time{}
	for _, d := range plan.Ledger.Removal.Departed {
		for _, name := range d.Clusters {
			departed[name] = d.Since.Time
		}
	}
	for _, name := range early {
		if !departed[name].Equal(noon.Add(-time.Minute)) {
			t.Fatalf("%s left a minute ago, and the ledger says %s", name, departed[name])
		}
	}
	kept := len(departed) - len(early)
	if kept == 0 || kept == len(late) {
		t.Errorf("%d of %d are noted besides those that left before", kept, len(late))
	}
	if full := waitingForRoom(plan); full != len(late)-kept {
		t.Errorf("%d wait for room in the ledger, want %d", full, len(late)-kept)
	}
	for i, name := range late { // in order of name
		if _, ok := departed[name]; ok != (i < kept) {
			t.Fatalf("%s, number %d of %d that fit: noted %t", name, i, kept, ok)
		}
	}
}

func waitingForRoom(p Plan) int {
	n := 0
	for _, c := range p.Clusters {
		if strings.HasPrefix(c.Reason, v1alpha1.LedgerFullReason) {
			n++
		}
	}
	return n
}

// TestLedgerCoarse: where seconds would not fit, verified-at is noted more coarsely,
// always later than it was.
func TestLedgerCoarse(t *testing.T) {
	var entries []named
	for i := range 500 {
		at := noon.Add(time.Duration(i) * time.Second)
		entries = append(entries, named{fmt.Sprintf("c%03d", i), &entry{revision: "v2", admittedAt: noon, verifiedAt: at}})
	}
	fine, coarse := encode(entries, nil, time.Second), encode(entries, nil, time.Hour)
	if size(coarse) >= size(fine)/4 {
		t.Errorf("%d bytes by the hour, %d by the second", size(coarse), size(fine))
	}
	r, err := decode(coarse)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range entries {
		if got := r.entries[n.cluster].verifiedAt; got.Before(n.verifiedAt) {
			t.Errorf("%s was verified at %s and is noted at %s", n.cluster, n.verifiedAt, got)
		}
	}
}

// FuzzPositions: what is read as positions is written as the same positions.
func FuzzPositions(f *testing.F) {
	for _, text := range []string{"0", "0-3,7", "1-1", "", "5-", "00", "0,0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var seen []int
		if err := eachPosition(text, 1000, func(i int) { seen = append(seen, i) }); err != nil {
			return
		}
		slices.Sort(seen)
		seen = slices.Compact(seen)
		var back []int
		if err := eachPosition(formatPositions(seen), 1000, func(i int) { back = append(back, i) }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(seen, back) {
			t.Errorf("%q: %v was written and %v read", text, seen, back)
		}
	})
}

func TestPositions(t *testing.T) {
	for want, in := range map[string][]int{"0-3,7": {0, 1, 2, 3, 7}, "0": {0}, "": nil, "1,3,5": {1, 3, 5}, "8-9": {8, 9}} {
		if got := formatPositions(in); got != want {
			t.Errorf("%v is %q, want %q", in, got, want)
		}
	}
}
