package commitstatus

import "time"

// A claim keeps two processes from posting the same report at the same time: during a
// change of leadership the one before may still be posting while the next one begins, and
// reading the forge first does not show what is on its way. A process writes its claim
// into the ledger by compare-and-swap, posts soon after, and the record of the outcome
// ends the claim. So:
//
//	outcome recorded                      nobody posts it again
//	process ended before its post         posted by the next one, once it may
//	process ended after its post, before  the next one reads the forge, once it may,
//	the record                            and posts again only if it does not show it
//
// The last line is where a status may be told twice; no order of writes to two systems
// can rule it out.
//
// The next one may when claimFor has passed since the claim. A process that was elected
// to lead may sooner: whoever made a claim before led then, and does not lead now, so that
// it begins no post any more. What it had begun is over requestTimeout after the election.
const (
	// claimStart is how long after its claim a post may begin.
	claimStart = 30 * time.Second
	// claimRenew is when a claim on what is still not posted is made anew.
	claimRenew = claimStart / 2
	// claimFor is how long a claim keeps others away: claimStart, the timeout of a
	// delivery, and as much again for clocks that disagree.
	claimFor = claimStart + 2*requestTimeout + 30*time.Second
)

// Claimant is a process that posts.
type Claimant struct {
	// Holder is its name; no other process has it.
	Holder string
	// Elected is when it became the leader; zero where nobody is elected, so that others
	// may be posting as well.
	Elected time.Time
}

// Claim enters into the ledger that a process is about to post what is due. It returns the
// new ledger, and how long until a claim of somebody else's on something due runs out;
// zero: there is none. The caller stores the ledger, with the version it was read at,
// before it hands it to a Deliverer of that holder: only what is claimed is posted.
func Claim(reports []Report, by Claimant, now time.Time) ([]Report, time.Duration) {
	out := append([]Report(nil), reports...)
	wait := time.Duration(0)
	for i := range out {
		r := &out[i]
		if head(out, r.SHA, r.Context) != i {
			continue
		}
		if due, _ := Due(*r, now); !due {
			continue
		}
		age := now.Sub(time.Unix(r.ClaimedAt, 0))
		left := by.respects(*r).Sub(now)
		switch {
		case r.ClaimedBy == by.Holder && age < claimRenew:
		case r.ClaimedBy != "" && r.ClaimedBy != by.Holder && left > 0:
			if wait == 0 || left < wait {
				wait = left
			}
		default:
			r.ClaimedBy, r.ClaimedAt = by.Holder, now.Unix()
		}
	}
	return out, wait
}

// respects is until when a process leaves alone what another one claimed. A claim that is
// younger than its own election is of a leader after it: it does not lead any more itself,
// and has yet to notice.
func (c Claimant) respects(r Report) time.Time {
	claimed := time.Unix(r.ClaimedAt, 0)
	until := claimed.Add(claimFor)
	if over := c.Elected.Add(requestTimeout); claimed.Before(c.Elected) && over.Before(until) {
		return over
	}
	return until
}

// claimed tells whether holder may begin to post the report now.
func (r Report) claimed(holder string, now time.Time) bool {
	return r.ClaimedBy == holder && now.Sub(time.Unix(r.ClaimedAt, 0)) < claimStart
}

// release ends a claim, because the forge has accepted the post.
func (r *Report) release() { r.ClaimedBy, r.ClaimedAt = "", 0 }

// fail ends a claim, because the post is known to have failed. When it was tried stays
// known: an answer that was lost is no proof that the forge has not heard.
func (r *Report) fail() { r.ClaimedBy = "" }
