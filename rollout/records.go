package rollout

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/positions"
)

const (
	// DefaultLedgerLimit is the most bytes that an encoded ledger has.
	DefaultLedgerLimit = 1 << 20
	// namesLimit is the most bytes to which the stored names may unpack.
	namesLimit = 64 << 20
)

// Record is the entry of one cluster in the ledger: the content to which the cluster was admitted, the stage of the
// admission, and the state of the cluster. Times have a precision of a second.
//
// Failed is false in a state that is a failure itself. Reverted is false once the cluster is Done. Reported becomes
// false when the cluster reports anything other than a failure. Only a record whose works are not written has a
// Refusal.
type Record struct {
	Cluster string
	v1alpha1.RecordKey
	Admitted time.Time // when the cluster took its slot, by its admission or by its return
	Since    time.Time // when the clock of the state started
	// Ahead is the time of the last change of availability, by the clock of the managed cluster, if that time is
	// after Since; zero: it is not. The change has restarted the soak, and does not restart it again.
	Ahead time.Time
}

// InFlight reports whether the cluster of the record holds a slot.
func (r *Record) InFlight() bool { return r != nil && r.State.InFlight() }

// shown is the state that is reported for the record's cluster. Only the ledger
// distinguishes NotWritten from Failed.
func (r *Record) shown() State {
	if r.State == NotWritten {
		return Failed
	}
	return r.State
}

// CountsAsFailure reports whether the cluster of the record counts as a failure of its content.
func (r *Record) CountsAsFailure() bool { return r.failed() }

// failed reports whether the cluster of the record counts as a failure of its content.
func (r *Record) failed() bool { return r != nil && (r.Failed || failure(r.State)) }

// failedOtherwise reports whether the cluster of the record failed with content other than the target, and has
// verified no content since.
func (r *Record) failedOtherwise(target string) bool {
	return r != nil && (r.Excused || r.Revision != target && r.failed() && r.State != NotWritten && !verified(r.State))
}

// failure reports whether the state is a failure.
func failure(s State) bool {
	return s == Failed || s == TimedOut || s == NotWritten || s == LeftFailed
}

// verified reports whether a cluster in the state has verified its content.
func verified(s State) bool { return s == Soaking || s == Done }

// awaitsReport reports whether a cluster in the state may still report the failure of an earlier admission.
func awaitsReport(s State) bool { return s == Updating || s == Lost }

// recordState reports whether a record can have the state.
func recordState(s State) bool {
	switch s {
	case Admitted, Updating, Soaking, Done, Failed, TimedOut, NotWritten, Lost, Parked, Left, LeftFailed:
		return true
	default:
		return false
	}
}

// Records lists the records of a ledger by cluster. The error is ErrCorruptLedger. An
// invalid ledger is refused as a whole, because a plan without one of the records could admit
// beyond a limit.
func Records(l v1alpha1.Ledger) ([]Record, error) {
	names, err := Names(l)
	if err != nil {
		return nil, err
	}
	return recordsOf(l, names)
}

// recordsOf is Records with the names of the ledger.
func recordsOf(l v1alpha1.Ledger, names []string) ([]Record, error) {
	records := make([]Record, len(names))
	for i, g := range l.Records {
		if err := readGroup(g, records); err != nil {
			return nil, fmt.Errorf("%w: records[%d]: %w", ErrCorruptLedger, i, err)
		}
	}
	for i, name := range names {
		records[i].Cluster = name
	}
	// A cluster that is being removed has a name without a record.
	return slices.DeleteFunc(records, func(r Record) bool { return r.Revision == "" }), nil
}

func readGroup(g v1alpha1.RecordGroup, records []Record) error {
	switch {
	case g.Revision == "":
		return errors.New("revision is empty")
	case !recordState(g.State):
		return fmt.Errorf("state %q is unknown", g.State)
	case g.Failed && (failure(g.State) || g.State == Done):
		return fmt.Errorf("failed is true, but must be absent with state %s", g.State)
	case g.Excused && verified(g.State):
		return fmt.Errorf("excused is true, but must be absent with state %s", g.State)
	case g.Reverted && g.State == Done:
		return fmt.Errorf("reverted is true, but must be absent with state %s", g.State)
	case g.Reported && !awaitsReport(g.State):
		return fmt.Errorf("reported is true, but must be absent with state %s", g.State)
	}
	for _, t := range g.Times {
		var twice error
		err := positions.Each(t.Clusters, len(records), func(i int) {
			if records[i].Revision != "" {
				twice = fmt.Errorf("times: position %d has two records", i)
			}
			records[i] = Record{RecordKey: g.RecordKey, Admitted: t.Admitted.UTC(), Since: t.Since.UTC()}
			if t.Ahead != nil {
				records[i].Ahead = t.Ahead.UTC()
			}
		})
		if err := cmp.Or(err, twice); err != nil {
			return err
		}
	}
	return nil
}

// Names lists all clusters that a ledger names, in order, also those without a record. The error is ErrCorruptLedger.
func Names(l v1alpha1.Ledger) ([]string, error) {
	if len(l.Names) == 0 {
		return nil, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(l.Names))
	if err != nil {
		return nil, fmt.Errorf("%w: names: %w", ErrCorruptLedger, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, namesLimit+1))
	if err != nil {
		return nil, fmt.Errorf("%w: names: %w", ErrCorruptLedger, err)
	}
	if len(text) > namesLimit {
		return nil, fmt.Errorf("%w: names: more than %d bytes", ErrCorruptLedger, namesLimit)
	}
	names := strings.Split(string(text), "\n")
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return nil, fmt.Errorf("%w: names: %q is out of order", ErrCorruptLedger, names[i])
		}
	}
	return names, nil
}

// packNames is the inverse of Names: it encodes sorted names.
func packNames(names []string) []byte {
	if len(names) == 0 {
		return nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, strings.Join(names, "\n"))
	if err := errors.Join(err, z.Close()); err != nil {
		return nil // cannot happen: a write to a bytes.Buffer does not fail
	}
	return b.Bytes()
}

// refusalsKept is how many different refusals a ledger stores in words; the others are otherRefusal. A refusal that
// names its cluster would otherwise make one group of records per cluster.
const (
	refusalsKept = 3
	otherRefusal = "the hub refuses the works"
)

// timeKey identifies times within a group, in seconds; ahead is 0 without one.
type timeKey struct{ admitted, since, ahead int64 }

// packRecords encodes records, sorted by cluster, as groups of positions in names. Times are rounded up to a multiple
// of grain, so that a soak or deadline is never shorter. States without a slot have no running clock; a precision of
// a minute is enough for them. Decoding the result and encoding it again gives the same result.
func packRecords(records []*Record, names []string, grain time.Duration) []v1alpha1.RecordGroup {
	at := map[v1alpha1.RecordKey]map[timeKey][]int{}
	i, refusals := 0, []string{"", otherRefusal}
	for _, r := range records {
		for names[i] != r.Cluster {
			i++
		}
		g := r.RecordKey
		if known := slices.Contains(refusals, g.Refusal); !known && len(refusals) < refusalsKept+2 {
			refusals = append(refusals, g.Refusal)
		} else if !known {
			g.Refusal = otherRefusal
		}
		if at[g] == nil {
			at[g] = map[timeKey][]int{}
		}
		own := grain
		if !r.InFlight() {
			own = max(grain, time.Minute)
		}
		t := timeKey{admitted: coarse(r.Admitted, own), since: coarse(r.Since, own)}
		if !r.Ahead.IsZero() {
			t.ahead = r.Ahead.Unix()
		}
		at[g][t] = append(at[g][t], i)
	}
	groups := make([]v1alpha1.RecordGroup, 0, len(at))
	for g, times := range at {
		groups = append(groups, v1alpha1.RecordGroup{RecordKey: g, Times: packTimes(times)})
	}
	slices.SortFunc(groups, func(a, b v1alpha1.RecordGroup) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.State, b.State),
			falseFirst(a.Failed, b.Failed), falseFirst(a.Excused, b.Excused), falseFirst(a.Reverted, b.Reverted),
			falseFirst(a.Reported, b.Reported), cmp.Compare(a.Refusal, b.Refusal))
	})
	return groups
}

// falseFirst orders false before true.
func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func packTimes(times map[timeKey][]int) []v1alpha1.RecordTimes {
	packed := make([]v1alpha1.RecordTimes, 0, len(times))
	for t, at := range times {
		stored := v1alpha1.RecordTimes{
			Admitted: metav1.NewTime(time.Unix(t.admitted, 0).UTC()), Since: metav1.NewTime(time.Unix(t.since, 0).UTC()),
			Clusters: positions.Format(at),
		}
		if t.ahead != 0 {
			stored.Ahead = new(metav1.NewTime(time.Unix(t.ahead, 0).UTC()))
		}
		packed = append(packed, stored)
	}
	slices.SortFunc(packed, func(a, b v1alpha1.RecordTimes) int {
		return cmp.Or(a.Admitted.Compare(b.Admitted.Time), a.Since.Compare(b.Since.Time), cmp.Compare(a.Clusters, b.Clusters))
	})
	return packed
}

// coarse is the second at which a time is stored: rounded up to a multiple of grain.
func coarse(t time.Time, grain time.Duration) int64 { return clock.RoundUp(t, grain).Unix() }

// within reports whether the ledger has at most that many bytes in an object. It counts the bytes only if an upper
// bound of them exceeds the limit.
func within(l v1alpha1.Ledger, limit int) bool {
	const groupMost, timesMost, escaped = 140, 120, 6 // escaped: bytes of one character of a text in JSON
	most := groupMost + base64.StdEncoding.EncodedLen(len(l.Names))
	for _, g := range l.Records {
		most += groupMost + escaped*(len(g.Revision)+len(g.Stage)+len(g.Refusal))
		for _, t := range g.Times {
			most += timesMost + len(t.Clusters)
		}
	}
	return l.Removal == nil && most <= limit || size(l) <= limit
}

// size is the number of bytes that the ledger has in an object.
func size(l v1alpha1.Ledger) int {
	text, err := json.Marshal(l)
	if err != nil {
		return DefaultLedgerLimit + 1 // cannot happen: every type of a Ledger marshals
	}
	return len(text)
}
