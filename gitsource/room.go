package gitsource

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// smallAnswer is how much of an answer is read without a place in the room. What
	// most repositories of add-ons send is less.
	smallAnswer = 1 << 20
	// largeAnswers is how many larger ones are read at once.
	largeAnswers = 2
	// silence is how long a server may send nothing while it holds such a place.
	silence = 10 * time.Second
)

// Room bounds what the fetches of one process take in memory together. An answer has to
// have a place in it to grow large, until the tree that was made of it is closed; a server
// that hangs loses its place after a while, so that it keeps no other repository waiting.
// Make one with NewRoom; a nil Room has no bounds.
type Room struct {
	places, unpacking chan struct{}
	silence           time.Duration
}

// NewRoom returns a room for the repositories of one process.
func NewRoom() *Room {
	return &Room{places: make(chan struct{}, largeAnswers), unpacking: make(chan struct{}, 1), silence: silence}
}

// claim is what one fetch has of a room. A nil claim needs none.
type claim struct {
	room *Room
	ctx  context.Context //nolint:containedctx // of the session that made it
	end  func(error)

	mu     sync.Mutex
	placed bool
	turned bool
}

// claim returns a claim that has nothing yet. The context ends a wait for a place, and
// end the session.
func (r *Room) claim(ctx context.Context, end func(error)) *claim {
	if r == nil {
		return nil
	}
	return &claim{room: r, ctx: ctx, end: end}
}

// read reads from an answer of which so many bytes were read before.
func (c *claim) read(before int64, read func() (int, error)) (int, error) {
	if c == nil || before < smallAnswer {
		return read()
	}
	if err := c.enter(); err != nil {
		return 0, err
	}
	silent := time.AfterFunc(c.room.silence, func() {
		c.end(fmt.Errorf("the server sent nothing for %s in the middle of a large answer: %w", c.room.silence, context.DeadlineExceeded))
	})
	defer silent.Stop()
	return read()
}

// enter takes a place, once.
func (c *claim) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.placed {
		return nil
	}
	select {
	case c.room.places <- struct{}{}:
		c.placed = true
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// turn waits until no other pack is being unpacked.
func (c *claim) turn(ctx context.Context) error {
	if c == nil || c.turned {
		return nil
	}
	select {
	case c.room.unpacking <- struct{}{}:
		c.turned = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rest gives the turn back: the server is asked again.
func (c *claim) rest() {
	if c == nil || !c.turned {
		return
	}
	<-c.room.unpacking
	c.turned = false
}

// release gives everything back, once.
func (c *claim) release() {
	if c == nil {
		return
	}
	c.rest()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.placed {
		<-c.room.places
	}
	c.placed = false
}
