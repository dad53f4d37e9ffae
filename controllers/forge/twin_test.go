package forge

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	testforge "github.com/addonflow/addonflow/test/forge"
)

// twin is another operator's desk over the same object and forge.
func (b *bench) twin(clock func() time.Time) *Desk {
	b.t.Helper()
	d := newDesk(b.hub, b.hub, &http.Client{Timeout: 10 * time.Second}, clock)
	ctx, cancel := context.WithCancel(b.t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); _ = d.Start(ctx) }()
	b.t.Cleanup(func() { cancel(); <-stopped })
	return d
}

// reconcileAt does what a controller does with its ledger, at a desk, and returns what
// it stored and the requeue.
func (b *bench) reconcileAt(d *Desk, stored []v1alpha1.CommitReport) ([]v1alpha1.CommitReport, time.Duration) {
	b.t.Helper()
	ledger := d.Open(b.key, stored)
	want(commitstatus.Success, "applied")(ledger)
	ledger.Address(b.t.Context(), b.source)
	return ledger.Stored(), ledger.Deliver()
}

// posts are how often the forge was told.
func (b *bench) posts() int { return len(b.forge.Log()) }

// asked waits until the forge was asked at least n times.
func (b *bench) asked(n int) {
	b.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for b.forge.Requests() < n {
		select {
		case <-tick.C:
		case <-deadline.C:
			b.t.Fatalf("the forge was asked %d times, want %d", b.forge.Requests(), n)
		}
	}
}

// Two operators during a change of leadership: what the first one is posting is not
// posted by the second as well.
func TestTwinLeavesAPostUnderWayAlone(t *testing.T) {
	b := newBench(t, goodWord)
	b.forge.Set(testforge.Fault{Kind: testforge.Hang, PostsOnly: true})
	stored, _ := b.reconcileAt(b.desk, nil)
	b.asked(2) // it was read, and the post hangs
	twin := b.twin(time.Now)
	requests := b.forge.Requests()
	again, after := b.reconcileAt(twin, stored)
	if after <= 0 || after > 2*time.Minute {
		t.Errorf("the twin looks again when the claim has run out, not after %s", after)
	}
	if again[0].ClaimedBy != stored[0].ClaimedBy || again[0].ClaimedBy == "" {
		t.Errorf("the claim is the first one's: %q, then %q", stored[0].ClaimedBy, again[0].ClaimedBy)
	}
	if b.forge.Requests() != requests {
		t.Error("the twin asked the forge")
	}

	b.forge.Set(testforge.Fault{})
	b.awaitRequest() // the first one learnt how it went, well or badly
	stored, _ = b.reconcileAt(b.desk, again)
	if stored[0].ClaimedBy != "" {
		t.Errorf("a recorded outcome ends the claim: %+v", stored[0])
	}
	if len(b.forge.Log()) > 1 {
		t.Errorf("told twice: %v", b.forge.Log())
	}
}

// The first operator is killed in the middle of a post. The leader that takes over knows
// that it is gone, and waits only for what may still be on its way.
func TestTwinThatWasElectedTakesAPostUp(t *testing.T) {
	b := newBench(t, goodWord)
	b.forge.Set(testforge.Fault{Kind: testforge.Hang, PostsOnly: true})
	stored, _ := b.reconcileAt(b.desk, nil)
	b.asked(2) // it was read, and the post hangs
	b.forge.Set(testforge.Fault{})
	later := time.Now().Add(5 * time.Second)
	elected := make(chan struct{})
	twin := newDesk(b.hub, b.hub, &http.Client{Timeout: 10 * time.Second}, func() time.Time { return later })
	twin.ElectedBy(elected)
	if _, after := b.reconcileAt(twin, stored); after < time.Minute {
		t.Errorf("who does not lead leaves the claim alone, and not for %s", after)
	}
	close(elected)
	again, after := b.reconcileAt(twin, stored)
	if after != 15*time.Second || again[0].ClaimedBy != stored[0].ClaimedBy {
		t.Errorf("what is on its way is waited for, for a request's time and not %s: %+v", after, again[0])
	}
	later = later.Add(after)
	again, _ = b.reconcileAt(twin, again)
	if again[0].ClaimedBy == stored[0].ClaimedBy || again[0].ClaimedBy == "" {
		t.Errorf("then it is claimed anew: %+v", again[0])
	}
}

// The first operator ends after its post and before it could record it. The second one
// waits for the claim to run out, reads the forge, and has nothing to post.
func TestTwinReadsWhatWasNeverRecorded(t *testing.T) {
	b := newBench(t, goodWord)
	stored, _ := b.reconcileAt(b.desk, nil)
	b.awaitRequest() // accepted, and never recorded: stored is what the hub has
	if b.posts() != 1 {
		t.Fatalf("the first one posted: %v", b.forge.Log())
	}
	twin := b.twin(func() time.Time { return time.Now().Add(time.Hour) })
	if err := twin.Outcomes(v1alpha1.AddOnSourceKind).Start(t.Context(), b.queue); err != nil {
		t.Fatal(err)
	}
	stored, _ = b.reconcileAt(twin, stored)
	b.awaitRequest()
	stored, _ = b.reconcileAt(twin, stored)
	if !slices.ContainsFunc(stored, func(r v1alpha1.CommitReport) bool { return r.AcceptedState == "success" }) {
		t.Errorf("what the forge shows is recorded: %+v", stored)
	}
	if b.posts() != 1 {
		t.Errorf("told twice: %v", b.forge.Log())
	}
}
