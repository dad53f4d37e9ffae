package gitsource

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// smallAnswer is how many bytes of an answer are read without a place in the room. Most repositories of add-ons
	// send less.
	smallAnswer = 1 << 20
	// largeAnswers is how many large answers are read at once.
	largeAnswers = 2
	// pace is how long the next MiB of a large answer may take while another repository
	// waits for its place.
	pace = time.Second
)

// Room limits the memory that the fetches of one process use together. An answer larger than smallAnswer needs a
// place in the room until its tree is closed. A server that hangs or is slow loses its place to the next repository
// that needs one. Create it with NewRoom; a nil Room has no limits.
type Room struct {
	places, unpacking chan struct{}
	// wanted transfers places: each claim that waits for a place receives from it. A claim whose answer is slow sends
	// its place to it, and then ends.
	wanted chan struct{}
	pace   time.Duration
}

// NewRoom returns a room for the repositories of one process.
func NewRoom() *Room { return newRoom(largeAnswers, pace) }

func newRoom(places int, pace time.Duration) *Room {
	return &Room{places: make(chan struct{}, places), unpacking: make(chan struct{}, 1), wanted: make(chan struct{}), pace: pace}
}

// Claim is the share of a room that one fetch uses. A nil Claim has no limits.
type Claim struct {
	room *Room
	ctx  context.Context //nolint:containedctx // of the session that made the claim
	end  func(error)

	// mu is needed because a read may continue after its session ended.
	mu     sync.Mutex
	placed bool
	turned bool
	// more receives a value for each MiB read; whole is closed when the answer is complete.
	more, whole chan struct{}
}

// Claim returns a claim without a place. ctx ends the wait for a place; end ends the session.
func (r *Room) Claim(ctx context.Context, end func(error)) *Claim {
	if r == nil {
		return nil
	}
	return &Claim{room: r, ctx: ctx, end: end}
}

// Read reads from an answer. before is how many bytes of the answer were already read.
func (c *Claim) Read(before int64, read func() (int, error)) (int, error) {
	if c == nil || before < smallAnswer {
		return read()
	}
	more, err := c.enter()
	if err != nil {
		return 0, err
	}
	n, err := read()
	if (before+int64(n))/smallAnswer > before/smallAnswer {
		select {
		case more <- struct{}{}:
		default: // yield has not received the previous value
		}
	}
	return n, err
}

// enter takes a place, unless the claim already has one.
func (c *Claim) enter() (more chan<- struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.placed {
		if c.ctx.Err() != nil {
			err = fmt.Errorf("other large repositories are being read: %w", c.ctx.Err())
			c.end(err)
			return nil, err
		}
		select {
		case c.room.places <- struct{}{}:
			c.placed, c.more, c.whole = true, make(chan struct{}, 1), make(chan struct{})
			go c.yield(c.more, c.whole)
		case <-c.room.wanted: // a slow answer ends, and its place becomes free
		case <-c.ctx.Done():
		}
	}
	return c.more, nil
}

// yield ends a slow answer as soon as another repository needs its place.
func (c *Claim) yield(more, whole <-chan struct{}) {
	slow := time.NewTimer(c.room.pace)
	defer slow.Stop()
	var wanted chan<- struct{} // nil while the answer is fast enough
	for {
		select {
		case <-more:
			wanted = nil
			slow.Reset(c.room.pace)
		case <-slow.C:
			wanted = c.room.wanted
		case wanted <- struct{}{}:
			c.end(fmt.Errorf("the server took more than %s for 1 MiB of a large answer, and another large repository waited; the operator tries again later", c.room.pace))
			return
		case <-whole:
			return
		}
	}
}

// complete ends yield.
func (c *Claim) complete() {
	if c.whole != nil {
		close(c.whole)
	}
	c.whole = nil
}

// Turn waits until no other pack is being unpacked. The answer is complete, so a slow server
// can no longer lose the place.
func (c *Claim) Turn(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	c.complete()
	c.mu.Unlock()
	select {
	case c.room.unpacking <- struct{}{}:
		c.turned = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release frees the place and the turn. The claim can be used again.
func (c *Claim) Release() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.complete()
	if c.turned {
		<-c.room.unpacking
	}
	if c.placed {
		<-c.room.places
	}
	c.turned, c.placed = false, false
}
