package commitstatus

import (
	"slices"
	"time"
)

// The pace of a context. A change of state is posted at once. The first pending and every verdict do
// not count; pending after anything else does, because forges store few statuses of one context.
const (
	// ProgressStep is the least change in percent that is worth a progress post at once.
	ProgressStep = 10
	// ProgressInterval is the least time between a post and the next about progress.
	ProgressInterval = 30 * time.Second
	// StandstillInterval is the time between a post and the next where less than a
	// ProgressStep happened and nothing else holds the commit: counts differ, or names.
	StandstillInterval = 15 * time.Minute
	// StandstillPostLimit is how many progress posts a context has made when less than a
	// ProgressStep is posted no more, so that progress itself always can be.
	StandstillPostLimit = ProgressPostLimit / 2
	// ProgressPostLimit is how many progress posts a context may make for one commit. GitHub
	// stores at most 1000 statuses per commit and context.
	ProgressPostLimit = 60
)

// Begin moves the statuses that are due at a kind of forge from owed to posting. It returns all marks, and the marks
// that it changed. The caller stores them before it passes them to a Deliverer, because only a status that is stored
// as posting is posted. Marks in conflict are not changed.
func Begin(kind string, marks []Mark, now time.Time, troubles []Trouble) (all, began []Mark) {
	all = slices.Clone(marks)
	for i := range all {
		m := &all[i]
		if due, _ := Due(kind, *m, now); due && !slices.ContainsFunc(troubles, func(t Trouble) bool { return t.Conflict && t.About(*m) }) {
			m.Posting, m.Owed = m.Owed, nil
			began = append(began, *m)
		}
	}
	return all, began
}

// Due reports whether what a mark owes may be posted now to a kind of forge. If not, after is how long until time
// alone makes it due; zero: never.
func Due(kind string, m Mark, now time.Time) (due bool, after time.Duration) {
	if m.Owed == nil || m.Posting != nil {
		return false, 0
	}
	switch {
	case !counts(m, *m.Owed):
		return true, 0
	case m.Accepted.State != m.Owed.State:
		return m.ProgressPosts < ProgressPostLimit, 0
	case providers()[kind].keepsPendingText:
		return false, 0
	}
	limit, wait := ProgressPostLimit, ProgressInterval
	change := m.Owed.Progress - m.Accepted.Progress
	if max(change, -change) < ProgressStep {
		limit = StandstillPostLimit
		if m.Accepted.Held == m.Owed.Held {
			wait = StandstillInterval
		}
	}
	if m.ProgressPosts >= limit {
		return false, 0
	}
	// Whole seconds are compared, because whole seconds are stored. A time in the future comes
	// from a wrong clock.
	at := min(m.AcceptedAt, fullSeconds(now)) + int64(wait/time.Second)
	if left := at - now.Unix(); left > 0 {
		return false, time.Duration(left) * time.Second
	}
	return true, 0
}

// counts reports whether posting the statement would count towards ProgressPostLimit.
func counts(m Mark, s Statement) bool {
	return m.Accepted != nil && State(s.State) == Pending
}

// Outcome is what became of a post.
type Outcome int

const (
	// Accepted: the forge has it.
	Accepted Outcome = iota
	// Absent: the forge does not have it.
	Absent
	// Found: the forge has another statement, of which the mark knows nothing. It counts as accepted now, so that the
	// next status of this operator is not posted at once. If it is a verdict, only a live commit gets another status.
	Found
	// Outdated: the forge has what this process posted after the mark, which comes from a backup. What the mark owes is
	// dropped: it is derived again from what the forge has.
	Outdated
	// Lost: the forge has no status any more.
	Lost
)

// Result is what a Deliverer knows about what a mark was posting.
type Result struct {
	SHA, Context string
	// Statement that was to be posted; if nothing was, the accepted one.
	Statement Statement
	Outcome   Outcome
	// Found is what the forge has instead.
	Found Statement
	// At is when the forge had it, in seconds since 1970.
	At int64
}

// WithResults writes results into the marks and returns the new ones. A result about something
// that a mark does not post any more changes nothing, so results may be entered twice.
func WithResults(marks []Mark, results []Result) []Mark {
	out := slices.Clone(marks)
	for _, r := range results {
		i := index(out, r.SHA, r.Context)
		if i < 0 || out[i].Posting == nil && r.Outcome != Outdated && r.Outcome != Lost {
			continue
		}
		if last := stated(out[i]); last != nil && sameWords(*last, r.Statement) {
			enter(&out[i], r)
		}
	}
	return out
}

func enter(m *Mark, r Result) {
	posted, owed := m.Posting, m.Owed
	switch r.Outcome {
	case Accepted:
		if counts(*m, *posted) {
			m.ProgressPosts++
		}
		m.Accepted, m.AcceptedAt, m.Posting = posted, r.At, nil
	case Absent:
		if owed == nil {
			return // it is still what is to be posted
		}
		m.Posting = nil
	case Lost:
		if owed == nil {
			m.Owed = m.Accepted
		}
		m.Accepted = nil
		return
	case Found, Outdated:
		m.Accepted, m.AcceptedAt, m.Posting = &r.Found, r.At, nil
		if State(r.Found.State).Terminal() {
			m.Accepted.Content = "found" // of no want: the verdict is about content that is not known
		}
		if r.Outcome == Outdated || State(r.Found.State).Terminal() {
			m.Owed = nil
			return
		}
		if owed == nil {
			owed = posted
		}
	}
	if owed != nil {
		owe(m, *owed)
	}
}

// fullSeconds returns the time in seconds since 1970, rounded up: a wait that begins there
// must not be shorter than it was meant to be.
func fullSeconds(t time.Time) int64 {
	return t.Add(time.Second - time.Nanosecond).Unix()
}
