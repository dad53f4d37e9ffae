package commitstatus

import (
	"errors"
	"time"
)

// The pace of a context. The first pending and every terminal state go out at once
// and do not count. Pending after a verdict is progress like pending after pending: a
// context that goes back and forth must not tell the forge each time.
const (
	// ProgressStep is the least change in percent that is worth a progress post at once.
	ProgressStep = 10
	// ProgressInterval is the least time between a post and the next about progress.
	ProgressInterval = 30 * time.Second
	// ReopenInterval is the longest time between a post and the next that says that the
	// context is open again, which takes ProgressInterval the first time, twice as long
	// the second, and so on.
	ReopenInterval = 15 * time.Minute
	// StandstillInterval is the time between a post and the next where less than a
	// ProgressStep happened, and the words differ: they say what the commit waits for.
	StandstillInterval = 15 * time.Minute
	// StandstillPostLimit is how many progress posts a context has made when such a change
	// of words is told no more, so that progress itself always can be.
	StandstillPostLimit = ProgressPostLimit / 2
	// ProgressPostLimit is how many progress posts a context may make for one commit, in
	// all its attempts. GitHub stores at most 1000 statuses per commit and context.
	ProgressPostLimit = 60

	// firstBackoff and lastBackoff bound the wait after failed deliveries, which
	// doubles each time: 5 s, 10 s, ... 5 min. The last one is what a forge that is
	// back again keeps its users waiting at most.
	firstBackoff = 5 * time.Second
	lastBackoff  = 5 * time.Minute
)

// Due tells whether the report may be posted now; it must be the oldest attempt of
// its context that is not done (see Next). If not, after is how long until time alone
// makes it due; zero: never, only a new wish or a retry does.
func Due(r Report, now time.Time) (due bool, after time.Duration) {
	if r.Stopped || !r.Undelivered() {
		return false, 0
	}
	at := r.NextTry
	if r.progress() {
		limit, wait := ProgressPostLimit, r.patience()
		if !r.Reopens() && distance(r.Progress, r.AcceptedProgress) < ProgressStep {
			limit, wait = StandstillPostLimit, StandstillInterval
		}
		if r.ProgressPosts >= limit {
			return false, 0
		}
		at = max(at, r.PostedAt+int64(wait/time.Second))
	}
	// Whole seconds are compared, as whole seconds are stored.
	if wait := at - now.Unix(); wait > 0 {
		return false, time.Duration(wait) * time.Second
	}
	return true, 0
}

// patience is how long nothing is told after the last post. Of a context that is open
// again it doubles with each time that was told: whoever reads it knows by then that it
// goes back and forth, and what lasts is told all the same.
func (r Report) patience() time.Duration {
	wait := ProgressInterval
	for n := 2; r.Reopens() && n < r.Attempt && wait < ReopenInterval; n++ {
		wait *= 2
	}
	return min(wait, ReopenInterval)
}

// distance returns how far apart two values are.
func distance(a, b int) int {
	return max(a-b, b-a)
}

// Next returns the reports that may be posted now, in the order of the ledger and at
// most one per context, and how long until another one is due (zero: none is waiting
// for time). A controller enqueues the ledger at the Deliverer when due is not empty,
// and reconciles again after that time.
func Next(reports []Report, now time.Time) (due []Report, after time.Duration) {
	for i, r := range reports {
		if head(reports, r.SHA, r.Context) != i {
			continue
		}
		ready, wait := Due(r, now)
		switch {
		case ready:
			due = append(due, r)
		case wait > 0 && (after == 0 || wait < after):
			after = wait
		}
	}
	return due, after
}

// Accepted returns the report after the forge took its status.
func Accepted(r Report, now time.Time) Report {
	if r.progress() {
		r.ProgressPosts++
	}
	r.AcceptedState, r.AcceptedDescription = r.State, r.Status().Description
	r.AcceptedProgress, r.PostedAt = r.Progress, fullSeconds(now)
	r.retry()
	r.release()
	return r
}

// Rejected returns the report after a delivery failed: waiting for its next try, or
// stopped for good. The wait doubles with every failure and is never shorter than
// what the forge asked for. There is no jitter: the ledger is a value that the same
// inputs must give again, and a hub has one worker per source and forge.
func Rejected(r Report, err error, now time.Time) Report {
	failure := asDeliveryError(err)
	r.fail()
	r.FailedTries++
	r.LastError = cut(clean(failure.Reason), DescriptionLimit)
	if errors.Is(failure, ErrPermanent) && failure.RetryAfter == 0 {
		r.Stopped, r.NextTry = true, 0
		return r
	}
	wait := max(backoff(r.FailedTries), failure.RetryAfter)
	r.NextTry = fullSeconds(now.Add(wait))
	return r
}

// fullSeconds returns the time in seconds since 1970, rounded up: a wait that begins
// or ends there must not be shorter than it was meant to be.
func fullSeconds(t time.Time) int64 {
	return t.Add(time.Second - time.Nanosecond).Unix()
}

// backoff returns the wait after the given number of failures in a row.
func backoff(failures int) time.Duration {
	wait := firstBackoff
	for ; failures > 1 && wait < lastBackoff; failures-- {
		wait *= 2
	}
	return min(wait, lastBackoff)
}
