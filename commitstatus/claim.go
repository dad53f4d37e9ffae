package commitstatus

import "time"

// A claim keeps two processes from posting the same report at the same time: during a
// change of leadership the one before may still be posting while the next one begins, and
// reading the forge first does not show what is on its way. A process writes its claim
// into the ledger by compare-and-swap, posts soon after, and the record of the outcome
// ends the claim. So:
//
//	outcome recorded                      nobody posts it again
//	process ended before its post         posted by the next one, claimFor later
//	process ended after its post, before  the next one reads the forge, claimFor later,
//	the record                            and posts again only if it does not show it
//
// The last line is where a status may be told twice; no order of writes to two systems
// can rule it out.
const (
	// claimStart is how long after its claim a post may begin.
	claimStart = 30 * time.Second
	// claimRenew is when a claim on what is still not posted is made anew.
	claimRenew = claimStart / 2
	// claimFor is how long a claim keeps others away: claimStart, the timeout of a
	// delivery, and as much again for clocks that disagree.
	claimFor = claimStart + 2*requestTimeout + 30*time.Second
)

// Claim enters into the ledger that holder is about to post what is due. It returns the
// new ledger, and how long until a claim of somebody else's on something due runs out;
// zero: there is none. The caller stores the ledger, with the version it was read at,
// before it hands it to a Deliverer of that holder: only what is claimed is posted.
func Claim(reports []Report, holder string, now time.Time) ([]Report, time.Duration) {
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
		switch {
		case r.ClaimedBy == holder && age < claimRenew:
		case r.ClaimedBy != "" && r.ClaimedBy != holder && age < claimFor:
			if left := claimFor - age; wait == 0 || left < wait {
				wait = left
			}
		default:
			r.ClaimedBy, r.ClaimedAt = holder, now.Unix()
		}
	}
	return out, wait
}

// claimed tells whether holder may begin to post the report now.
func (r Report) claimed(holder string, now time.Time) bool {
	return r.ClaimedBy == holder && now.Sub(time.Unix(r.ClaimedAt, 0)) < claimStart
}

// release ends a claim, because the outcome of the post is recorded.
func (r *Report) release() { r.ClaimedBy, r.ClaimedAt = "", 0 }
