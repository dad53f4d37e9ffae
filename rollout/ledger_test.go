package rollout

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

// ledgerOf encodes records, which are in order of cluster.
func ledgerOf(records []Record, grain time.Duration) v1alpha1.Ledger {
	var names []string
	var stored []*Record
	for i := range records {
		names, stored = append(names, records[i].Cluster), append(stored, &records[i])
	}
	return v1alpha1.Ledger{Names: packNames(names), Records: packRecords(stored, names, grain)}
}

// drawRecords are records of some clusters, in order of cluster.
func drawRecords(t *rapid.T) []Record {
	names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z0-9]{1,8}`), rapid.ID[string]).Draw(t, "clusters")
	slices.Sort(names)
	second := func(label string) time.Time {
		return noon.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, label)) * time.Second)
	}
	records := make([]Record, len(names))
	for i, name := range names {
		records[i] = Record{
			Cluster: name, Admitted: second("admitted"), Since: second("since"),
			RecordKey: v1alpha1.RecordKey{
				Revision: rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "revision"),
				Stage:    rapid.SampledFrom([]string{"", "canary"}).Draw(t, "stage"),
				State:    rapid.SampledFrom([]State{Admitted, Updating, Soaking, Done, Failed, TimedOut, NotWritten, Lost, Parked, Left, LeftFailed}).Draw(t, "state"),
			},
		}
		r := &records[i]
		r.Failed = r.State != Done && !failure(r.State) && rapid.Bool().Draw(t, "failed before")
	}
	return records
}

func TestLedger_IsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		l := ledgerOf(records, time.Second)
		back, err := Records(l)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			if !r.InFlight() { // no clock runs: times by the minute
				records[i].Admitted, records[i].Since = clock.RoundUp(r.Admitted, time.Minute), clock.RoundUp(r.Since, time.Minute)
			}
		}
		if diff := cmp.Diff(records, back); diff != "" && len(records)+len(back) > 0 {
			t.Fatalf("(-written +read):\n%s", diff)
		}
		if again := ledgerOf(back, time.Second); !sameLedger(l, again) {
			t.Fatalf("writing what was read changes the ledger:\n%s", cmp.Diff(l, again))
		}
	})
}

// TestLedger_TimesAreRoundedUp: coarser times are never earlier, so that a soak and a
// deadline get longer; and rounding again changes nothing, so that nothing is written at rest.
func TestLedger_TimesAreRoundedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		for _, grain := range grains {
			l := ledgerOf(records, grain)
			back, err := Records(l)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range back {
				if r.Admitted.Before(records[i].Admitted) || r.Since.Before(records[i].Since) {
					t.Fatalf("by %s: %+v is stored as %+v", grain, records[i], r)
				}
			}
			if again := ledgerOf(back, grain); !sameLedger(l, again) {
				t.Fatalf("by %s: rounding again changes the ledger", grain)
			}
		}
	})
}

func TestLedger_GroupsRecordsThatShareEverything(t *testing.T) {
	at := metav1.NewTime(noon)
	l := ledgerOf([]Record{
		{Cluster: "a", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Soaking}, Admitted: noon, Since: noon},
		{Cluster: "b", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Updating}, Admitted: noon, Since: noon},
		{Cluster: "c", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Soaking}, Admitted: noon, Since: noon},
		{Cluster: "d", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Soaking}, Admitted: noon, Since: noon.Add(time.Second)},
		{Cluster: "e", RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Soaking, Failed: true}, Admitted: noon, Since: noon},
	}, time.Second)
	want := []v1alpha1.RecordGroup{
		{RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Soaking}, Times: []v1alpha1.RecordTimes{
			{Admitted: at, Since: at, Clusters: "0,2"},
			{Admitted: at, Since: metav1.NewTime(noon.Add(time.Second)), Clusters: "3"},
		}},
		{RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Soaking, Failed: true}, Times: []v1alpha1.RecordTimes{{Admitted: at, Since: at, Clusters: "4"}}},
		{RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "s", State: Updating}, Times: []v1alpha1.RecordTimes{{Admitted: at, Since: at, Clusters: "1"}}},
	}
	if diff := cmp.Diff(want, l.Records); diff != "" {
		t.Error(diff)
	}
}

// TestLedger_IsRefusedIfInvalid: planning without a record could admit beyond
// every limit, so that nothing is planned.
func TestLedger_IsRefusedIfInvalid(t *testing.T) {
	at := metav1.NewTime(noon)
	names := packNames([]string{"a", "b"})
	holds := func(positions ...string) v1alpha1.Ledger {
		l := v1alpha1.Ledger{Names: names}
		for _, p := range positions {
			l.Records = append(l.Records, v1alpha1.RecordGroup{
				RecordKey: v1alpha1.RecordKey{Revision: "v2", State: Updating}, Times: []v1alpha1.RecordTimes{{Admitted: at, Since: at, Clusters: p}},
			})
		}
		return l
	}
	change := func(f func(*v1alpha1.Ledger)) v1alpha1.Ledger {
		l := holds("0-1")
		f(&l)
		return l
	}
	for name, l := range map[string]v1alpha1.Ledger{
		"names out of order":      change(func(l *v1alpha1.Ledger) { l.Names = packNames([]string{"b", "a"}) }),
		"a name twice":            change(func(l *v1alpha1.Ledger) { l.Names = packNames([]string{"a", "a"}) }),
		"names that are not gzip": change(func(l *v1alpha1.Ledger) { l.Names = []byte("a\nb") }),
		"names that are cut off":  change(func(l *v1alpha1.Ledger) { l.Names = l.Names[:len(l.Names)-6] }),
		"no names":                change(func(l *v1alpha1.Ledger) { l.Names = nil }),
		"two records":             holds("0", "0-1"),
		"no revision":             change(func(l *v1alpha1.Ledger) { l.Records[0].Revision = "" }),
		"no state":                change(func(l *v1alpha1.Ledger) { l.Records[0].State = "" }),
		"a state of no record":    change(func(l *v1alpha1.Ledger) { l.Records[0].State = Waiting }),
		"failed before, and Done": change(func(l *v1alpha1.Ledger) { l.Records[0].State, l.Records[0].Failed = Done, true }),
		"position too high":       holds("2"),
		"no position":             holds("x"),
		"range backwards":         holds("1-0"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Records(l); !errors.Is(err, ErrCorruptLedger) {
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

// longNames are n names of 63 random characters, which compress as badly as names can.
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

// usualNames are n names as fleets have them: eu-west-1-prod-0421.
func usualNames(n int) []string {
	var names []string
	for i := 0; len(names) < n; i++ {
		for _, region := range []string{"ap-southeast-2", "eu-west-1", "us-east-1", "us-west-2"} {
			for _, tier := range []string{"dev", "prod", "stage"} {
				names = append(names, fmt.Sprintf("%s-%s-%04d", region, tier, i))
			}
		}
	}
	slices.Sort(names[:n])
	return names[:n]
}

// allAtOnce is an input in which all clusters are to be moved from v1 to v2 at once, with a
// soak of a day.
func allAtOnce(names []string) Input {
	in := Input{
		Now: noon, Stable: "v1", ParkAfter: time.Minute,
		Placements: []Placement{{Namespace: "default", Name: "all", Settlement: Settled, Groups: []Group{{Clusters: names}}}},
	}
	in.Spec.Target = &v1alpha1.Target{Digest: "v2"}
	in.Spec.Stages = []v1alpha1.Stage{{
		Name: "everyone", Placement: v1alpha1.PlacementReference{Namespace: "default", Name: "all"},
		MinSuccessTime: metav1.Duration{Duration: 24 * time.Hour}, ProgressDeadline: "None",
	}}
	for _, name := range names {
		in.Clusters = append(in.Clusters, Cluster{Name: name, Installed: Ours, Reachable: true, Running: "v1", UpToDateStable: true})
	}
	return in
}

// TestLedger_HasRoomForTenThousandAndFiftyThousand: every cluster is admitted and verified
// in a second of its own, in an order that no range can shorten, and the ledger keeps
// within its limit.
func TestLedger_HasRoomForTenThousandAndFiftyThousand(t *testing.T) {
	for reason, names := range map[string][]string{
		"10,000 clusters with random names of 63 characters": longNames(10000),
		"50,000 clusters with usual names":                   usualNames(50000),
	} {
		t.Run(reason, func(t *testing.T) {
			in := allAtOnce(names)
			plan, err := New(in)
			if err != nil {
				t.Fatal(err)
			}
			if n := int(plan.Counts.InFlight); n != len(names) {
				t.Fatalf("%d of %d were admitted", n, len(names))
			}
			records, err := Records(plan.Ledger)
			if err != nil {
				t.Fatal(err)
			}
			for i := range records {
				records[i].State = []State{Updating, Soaking, Lost, Failed, Done}[i%5]
				records[i].Admitted = noon.Add(time.Duration(i*7919%3600) * time.Second)
				records[i].Since = noon.Add(time.Duration(i*104729%86400) * time.Second)
			}
			in.Now, in.Ledger = noon.Add(24*time.Hour), ledgerOf(records, time.Second)
			for i := range in.Clusters {
				in.Clusters[i].Running, in.Clusters[i].UpToDate, in.Clusters[i].UpToDateStable = "v2", true, false
				in.Clusters[i].Reachable = i%5 != 2
			}
			if plan, err = New(in); err != nil {
				t.Fatal(err)
			}
			if got := size(plan.Ledger); got > DefaultLedgerLimit {
				t.Errorf("the ledger has %d bytes", got)
			}
			t.Logf("%d bytes", size(plan.Ledger))
		})
	}
}

// TestLedger_HasRoomForHundredsOfStages: 400 decision groups of two clusters are rolled out one after
// the other, and in each of them a cluster fails within the budget.
func TestLedger_HasRoomForHundredsOfStages(t *testing.T) {
	const groups = 400
	names := usualNames(2 * groups)
	in := allAtOnce(names)
	in.Placements[0].Groups = nil
	for i := range groups {
		in.Placements[0].Groups = append(in.Placements[0].Groups, Group{Index: i, Clusters: names[2*i : 2*i+2]})
	}
	in.Spec.Stages = nil
	in.Spec.Install = &v1alpha1.Install{Type: installPlacements, Placements: []v1alpha1.InstallPlacement{{
		PlacementReference: v1alpha1.PlacementReference{Namespace: "default", Name: "all"},
	}}}
	in.Spec.Strategy = &v1alpha1.RolloutStrategy{
		Type:                v1alpha1.StrategyProgressivePerGroup,
		ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: clusterv1alpha1.RolloutConfig{MaxFailures: intstr.FromInt32(1)}},
	}
	for range groups + 2 {
		plan, err := New(in)
		if err != nil {
			t.Fatal(err)
		}
		if n := waitingForRoom(plan); n > 0 || size(plan.Ledger) > DefaultLedgerLimit {
			t.Fatalf("%d wait for room; %d are done, in %d bytes", n, plan.Counts.Updated, size(plan.Ledger))
		}
		in.Now, in.Ledger = in.Now.Add(time.Minute), plan.Ledger
		for i := range in.Clusters {
			if c := &in.Clusters[i]; plan.Clusters[i].State.InFlight() {
				c.Running, c.UpToDate, c.UpToDateStable, c.Health.State = "v2", true, false, HealthVerified
				if i%2 == 1 {
					c.Health.State = HealthFailed
				}
			}
		}
		if plan.Phase == v1alpha1.PhaseSucceeded {
			return
		}
	}
	t.Error("the rollout did not end")
}

// TestLedger_FullMakesClustersWait: what fits is admitted, the rest waits for room and says
// so; and whatever becomes of the admitted clusters, the ledger keeps within its limit.
func TestLedger_FullMakesClustersWait(t *testing.T) {
	in := allAtOnce(longNames(4000))
	in.LedgerLimit = 128 << 10
	plan, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	admitted := int(plan.Counts.InFlight)
	if admitted < 1000 || admitted == len(in.Clusters) {
		t.Fatalf("%d were admitted", admitted)
	}
	if full := waitingForRoom(plan); full != len(in.Clusters)-admitted {
		t.Errorf("%d wait for room in the ledger, want %d", full, len(in.Clusters)-admitted)
	}
	for round := range 20 { // a different twentieth is verified at each look
		in.Now, in.Ledger = in.Now.Add(time.Second), plan.Ledger
		for i := range in.Clusters {
			if plan.Clusters[i].Revision == "v2" {
				in.Clusters[i].Running, in.Clusters[i].UpToDate, in.Clusters[i].UpToDateStable = "v2", true, false
				if (i*7)%20 == round {
					in.Clusters[i].Health.State = HealthVerified
				}
			}
		}
		if plan, err = New(in); err != nil {
			t.Fatal(err)
		}
		if got := size(plan.Ledger); got > in.LedgerLimit {
			t.Fatalf("look %d: the ledger has %d bytes", round, got)
		}
	}
	if int(plan.Counts.InFlight) < admitted {
		t.Errorf("%d in flight, %d were admitted", plan.Counts.InFlight, admitted)
	}
}

// TestLedger_FullMakesAdoptedClustersWait: the status was lost, and the records of all clusters do not fit. The rest waits
// for room and says so, as the message of the rollout does; no plan exceeds the limit, and at rest none changes the ledger.
func TestLedger_FullMakesAdoptedClustersWait(t *testing.T) {
	in := allAtOnce(longNames(4000))
	in.LedgerLimit, in.Rebuild = 128<<10, true
	for i := range in.Clusters {
		in.Clusters[i].Running, in.Clusters[i].UpToDate, in.Clusters[i].UpToDateStable = "v2", true, false
	}
	adopted, last := 0, 15
	for look := range last + 1 {
		plan, err := New(in)
		if err != nil {
			t.Fatal(err)
		}
		records, err := Records(plan.Ledger)
		if err != nil {
			t.Fatal(err)
		}
		full := waitingForRoom(plan)
		if got := size(plan.Ledger); got > in.LedgerLimit || len(records) < 1000 || full != len(in.Clusters)-len(records) || len(plan.Actions) > 0 {
			t.Fatalf("look %d: %d bytes, %d records, %d wait for room, %d actions", look, got, len(records), full, len(plan.Actions))
		}
		if plan.Phase != v1alpha1.PhaseProgressing || !strings.HasSuffix(plan.Message, ", waits for room in the ledger (LedgerFull)") {
			t.Errorf("%s: %s", plan.Phase, plan.Message)
		}
		if len(records) < adopted || look == last && plan.LedgerChanged {
			t.Errorf("look %d: %d records, %d before; changed %t", look, len(records), adopted, plan.LedgerChanged)
		}
		adopted, in.Rebuild, in.Now, in.Ledger = len(records), false, in.Now.Add(time.Second), plan.Ledger
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

// FuzzRecords: a ledger of any bytes is refused or read; what was read is written as it was.
func FuzzRecords(f *testing.F) {
	f.Add(base64.StdEncoding.EncodeToString(packNames([]string{"a", "b"})), "0-1", "Updating")
	f.Add("", "0", "Done")
	f.Fuzz(func(t *testing.T, packed, positions, state string) {
		names, err := base64.StdEncoding.DecodeString(packed)
		if err != nil || len(names) > 1<<16 {
			return
		}
		at := metav1.NewTime(noon)
		records, err := Records(v1alpha1.Ledger{Names: names, Records: []v1alpha1.RecordGroup{{
			RecordKey: v1alpha1.RecordKey{Revision: "v2", State: State(state)}, Times: []v1alpha1.RecordTimes{{Admitted: at, Since: at, Clusters: positions}},
		}}})
		if err != nil {
			if !errors.Is(err, ErrCorruptLedger) {
				t.Fatalf("an error that no caller knows: %v", err)
			}
			return
		}
		if back, err := Records(ledgerOf(records, time.Second)); err != nil || !slices.Equal(records, back) {
			t.Fatalf("%v was written and %v read, %v", records, back, err)
		}
	})
}

// TestLedger_EveryTimeMoves: with the clock of the operator, and to now at the latest for
// an operator that begins.
func TestLedger_EveryTimeMoves(t *testing.T) {
	at := metav1.NewTime(noon)
	ledger := v1alpha1.Ledger{
		Records: []v1alpha1.RecordGroup{{Times: []v1alpha1.RecordTimes{{Admitted: at, Since: at}}}},
		Removal: &v1alpha1.RemovalRecord{Leaving: []v1alpha1.LeavingClusters{{Since: at}}, SpentAt: &at},
	}
	text := func(l v1alpha1.Ledger) string {
		encoded, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	times := strings.Count(text(ledger), "12:00:00Z")
	if moved := text(Shift(ledger, 90*time.Minute)); strings.Count(moved, "13:30:00Z") != times || times != 4 {
		t.Errorf("of %d times, moved: %s", times, moved)
	}
	if same := text(Clamp(ledger, noon)); same != text(ledger) {
		t.Errorf("no time lies in the future: %s", same)
	}
	if earlier := text(Clamp(ledger, noon.Add(-time.Hour))); strings.Count(earlier, "11:00:00Z") != times {
		t.Errorf("all lie in the future: %s", earlier)
	}
}

// TestAttempts_ChangeOnlyTheRecordsOfEarlierFailures: a new attempt tries the clusters that failed again, and a revert
// to the content does not count their failures.
func TestAttempts_ChangeOnlyTheRecordsOfEarlierFailures(t *testing.T) {
	group := func(revision string, state State, failed, excused bool) v1alpha1.RecordGroup {
		return v1alpha1.RecordGroup{RecordKey: v1alpha1.RecordKey{Revision: revision, State: state, Failed: failed, Excused: excused}}
	}
	stored := func() []v1alpha1.RecordGroup {
		return []v1alpha1.RecordGroup{
			group("d", Failed, false, false), group("d", Updating, true, false), group("d", Soaking, true, false),
			group("d", Done, false, false), group("other", Failed, false, false),
		}
	}
	for name, c := range map[string]struct {
		attempt func([]v1alpha1.RecordGroup, string) []v1alpha1.RecordGroup
		want    []v1alpha1.RecordGroup
	}{
		"Attempt": {NewAttempt, []v1alpha1.RecordGroup{group("d", Left, false, false), group("d", Left, false, false), group("d", Left, false, false)}},
		"Revert":  {NewRevert, []v1alpha1.RecordGroup{group("d", Failed, false, true), group("d", Updating, true, true), group("d", Soaking, true, false)}},
	} {
		t.Run(name, func(t *testing.T) {
			records := stored()
			if diff := cmp.Diff(append(c.want, records[3:]...), c.attempt(records, "d")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(stored(), records); diff != "" {
				t.Errorf("the given records changed: %s", diff)
			}
		})
	}
}
