package commitstatus

import (
	"cmp"
	"slices"
	"time"
)

// The pace of a context. A change of state is posted at once. The first pending and every verdict do
// not count; pending after anything else does, and another failure of the same content, because forges store few statuses
// of one context.
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
// as posting is posted.
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

// Due reports whether what a mark owes may be posted now to a kind of forge. If not, after is how long until time
// alone makes it due; zero: never. Nothing is due over a status of another client.
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
	switch {
	case m.Accepted == nil:
		return false
	case State(s.State) == Failure: // without content, it is the last one of a commit that is not live
		return s.Content != "" && s.State == m.Accepted.State && s.Content == m.Accepted.Content
	}
	return State(s.State) == Pending
}

// Result is what the forge shows in the context of a mark.
type Result struct {
	// Of is the mark for which the forge was read or posted to.
	Of Mark
	// Shows is what the forge shows; empty: nothing.
	Shows Statement
	// Newer: it is the operator's, and newer than the mark, which comes from a backup or another process.
	Newer bool
	// At is when the forge showed it, in seconds since 1970.
	At int64
}

// WithResults writes results into the marks and returns the new ones. A result about another version of a mark changes
// nothing, so results may be entered twice. A post of the operator that arrived when its mark was gone gets a mark again,
// because it replaced the end of the commit.
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

// about reports whether a mark says the same of the forge as the mark of the result.
func (r Result) about(m Mark) bool {
	return m.AcceptedAt == r.Of.AcceptedAt && sameWords(said(m.Accepted), said(r.Of.Accepted)) &&
		sameWords(said(m.Posting), said(r.Of.Posting)) && sameWords(said(m.Foreign), said(r.Of.Foreign))
}

// late reports whether a commit without a mark shows a status of the operator that is no end.
func (r Result) late() bool {
	return r.Newer && State(r.Shows.State) == Pending && stated(r.Of) == nil
}

// enter returns the mark with what the forge shows.
//
//	the forge shows            the mark has
//	what is being posted       it as accepted
//	what was accepted          nothing that is being posted, if something newer is owed
//	nothing                    nothing accepted, and owes what was
//	a newer one of its own     it as accepted, and owes nothing: that is derived again
//	one, and nothing was       it as accepted, and after a pending one it owes what it did: the next status is not
//	accepted                   posted at once
//	another one                it as foreign, and owes what was being posted
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
			return m // what is being posted still is
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
			m.Accepted.Content = "found" // of no want: the verdict is about content that is not known
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

// fullSeconds returns the time in seconds since 1970, rounded up: a wait that begins there
// must not be shorter than it was meant to be.
func fullSeconds(t time.Time) int64 {
	return t.Add(time.Second - time.Nanosecond).Unix()
}
