package commitstatus

import (
	"cmp"
	"slices"
)

// Want writes into the ledger what a forge shall say: status, and for a pending one
// how far it is, in percent. It returns the new ledger; the given one is unchanged.
//
// Within an attempt a pending text replaces the one before, and a terminal state
// closes the attempt with its text. A later want of the same terminal state is the
// same verdict and changes nothing; one of any other state opens the next attempt,
// whether or not the forge has heard of the first one yet. So callers may repeat
// their wish on every reconcile, but must not want Pending for a commit that they
// have judged, unless it is being rolled out again.
//
// An attempt that no process tried to tell, and that comes to the verdict of the one
// before in the same words, is dropped: the forge shows the truth already. In other words
// it is told: a second failure has a cause of its own.
func Want(reports []Report, status Status, progress int) []Report {
	out := slices.Clone(reports)
	i := latest(out, status.SHA, status.Context)
	switch {
	case i < 0:
		return append(out, newReport(status, progress, 1))
	case out[i].State == status.State && out[i].State.Terminal():
		return out
	case out[i].State.Terminal():
		next := newReport(status, progress, out[i].Attempt+1)
		next.follow(out[i].PostedAt, out[i].ProgressPosts)
		return append(out, next)
	case out[i].reopensUntold() && saidBefore(out, i, status):
		return slices.Delete(out, i, i+1)
	}
	r := &out[i]
	if r.Stopped && r.State != status.State {
		r.retry()
	}
	r.State, r.Description = status.State, status.Description
	r.TargetURL, r.Progress = status.TargetURL, percent(progress)
	return out
}

// saidBefore tells whether the status is the verdict of the attempt before the one at i.
func saidBefore(reports []Report, i int, status Status) bool {
	before := verdictBefore(reports, i)
	return before != nil && before.State == status.State && before.Description == status.Description
}

// verdictBefore returns the attempt before the one at i if the forge has heard its verdict,
// or will hear it; else nil.
func verdictBefore(reports []Report, i int) *Report {
	group := attempts(reports, reports[i].SHA, reports[i].Context)
	n := slices.Index(group, i)
	if n < 1 || reports[group[n-1]].Stopped {
		return nil
	}
	return &reports[group[n-1]]
}

// newReport returns the first report of an attempt.
func newReport(status Status, progress, attempt int) Report {
	return Report{
		SHA:         status.SHA,
		Context:     status.Context,
		Attempt:     attempt,
		State:       status.State,
		Description: status.Description,
		TargetURL:   status.TargetURL,
		Progress:    percent(progress),
	}
}

// percent keeps a progress within its scale.
func percent(progress int) int {
	return min(max(progress, 0), 100)
}

// Supersede ends every context of oldSHA that has no verdict, because newSHA took
// its place; contexts that have one keep it. The state is Error: the commit never
// reached the fleet, so a required check must not turn green, and it was not found
// bad either, so Failure would blame its author. A commit that took nobody's place
// (both the same) changes nothing.
func Supersede(reports []Report, oldSHA, newSHA string) []Report {
	if oldSHA == newSHA {
		return slices.Clone(reports)
	}
	return End(reports, oldSHA, Error, "superseded by "+abbreviate(newSHA))
}

// End gives every context of a commit that has no verdict this one. A context that is open
// again, and of which nobody was told so, has the verdict it had.
func End(reports []Report, sha string, state State, description string) []Report {
	out := slices.Clone(reports)
	for _, r := range reports {
		if r.SHA != sha || r.State.Terminal() {
			continue
		}
		i := latest(out, sha, r.Context)
		if out[i].reopensUntold() && verdictBefore(out, i) != nil {
			out = slices.Delete(out, i, i+1)
			continue
		}
		out = Want(out, Status{SHA: sha, Context: r.Context, State: state, Description: description, TargetURL: r.TargetURL}, r.Progress)
	}
	return out
}

// Open returns the contexts of a commit that have no verdict yet, in the order of the
// ledger.
func Open(reports []Report, sha string) []string {
	var open []string
	for i, r := range reports {
		if r.SHA == sha && !r.State.Terminal() && latest(reports, sha, r.Context) == i {
			open = append(open, r.Context)
		}
	}
	return open
}

// Prune drops what need not be remembered: attempts whose verdict the forge has and
// that a later attempt follows, everything finished of commits other than the current
// ones, and verdicts on those that the forge refused for good. A verdict that a forge has
// not heard yet stays, and so does one that may hold after all, because nobody was told yet
// that the context is open again; of other commits than the current ones the newest
// PastLimit.
//
// The result is in the order of the ledger.
func Prune(reports []Report, currentSHAs ...string) []Report {
	out := make([]Report, 0, len(reports))
	for i, r := range reports {
		finished := r.Done() || (r.Stopped && r.State.Terminal())
		followed := outdated(reports, i)
		if finished && (followed || !slices.Contains(currentSHAs, r.SHA)) {
			continue
		}
		out = append(out, r)
	}
	return forgetPast(out, currentSHAs)
}

// PastLimit is how many reports are kept about commits that were overtaken. A forge that
// nobody mends for weeks would otherwise make the status larger than the hub can store, and
// then nothing is written there any more, no admission either.
const PastLimit = 500

// forgetPast gives up the oldest reports about other commits than the current ones.
func forgetPast(reports []Report, currentSHAs []string) []Report {
	past := func(r Report) bool { return !slices.Contains(currentSHAs, r.SHA) }
	over := -PastLimit
	for _, r := range reports {
		if past(r) {
			over++
		}
	}
	return slices.DeleteFunc(reports, func(r Report) bool {
		if over <= 0 || !past(r) {
			return false
		}
		over--
		return true
	})
}

// outdated tells whether an attempt follows the finished one at i.
func outdated(reports []Report, i int) bool {
	group := attempts(reports, reports[i].SHA, reports[i].Context)
	n := slices.Index(group, i) + 1
	return n < len(group) && (reports[i].Stopped || !reports[group[n]].Reopens())
}

// Retry makes everything that the forge refused due at once. Callers use it when
// somebody changed what the forge is asked with: the token, the address, or the
// request to reconcile. Deliverer.Forget then makes the Deliverer forget the failures too.
func Retry(reports []Report) []Report {
	out := slices.Clone(reports)
	for i := range out {
		// An attempt that was given up and has a successor cannot be told any more:
		// its place in the forge's list is taken.
		if latest(out, out[i].SHA, out[i].Context) == i || !out[i].Stopped {
			out[i].retry()
		}
	}
	return out
}

// retry forgets that deliveries failed.
func (r *Report) retry() {
	r.FailedTries, r.NextTry, r.LastError, r.Stopped = 0, 0, "", false
}

// latest returns the index of the newest attempt of a context, or -1.
func latest(reports []Report, sha, context string) int {
	found := -1
	for i, r := range reports {
		if r.sameContext(sha, context) && (found < 0 || r.Attempt > reports[found].Attempt) {
			found = i
		}
	}
	return found
}

// attempts returns the indexes of a context's attempts, oldest first.
func attempts(reports []Report, sha, context string) []int {
	var found []int
	for i, r := range reports {
		if r.sameContext(sha, context) {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int {
		return cmp.Compare(reports[a].Attempt, reports[b].Attempt)
	})
	return found
}

// head returns the index of the attempt whose turn it is: the oldest one that is
// neither done nor given up in favour of a later one. It is -1 when nothing is left
// to say.
func head(reports []Report, sha, context string) int {
	group := attempts(reports, sha, context)
	for n, i := range group {
		givenUp := reports[i].Stopped && n < len(group)-1
		if !reports[i].Done() && !givenUp {
			return i
		}
	}
	return -1
}
