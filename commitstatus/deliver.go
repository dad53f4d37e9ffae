package commitstatus

import (
	"context"
	"slices"
	"sync"
	"time"
)

// DelivererConfig sets a Deliverer up.
type DelivererConfig struct {
	// Workers is how many keys are served at the same time; 4 if not positive.
	Workers int
	// Timeout bounds one report: reading the forge and posting. 30 s if not positive.
	Timeout time.Duration
	// Clock tells the time; nil: the system's.
	Clock func() time.Time
	// Holder is the name under which reports are claimed (see Claim); a report that is
	// not claimed by it is not posted. Empty: nothing is claimed, and one process at a
	// time must see to a ledger.
	Holder string
	// Notify is called after the results of a key changed, from a worker and without
	// a lock held. It must not block: an event into a controller's queue. Nil: nobody.
	Notify func(key string)
}

// Deliverer posts what is due, off the reconcile path: Enqueue never waits for a
// forge. A key is one ledger, and names the object that keeps it.
//
// Reports of one key are posted one after the other, in the order of its ledger and
// in that of the attempts. Keys take turns report by report, so that a long ledger
// or a forge that hangs does not hold back the others for longer than a Timeout.
//
// The Deliverer remembers what this process told the forge. Where it does not know
// (the first post about a context since the start, or an answer that was lost) it
// reads the forge before posting, so a crash between a post and its record neither
// repeats the post nor contradicts a verdict. Which process posts is settled by claims
// in the ledger; leader election alone leaves a moment in which two do.
//
// The attempt after a verdict is posted once the ledger that is enqueued has the
// verdict as accepted: the forge is never more than one attempt ahead of the ledger,
// so its newest status always tells which verdicts it has heard.
type Deliverer struct {
	config DelivererConfig

	mu      sync.Mutex
	wake    *sync.Cond
	ready   []string
	boxes   map[string]*outbox
	stopped bool
}

// outbox is the work and the memory of one key.
type outbox struct {
	forge   Forge
	reports []Report
	told    map[contextKey]*memory
	// queued says that the key is in ready or with a worker.
	queued bool
	// generation changes with Forget: a delivery that began before has nothing to
	// record any more.
	generation int
}

// contextKey names one context of one commit.
type contextKey struct{ sha, context string }

// memory is what this process knows about a context.
type memory struct {
	result Result
	// certain says that result.Told is what the forge holds, be it nothing.
	certain bool
}

// NewDeliverer returns a Deliverer that posts nothing until Run.
func NewDeliverer(config DelivererConfig) *Deliverer {
	if config.Workers <= 0 {
		config.Workers = 4
	}
	if config.Timeout <= 0 {
		config.Timeout = 2 * requestTimeout
	}
	if config.Clock == nil {
		config.Clock = time.Now
	}
	if config.Notify == nil {
		config.Notify = func(string) {}
	}
	d := &Deliverer{config: config, boxes: map[string]*outbox{}}
	d.wake = sync.NewCond(&d.mu)
	return d
}

// Run posts until the context ends, and returns when no worker runs any more. It is
// called once. What was not posted stays in the ledgers.
func (d *Deliverer) Run(ctx context.Context) {
	release := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.stopped = true
		d.wake.Broadcast()
	})
	defer release()
	var workers sync.WaitGroup
	for range d.config.Workers {
		workers.Go(func() { d.work(ctx) })
	}
	workers.Wait()
}

// Start is Run for a controller-runtime manager, which wants an error.
func (d *Deliverer) Start(ctx context.Context) error {
	d.Run(ctx)
	return nil
}

// Enqueue hands the ledger of a key over for posting, in place of the one handed
// over before, and returns at once. The slice is copied. A nil forge is the same as
// Forget. What is not due now is not waited for: enqueue again after Next's time.
func (d *Deliverer) Enqueue(key string, forge Forge, reports []Report) {
	if forge == nil {
		d.Forget(key)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	box := d.boxes[key]
	if box == nil {
		box = &outbox{told: map[contextKey]*memory{}}
		d.boxes[key] = box
	}
	box.forge, box.reports = forge, slices.Clone(reports)
	box.forgetAllBut(reports)
	d.schedule(key, box)
}

// Results returns what this process knows about the contexts of a key, sorted by
// commit and context. It does not consume it: Settle it into the ledger at the
// start of every reconcile.
func (d *Deliverer) Results(key string) []Result {
	d.mu.Lock()
	defer d.mu.Unlock()
	if box := d.boxes[key]; box != nil {
		return box.results()
	}
	return nil
}

// Forget drops everything about a key, failures included: its object is gone, its
// statuses go to another forge from now on, or Retry was called on its ledger. A post
// that is under way is not called back, and the next one of the key waits for it.
func (d *Deliverer) Forget(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	box := d.boxes[key]
	if box == nil {
		return
	}
	if !box.queued {
		delete(d.boxes, key)
		return
	}
	box.generation++
	box.forge, box.reports, box.told = nil, nil, map[contextKey]*memory{}
}

// schedule puts the key at the end of the queue, once. The lock is held.
func (d *Deliverer) schedule(key string, box *outbox) {
	if box.queued {
		return
	}
	box.queued = true
	d.ready = append(d.ready, key)
	d.wake.Signal()
}

// work takes keys and posts one report of each until the context ends.
func (d *Deliverer) work(ctx context.Context) {
	for {
		key, next, ok := d.take()
		if !ok || ctx.Err() != nil {
			return
		}
		if next.box == nil {
			if next.unclaimed {
				d.config.Notify(key) // whoever keeps the ledger claims anew
			}
			continue
		}
		d.deliver(ctx, next)
		d.config.Notify(key)
		d.putBack(key, next.box)
	}
}

// take waits for a key and returns what is to be delivered for it: nothing (without
// a box) if nothing is due. It returns false when the Deliverer stops.
func (d *Deliverer) take() (string, delivery, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ready) == 0 && !d.stopped {
		d.wake.Wait()
	}
	if d.stopped {
		return "", delivery{}, false
	}
	key := d.ready[0]
	d.ready = d.ready[1:]
	box := d.boxes[key]
	if box.forge == nil {
		delete(d.boxes, key)
		return key, delivery{}, true
	}
	now := d.config.Clock()
	due := box.due(now)
	claimed := d.claimed(due, now)
	if len(claimed) == 0 {
		box.queued = false
		return key, delivery{unclaimed: d.lapsed(due)}, true
	}
	return key, delivery{
		box:        box,
		generation: box.generation,
		forge:      box.forge,
		id:         contextKey{claimed[0].SHA, claimed[0].Context},
	}, true
}

// claimed are those of the reports that may be posted under a claim of this process.
func (d *Deliverer) claimed(due []Report, now time.Time) []Report {
	if d.config.Holder == "" {
		return due
	}
	var out []Report
	for _, r := range due {
		if r.claimed(d.config.Holder, now) {
			out = append(out, r)
		}
	}
	return out
}

// lapsed tells whether a claim of this process came too late to its turn.
func (d *Deliverer) lapsed(due []Report) bool {
	return slices.ContainsFunc(due, func(r Report) bool { return d.config.Holder != "" && r.ClaimedBy == d.config.Holder })
}

// putBack queues the key again: more may be due, or have come in meanwhile.
func (d *Deliverer) putBack(key string, box *outbox) {
	d.mu.Lock()
	defer d.mu.Unlock()
	box.queued = false
	d.schedule(key, box)
}
