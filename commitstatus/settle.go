package commitstatus

import (
	"slices"
	"time"
)

// Told is the newest statement about a context that a forge is known to hold.
type Told struct {
	// State and Description are as the forge stores them. An empty state: nothing known.
	State       State
	Description string
	// Progress, PostedAt and ProgressPosts are the ledger's fields of that name.
	Progress      int
	PostedAt      int64
	ProgressPosts int
}

// Rejection is what the failed deliveries of one wish have led to.
type Rejection struct {
	// Attempt and State are those of the report that was not delivered.
	Attempt int
	State   State
	// Tries, NextTry, LastError and Stopped are the ledger's fields of that name.
	Tries     int
	NextTry   int64
	LastError string
	Stopped   bool
}

// Result is what a Deliverer knows about one context of one commit.
type Result struct {
	SHA, Context string
	// Told is what the forge holds.
	Told Told
	// Rejection is what happened since; zero tries: nothing failed.
	Rejection Rejection
}

// Settle writes results into the ledger and returns the new one; the given one is
// unchanged. Settling twice is the same as settling once, so results are never lost
// between two processes' memories and a ledger write that failed.
//
// What the forge holds wins over the ledger, because the ledger may miss a post whose
// record was lost in a crash: if that post was another verdict than the one waiting,
// the waiting one moves to the attempt after it.
func Settle(reports []Report, results []Result) []Report {
	out := slices.Clone(reports)
	for _, result := range results {
		if result.Told.State != "" {
			settleTold(out, result)
		}
		if result.Rejection.Tries > 0 {
			settleRejection(out, result)
		}
	}
	return out
}

// settleTold brings the attempt whose turn it is in line with the forge.
func settleTold(out []Report, result Result) {
	i := head(out, result.SHA, result.Context)
	if i < 0 {
		return
	}
	// The order is that of before: the numbers are about to change.
	order := attempts(out, result.SHA, result.Context)
	r, told := &out[i], result.Told
	attempt := attemptOf(told.Description)
	switch {
	case !told.State.Terminal():
		// The forge waits for the verdict of this attempt, or of an earlier one that
		// will never come.
		if attempt >= r.Attempt {
			r.accept(told, attempt)
		} else {
			r.follow(told.PostedAt, told.ProgressPosts)
		}
	case told.State == r.State && attempt >= r.Attempt:
		// The verdict arrived. Its text is final, even if ours is another by now.
		r.accept(told, attempt)
	default:
		r.moveTo(attempt + 1)
		r.follow(told.PostedAt, told.ProgressPosts)
	}
	var last Report
	for _, i := range order {
		out[i].moveTo(last.Attempt + 1)
		out[i].follow(last.PostedAt, last.ProgressPosts)
		last = out[i]
	}
}

// accept records that the forge holds told for the given attempt. What is recorded
// already is left alone, and with it the failures since.
func (r *Report) accept(told Told, attempt int) {
	r.moveTo(attempt)
	if r.AcceptedState == told.State && r.AcceptedDescription == told.Description {
		return
	}
	r.AcceptedState, r.AcceptedDescription = told.State, told.Description
	r.AcceptedProgress, r.PostedAt = told.Progress, told.PostedAt
	r.ProgressPosts = told.ProgressPosts
	r.retry()
	r.release()
}

// moveTo makes the report that of a later attempt, about which the forge knows
// nothing yet. A report never moves to an earlier one.
func (r *Report) moveTo(attempt int) {
	if attempt <= r.Attempt {
		return
	}
	r.Attempt = attempt
	r.AcceptedState, r.AcceptedDescription, r.AcceptedProgress = "", "", 0
}

// settleRejection records failed deliveries, unless the wish has changed since.
func settleRejection(out []Report, result Result) {
	i := head(out, result.SHA, result.Context)
	if i < 0 || out[i].State != result.Rejection.State || out[i].Attempt != result.Rejection.Attempt {
		return
	}
	r, rejection := &out[i], result.Rejection
	if r.FailedTries != rejection.Tries || r.NextTry != rejection.NextTry || r.Stopped != rejection.Stopped {
		r.fail() // an outcome that was not recorded yet
	}
	r.FailedTries, r.NextTry = rejection.Tries, rejection.NextTry
	r.LastError, r.Stopped = rejection.LastError, rejection.Stopped
}

// toldBy returns what the forge holds after it accepted r.
func toldBy(r Report) Told {
	return Told{
		State:         r.AcceptedState,
		Description:   r.AcceptedDescription,
		Progress:      r.AcceptedProgress,
		PostedAt:      r.PostedAt,
		ProgressPosts: r.ProgressPosts,
	}
}

// toldAs returns what a forge was found to hold when it was asked about r. Whatever
// the ledger does not know of counts as a post made just now: a crash may slow the
// next progress down, never make it too fast.
//
// Somebody else may have written the status, so its texts are bounded before they
// get into the ledger. A state of the forge's own (Gitea has warning and skipped) is
// no verdict of ours: Error.
func toldAs(r Report, found Status, now time.Time) Told {
	told := toldBy(r)
	found.Description = cut(clean(found.Description), DescriptionLimit)
	if !found.State.Known() {
		found.State = Error
	}
	if told.State == found.State && told.Description == found.Description {
		return told
	}
	if found.State == Pending && (r.AcceptedState == Pending || r.AcceptedState == "" && r.Attempt > 1) {
		told.ProgressPosts++
	}
	if found.Description == r.Status().Description {
		told.Progress = r.Progress
	}
	told.State, told.Description, told.PostedAt = found.State, found.Description, fullSeconds(now)
	return told
}

// rejectionOf returns what the failed deliveries of r have led to.
func rejectionOf(r Report) Rejection {
	return Rejection{
		Attempt:   r.Attempt,
		State:     r.State,
		Tries:     r.FailedTries,
		NextTry:   r.NextTry,
		LastError: r.LastError,
		Stopped:   r.Stopped,
	}
}
