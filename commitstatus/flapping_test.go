package commitstatus_test

import (
	"testing"
	"time"

	"github.com/addonflow/addonflow/commitstatus"
)

// desk is a controller with a forge that takes everything, and a clock.
type desk struct {
	ledger []commitstatus.Report
	now    time.Time
	told   []commitstatus.State
}

// say wants a state for so long, and tells the forge whenever something is due.
func (d *desk) say(state commitstatus.State, text string, period time.Duration) {
	for end := d.now.Add(period); d.now.Before(end); d.now = d.now.Add(time.Second) {
		d.ledger = commitstatus.Want(d.ledger, commitstatus.Status{SHA: testSHA, Context: hello, State: state, Description: text}, 0)
		d.ledger = commitstatus.Prune(d.ledger, testSHA)
		d.ledger, _ = commitstatus.Claim(d.ledger, commitstatus.Claimant{Holder: "me"}, d.now)
		due, _ := commitstatus.Next(d.ledger, d.now)
		for _, r := range due {
			d.told = append(d.told, r.State)
			for i := range d.ledger {
				if d.ledger[i].Attempt == r.Attempt {
					d.ledger[i] = commitstatus.Accepted(d.ledger[i], d.now)
				}
			}
		}
	}
}

// A context that goes back and forth after its verdict, as that of a placement that flaps
// does: what is over is always told, what is shown is true, and there is an end to it.
func TestFlappingContextIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		reason       string
		flaps        int
		open, closed time.Duration
		posts        int
	}{
		"Fast":         {"the others are over before anybody may be told", 3, 20 * time.Second, 5 * time.Second, 1 + 2*1},
		"Now and then": {"in twenty minutes four of them: the wait doubles", 10, time.Minute, time.Minute, 1 + 2*4},
		"Slowly":       {"each of what lasts is told, and its end", 10, commitstatus.ReopenInterval, time.Minute, 1 + 2*10},
		"For hours":    {"60 times, and after that only where it is not true any more", 1000, time.Minute, time.Minute, 1 + 2*commitstatus.ProgressPostLimit},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{now: now}
			d.say(commitstatus.Success, "nobody waits to be removed", time.Hour)
			for range c.flaps {
				d.say(commitstatus.Pending, "1 cluster to leave", c.open)
				d.say(commitstatus.Success, "nobody waits to be removed", c.closed)
			}
			if len(d.told) != c.posts {
				t.Errorf("%s: %d posts, want %d", c.reason, len(d.told), c.posts)
			}
			if last := d.told[len(d.told)-1]; last != commitstatus.Success {
				t.Errorf("the forge shows %s", last)
			}
			d.say(commitstatus.Failure, "stuck", time.Minute)
			if last := d.told[len(d.told)-1]; last != commitstatus.Failure {
				t.Errorf("another verdict is told, however much was: the forge shows %s", last)
			}
			d.say(commitstatus.Success, "nobody waits to be removed", 2*time.Hour)
			if len(d.ledger) > 2 {
				t.Errorf("%d reports are kept", len(d.ledger))
			}
		})
	}
}

// TestFlappingHidesNoRealChange: however often a context went back and forth, one that
// stays open is told before the longest wait is over.
func TestFlappingHidesNoRealChange(t *testing.T) {
	d := &desk{now: now}
	for range 20 {
		d.say(commitstatus.Success, "nobody waits to be removed", time.Minute)
		d.say(commitstatus.Pending, "1 cluster to leave", time.Minute)
	}
	d.say(commitstatus.Pending, "2 clusters to leave", commitstatus.ReopenInterval)
	if last := d.told[len(d.told)-1]; last != commitstatus.Pending {
		t.Errorf("two clusters wait, and the forge shows %s", last)
	}
}
