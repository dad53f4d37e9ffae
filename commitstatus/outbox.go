package commitstatus

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// delivery is one report that a worker brings to its forge. It names the context, not
// the report: what is wanted may change while the forge is read.
type delivery struct {
	box        *outbox
	generation int
	forge      Forge
	id         contextKey
	// unclaimed, without a box: something is due whose claim has lapsed.
	unclaimed bool
}

// stale tells whether the key was forgotten since the delivery began. The lock is held.
func (n delivery) stale() bool { return n.generation != n.box.generation }

// deliver makes sure what the forge holds about the context, and posts what is due.
func (d *Deliverer) deliver(ctx context.Context, next delivery) {
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()
	if !d.certain(next) {
		found, ok, err := next.forge.Latest(ctx, next.id.sha, next.id.context)
		d.recordFound(ctx, next, foundStatus{found, ok}, err)
	}
	// What the forge was found to hold may be what is wanted, or change its attempt.
	report, ok := d.due(next)
	if !ok {
		return
	}
	d.recordPosted(ctx, next, report, next.forge.Post(ctx, report.Status()))
}

// foundStatus is what a forge was found to hold; not ok: nothing.
type foundStatus struct {
	status Status
	ok     bool
}

// certain tells whether this process knows what the forge holds about the context.
func (d *Deliverer) certain(next delivery) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return next.box.remember(next.id).certain
}

// due returns the report of the context that may be posted now.
func (d *Deliverer) due(next delivery) (Report, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	report, ok := next.box.turn(next.id)
	if !ok || next.stale() || !next.box.remember(next.id).certain {
		return Report{}, false
	}
	now := d.config.Clock()
	ready, _ := Due(report, now)
	return report, ready && len(d.claimed([]Report{report}, now)) > 0
}

// recordFound remembers what the forge holds.
func (d *Deliverer) recordFound(ctx context.Context, next delivery, found foundStatus, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	report, ok := next.box.turn(next.id)
	if !ok || next.stale() {
		return
	}
	now := d.config.Clock()
	if err != nil {
		next.box.reject(ctx, report, err, now)
		return
	}
	known := next.box.remember(next.id)
	known.certain = true
	if found.ok {
		known.result.Told = toldAs(report, found.status, now)
	}
}

// recordPosted remembers how the post of the report went.
func (d *Deliverer) recordPosted(ctx context.Context, next delivery, report Report, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if next.stale() {
		return
	}
	now := d.config.Clock()
	if err != nil {
		next.box.reject(ctx, report, err, now)
		return
	}
	known := next.box.remember(next.id)
	known.result.Told, known.result.Rejection = toldBy(Accepted(report, now)), Rejection{}
}

// reject remembers a failed delivery. Trouble that is not about this one status is
// remembered for everything that is due on the same forge, without asking it again.
func (b *outbox) reject(ctx context.Context, report Report, err error, now time.Time) {
	failure := asDeliveryError(err)
	known := b.remember(contextKey{report.SHA, report.Context})
	if failure.Uncertain {
		known.certain = false
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		// The process ends. That says nothing about the forge.
		return
	}
	known.result.Rejection = rejectionOf(Rejected(report, failure, now))
	if !failure.Everyone {
		return
	}
	for _, other := range b.due(now) {
		b.remember(contextKey{other.SHA, other.Context}).result.Rejection = rejectionOf(Rejected(other, failure, now))
	}
}

// due returns the reports that may be posted now, in the order of the ledger.
func (b *outbox) due(now time.Time) []Report {
	reports := Settle(b.reports, b.results())
	due, _ := Next(reports, now)
	return slices.DeleteFunc(due, func(r Report) bool {
		_, ok := b.turnIn(reports, contextKey{r.SHA, r.Context})
		return !ok
	})
}

// turn returns the report of the context whose turn it is, as the ledger has it after
// all that is known.
func (b *outbox) turn(id contextKey) (Report, bool) {
	return b.turnIn(Settle(b.reports, b.results()), id)
}

// turnIn is turn in a ledger that is settled. There is none while the enqueued ledger
// has to learn of a verdict first.
func (b *outbox) turnIn(settled []Report, id contextKey) (Report, bool) {
	i := head(settled, id.sha, id.context)
	// Settle keeps the places.
	if i < 0 || i != head(b.reports, id.sha, id.context) {
		return Report{}, false
	}
	return settled[i], true
}

// remember returns the memory of a context, a new one if there is none.
func (b *outbox) remember(id contextKey) *memory {
	known := b.told[id]
	if known == nil {
		known = &memory{result: Result{SHA: id.sha, Context: id.context}}
		b.told[id] = known
	}
	return known
}

// results returns what is known, sorted.
func (b *outbox) results() []Result {
	out := make([]Result, 0, len(b.told))
	for _, known := range b.told {
		if known.result.Told.State != "" || known.result.Rejection.Tries > 0 {
			out = append(out, known.result)
		}
	}
	slices.SortFunc(out, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.SHA, b.SHA), cmp.Compare(a.Context, b.Context))
	})
	return out
}

// forgetAllBut drops the memory of contexts that the ledger does not have any more.
// Should one come back, the forge is read again.
func (b *outbox) forgetAllBut(reports []Report) {
	kept := make(map[contextKey]*memory, len(reports))
	for _, r := range reports {
		id := contextKey{r.SHA, r.Context}
		if known := b.told[id]; known != nil {
			kept[id] = known
		}
	}
	b.told = kept
}
