package rollout

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

// grains are the precisions of stored times. If the ledger does not fit with one of them, the next coarser one is
// used.
var grains = []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour}

// Upper bounds, in bytes of JSON: positionRoom of a position with its comma; groupRoom of a group of records without
// its texts and positions; timesRoom of the times of a group.
//
// statesOfOne is how many combinations of state and flags a record can have. There are eleven states. Six of them can
// have Failed as well, which makes 17 combinations. All but three of the 17 can also have Excused. Updating and Lost can also have Reported, with or
// without Failed and Excused. Reverted does not count, because it does not change before the cluster is Done.
// timesOfOne is how many times the records of one group have with the coarsest grain.
const (
	positionRoom = 8
	groupRoom    = 118
	timesRoom    = 90
	statesOfOne  = 39
	timesOfOne   = 4
)

// fit encodes the ledger with as many of the new admissions as fit. The other clusters wait. Clusters that were to be
// adopted wait, too: the next plan adopts them again. Stored records are never dropped for space: an admission
// reserves space for all later states of its record. The ledger can be above the limit with the coarsest grain only
// if the limit was higher when it was stored. Then no cluster is admitted.
func (p *planner) fit() v1alpha1.Ledger {
	if kept := p.roomFor(); kept < len(p.admissions) {
		for _, u := range p.admissions[kept:] {
			u.record, u.state, u.admission = u.before, Waiting, 0
			if !p.due(u) {
				u.state = u.record.shown() // the cluster failed, and waits to be admitted again
			}
			u.reason = fmt.Sprintf("%s: the ledger is at its limit of %d bytes; admitted when other clusters have finished, no action needed", v1alpha1.LedgerFullReason, p.limit())
			if u.step != nil { // an adopted cluster can have no step
				u.step.gated, u.step.remeasured = "waits for room in the ledger ("+v1alpha1.LedgerFullReason+")", true
			}
		}
		p.admissions = p.admissions[:kept]
		p.count()
	}
	l := v1alpha1.Ledger{}
	records := p.records()
	for i, grain := range grains {
		if l = p.encoded(records, grain); within(l, p.limit()) {
			break
		}
		if i == 0 {
			records = withoutExtras(records)
		}
	}
	return l
}

// withoutExtras drops texts and times for which no space is reserved. A soak without Ahead starts again.
func withoutExtras(records []*Record) []*Record {
	records = slices.Clone(records)
	for i, r := range records {
		if r.Refusal != "" || !r.Ahead.IsZero() {
			plain := *r
			plain.Refusal, plain.Ahead = "", time.Time{}
			records[i] = &plain
		}
	}
	return records
}

func (p *planner) limit() int {
	if p.in.LedgerLimit > 0 {
		return p.in.LedgerLimit
	}
	return DefaultLedgerLimit
}

// records returns the records to store, in order of cluster. When the rollout succeeds, records of other revisions
// are dropped, except those of clusters that still have to move back. After the end of the rollout, records of
// clusters that do not exist are dropped, too.
func (p *planner) records() []*Record {
	succeeded := p.spec.Removal == nil && p.target != "" && p.complete() && p.completePhase(p.counts()) == v1alpha1.PhaseSucceeded
	var records []*Record
	for u := range p.recorded() {
		r := u.record
		stays := r.Revision == p.target || p.revert && p.strays(u)
		if !r.InFlight() && (succeeded && !stays || p.in.Ended && u.c.Gone) {
			continue
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *Record) int { return strings.Compare(a.Cluster, b.Cluster) })
	return records
}

// roomFor returns how many of the new admissions fit, in their order. Near the limit the
// result may be a few too small.
func (p *planner) roomFor() int {
	if len(p.admissions) == 0 || p.fits(len(p.admissions)) {
		return len(p.admissions)
	}
	// A search down to the last cluster would compress the same names many more times.
	fit, over := 0, len(p.admissions)
	for over-fit > 1+len(p.admissions)/64 {
		if n := (fit + over) / 2; p.fits(n) {
			fit = n
		} else {
			over = n
		}
	}
	return fit
}

// fits reports whether the ledger with the first n of the new admissions stays within the limit, whatever states its
// clusters enter later. A Done record changes only with an admission, so its size stays. Every other record may need
// a position in another group.
func (p *planner) fits(n int) bool {
	type origin struct {
		revision, stage string
		reverted        bool
	}
	type ended struct {
		origin
		timeKey
	}
	open, done, times := map[origin]int{}, map[origin]bool{}, map[ended]bool{}
	var names []string
	plain, coarsest := 0, grains[len(grains)-1]
	for u := range p.recorded() {
		r := u.record
		if u.admission > n {
			r = u.before
		}
		if r == nil {
			continue
		}
		names, plain = append(names, r.Cluster), plain+len(r.Cluster)+1
		of := origin{r.Revision, r.Stage, r.Reverted}
		if r.State != Done {
			open[of]++
			continue
		}
		done[of] = true
		times[ended{of, timeKey{admitted: coarse(r.Admitted, coarsest), since: coarse(r.Since, coarsest)}}] = true
	}
	room := len(names)*positionRoom + len(times)*timesRoom
	for of := range done {
		room += len(of.revision) + len(of.stage) + groupRoom
	}
	for of, n := range open {
		room += min(n, statesOfOne)*(len(of.revision)+len(of.stage)+groupRoom) + min(n, statesOfOne*timesOfOne)*timesRoom
	}
	for name := range p.removal.Record.Leaving {
		names, plain = append(names, name), plain+len(name)+1
		room += positionRoom
	}
	if room+base64.StdEncoding.EncodedLen(plain) <= p.limit() {
		return true // even if nothing can be compressed
	}
	slices.Sort(names)
	return room+base64.StdEncoding.EncodedLen(len(packNames(slices.Compact(names)))) <= p.limit()
}

// encoded returns the ledger of the records and removals. It reuses the stored list of names
// if the names did not change, because the compression is expensive.
func (p *planner) encoded(records []*Record, grain time.Duration) v1alpha1.Ledger {
	names := p.removal.Record.Names()
	for _, r := range records {
		names = append(names, r.Cluster)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	l := v1alpha1.Ledger{Names: p.in.Ledger.Names}
	if !slices.Equal(p.names, names) {
		l.Names = packNames(names)
	}
	l.Records = packRecords(records, names, grain)
	var err error
	if l.Removal, err = p.removal.Record.Encode(names, grain); err != nil {
		l.Removal = p.in.Ledger.Removal // every name is in the list, so Encode cannot fail
	}
	return l
}

// Shift moves every time of a ledger by d, except Ahead, which is of another clock. It is used when the operator's
// clock stepped by d.
func Shift(l v1alpha1.Ledger, d time.Duration) v1alpha1.Ledger {
	return retimed(l, func(t time.Time) time.Time { return t.Add(d) })
}

// Clamp replaces every time of a ledger that is later than now by now. A new operator calls it, because the clock of
// the previous operator may have been ahead.
func Clamp(l v1alpha1.Ledger, now time.Time) v1alpha1.Ledger {
	return retimed(l, func(t time.Time) time.Time { return clock.Earlier(t, now) })
}

func retimed(l v1alpha1.Ledger, change func(time.Time) time.Time) v1alpha1.Ledger {
	l = *l.DeepCopy()
	retime := func(t *metav1.Time) { *t = metav1.NewTime(clock.RoundUp(change(t.Time), time.Second)) }
	for _, g := range l.Records {
		for i := range g.Times {
			retime(&g.Times[i].Admitted)
			retime(&g.Times[i].Since)
		}
	}
	if l.Removal != nil {
		for i := range l.Removal.Leaving {
			retime(&l.Removal.Leaving[i].Since)
		}
		if l.Removal.SpentAt != nil {
			retime(l.Removal.SpentAt)
		}
	}
	return l
}

// sameLedger compares two stored ledgers. Equal times may have different locations. It uses no reflection, because a
// ledger may have ten thousand records.
func sameLedger(a, b v1alpha1.Ledger) bool {
	return bytes.Equal(a.Names, b.Names) && slices.EqualFunc(a.Records, b.Records, sameGroup) && apiequality.Semantic.DeepEqual(a.Removal, b.Removal)
}

func sameGroup(a, b v1alpha1.RecordGroup) bool {
	return a.RecordKey == b.RecordKey && slices.EqualFunc(a.Times, b.Times, func(a, b v1alpha1.RecordTimes) bool {
		return a.Clusters == b.Clusters && a.Admitted.Equal(&b.Admitted) && a.Since.Equal(&b.Since) && a.Ahead.Equal(b.Ahead)
	})
}

// NewAttempt returns the records for a new attempt at the content that becomes the target. Clusters that failed with it
// earlier get another try.
func NewAttempt(records []v1alpha1.RecordGroup, digest string) []v1alpha1.RecordGroup {
	return changeFailed(records, digest, func(g *v1alpha1.RecordGroup) { g.State, g.Failed = Left, false })
}

// NewRevert returns the records for a revert to the content that becomes the target. Clusters that failed with it
// earlier keep their records, and these failures do not count.
func NewRevert(records []v1alpha1.RecordGroup, digest string) []v1alpha1.RecordGroup {
	return changeFailed(records, digest, func(g *v1alpha1.RecordGroup) { g.Excused = g.State != Soaking })
}

// changeFailed changes the records of the content that count as failures.
func changeFailed(records []v1alpha1.RecordGroup, digest string, change func(*v1alpha1.RecordGroup)) []v1alpha1.RecordGroup {
	records = slices.Clone(records)
	for i := range records {
		g := &records[i]
		if r := (Record{RecordKey: g.RecordKey}); g.Revision == digest && r.CountsAsFailure() {
			change(g)
		}
	}
	return records
}
