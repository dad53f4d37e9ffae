package commitstatus

import (
	"cmp"
	"slices"
	"time"
)

// The pace of a context. A change of state is posted at once. Two kinds of posts count towards the limits, because
// forges store few statuses of one context: every pending status except the first, progress included, and another text
// of a failure of the same content. A verdict does not count.
const (
	// ProgressStep is the least change in percent that is posted as progress.
	ProgressStep = 10
	// ProgressInterval is the least time between two posts about progress.
	ProgressInterval = 30 * time.Second
	// StandstillInterval is the least time between two posts if the progress is less than a ProgressStep and the
	// commit is held as before: only counts or names differ.
	StandstillInterval = 15 * time.Minute
	// StandstillPostLimit is the number of progress posts of a context after which changes of less than a
	// ProgressStep are not posted, so that posts remain for real progress.
	StandstillPostLimit = ProgressPostLimit / 2
	// ProgressPostLimit is how many progress posts a context may make for one commit. GitHub
	// stores at most 1000 statuses per commit and context.
	ProgressPostLimit = 60
)

// Begin moves the statuses that are due at a kind of forge from owed to posting. It returns all marks, and the
// changed marks. The caller stores the marks before it passes them to a Deliverer, because only a status that is
// stored as posting is posted.
func Begin(kind string, marks []Mark, now time.Time) (all, began []Mark) {
	all = slices.Clone(marks)
	for i := range all {
		m := &all[i]
		if due, _ := Due(kind, *m, now); due {
			m.Posting, m.Owed = m.Owed, nil
			began = append(began, *m)
		}
	}
	return all, began
}

// Due reports whether the owed status of a mark may be posted now to a kind of forge. If not, after is the time until
// it is due without another event; zero: never. No status is due over a status of another client.
func Due(kind string, m Mark, now time.Time) (due bool, after time.Duration) {
	if m.Owed == nil || m.Posting != nil || m.Foreign != nil {
		return false, 0
	}
	switch {
	case !counts(m, *m.Owed):
		return true, 0
	case m.Accepted.State != m.Owed.State:
		return m.ProgressPosts < ProgressPostLimit, 0
	case State(m.Owed.State) == Pending && providers()[kind].keepsPendingText:
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
	// Whole seconds are compared, because whole seconds are stored. A time in the future is of a wrong clock.
	at := min(m.AcceptedAt, fullSeconds(now)) + int64(wait/time.Second)
	if left := at - now.Unix(); left > 0 {
		return false, time.Duration(left) * time.Second
	}
	return true, 0
}

// counts reports whether posting the statement would count towards ProgressPostLimit.
func counts(m Mark, s Statement) bool {
	switch {
	case m.Accepted == nil:
		return false
	case State(s.State) == Failure: // without content, it is the last status of a commit that is not live
		return s.Content != "" && s.State == m.Accepted.State && s.Content == m.Accepted.Content
	}
	return State(s.State) == Pending
}

// Result is the status that the forge shows in the context of a mark.
type Result struct {
	// Of is the mark for which the forge was read or posted to.
	Of Mark
	// Shows is the status; empty: none.
	Shows Statement
	// Newer: the status is the operator's, and newer than the mark, which comes from a backup or another process.
	Newer bool
	// At is when the forge showed the status, in seconds since 1970.
	At int64
}

// WithResults writes results into the marks and returns the new marks. A result about another version of a mark
// changes nothing, so results may be entered twice. If a post of the operator arrived after its mark was dropped, the
// mark is restored, because the post replaced the final status of the commit.
func WithResults(marks []Mark, results []Result) []Mark {
	out := slices.Clone(marks)
	for _, r := range results {
		i := index(out, r.Of.SHA, r.Of.Context)
		switch {
		case i >= 0 && r.about(out[i]):
			out[i] = r.enter(out[i])
		case i < 0 && r.late():
			out = append(out, Mark{SHA: r.Of.SHA, Context: r.Of.Context, Accepted: &r.Shows, AcceptedAt: r.At})
		}
	}
	return out
}

// about reports whether a mark has the same accepted, posting and foreign statements as the mark of the result.
func (r Result) about(m Mark) bool {
	return m.AcceptedAt == r.Of.AcceptedAt && sameWords(said(m.Accepted), said(r.Of.Accepted)) &&
		sameWords(said(m.Posting), said(r.Of.Posting)) && sameWords(said(m.Foreign), said(r.Of.Foreign))
}

// late reports whether a commit without a mark shows a status of the operator that is not final.
func (r Result) late() bool {
	return r.Newer && State(r.Shows.State) == Pending && stated(r.Of) == nil
}

// enter returns the mark after a read of the forge. Foreign is empty afterwards, except in the last row. The other
// fields that change:
//
//	the forge shows                        the mark afterwards
//	the statement in Posting               it moves to Accepted; Posting is empty
//	the statement in Accepted              if Owed is set, Posting is empty
//	no status                              Accepted is empty; if Posting and Owed are empty, Owed gets
//	                                       the statement of Accepted
//	a newer status of the operator         Accepted has it; Posting and Owed are empty, because the
//	                                       callers derive the next status again
//	a status, and Accepted was empty       Accepted has it; if it is pending, Owed keeps its statement, or
//	                                       gets that of Posting, which is not posted at once
//	any other status                       Foreign has it; if Owed was empty, it gets that of Posting
func (r Result) enter(m Mark) Mark {
	posted, owed, foreign := m.Posting, m.Owed, m.Foreign
	m.Foreign = nil
	switch shows := r.Shows; {
	case posted != nil && sameWords(shows, *posted) && !r.Newer:
		if counts(m, *posted) {
			m.ProgressPosts++
		}
		m.Accepted, m.AcceptedAt, m.Posting = posted, r.At, nil
	case sameWords(shows, said(m.Accepted)) && !r.Newer:
		if posted == nil || owed == nil {
			return m // the post is still under way
		}
		m.Posting = nil
	case shows == Statement{}:
		if posted == nil && owed == nil {
			m.Owed = m.Accepted
		}
		m.Accepted = nil
		return m
	case r.Newer || m.Accepted == nil:
		m.Accepted, m.AcceptedAt, m.Posting = &shows, r.At, nil
		if State(shows.State).Terminal() {
			m.Accepted.Content = "found" // equals no want: the content of the verdict is not known
		}
		if r.Newer || State(shows.State).Terminal() {
			m.Owed = nil
			return m
		}
		owed = cmp.Or(owed, posted)
	default:
		if !sameWords(shows, said(foreign)) {
			foreign = &shows
		}
		m.Foreign, m.Owed, m.Posting = foreign, cmp.Or(owed, posted), nil
		return m
	}
	if owed != nil {
		owe(&m, *owed)
	}
	return m
}

// fullSeconds returns the time in seconds since 1970, rounded up, so that a wait from that time is not shorter than
// intended.
func fullSeconds(t time.Time) int64 {
	return t.Add(time.Second - time.Nanosecond).Unix()
}
