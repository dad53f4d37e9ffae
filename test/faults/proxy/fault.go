package proxy

import (
	"cmp"
	"fmt"
	"time"
)

// Action is what happens to a write.
type Action string

const (
	// KillBefore kills the operator; the server never sees the write.
	KillBefore Action = "kill-before"
	// KillAfter kills the operator after the server answered, which the operator never learns.
	KillAfter Action = "kill-after"
	// Conflict answers 409; the server never sees the write.
	Conflict Action = "409"
	// Throttled answers 429 with Retry-After; the server never sees the write.
	Throttled Action = "429"
	// Broken answers 500; the server never sees the write.
	Broken Action = "500"
	// AppliedBroken lets the server apply the write and answers 500.
	AppliedBroken Action = "applied-500"
	// Timeout answers 504 after a while; the server never sees the write.
	Timeout Action = "timeout"
	// AppliedTimeout is the same after the server applied it.
	AppliedTimeout Action = "applied-timeout"
	// Cut closes the connection without an answer; the server never sees the write.
	Cut Action = "cut"
	// AppliedCut is the same after the server applied it.
	AppliedCut Action = "applied-cut"
)

// Answers are the actions that leave the operator alive.
func Answers() []Action {
	return []Action{Conflict, Throttled, Broken, AppliedBroken, Timeout, AppliedTimeout, Cut, AppliedCut}
}

// Kills reports whether the action ends the operator.
func (a Action) Kills() bool { return a == KillBefore || a == KillAfter }

// applies reports whether the server sees the write.
func (a Action) applies() bool {
	return a == KillAfter || a == AppliedBroken || a == AppliedTimeout || a == AppliedCut
}

// Fault makes writes of a class go wrong.
type Fault struct {
	// Class of the writes; "": every write that the proxy sees.
	Class string
	// At is the position of the first write that is hit, from 1; Times is how many are. A write that KillBefore hit has
	// no position: the next one of its class takes it.
	At, Times int
	// Action is what happens to them.
	Action Action
	// Again: the same happens once more, at the write of any class that is so many after it;
	// 0: it does not.
	Again int
}

func (f Fault) String() string {
	text := fmt.Sprintf("%s at %s #%d", f.Action, cmp.Or(f.Class, "any write"), f.At)
	if f.Again > 0 {
		text += fmt.Sprintf(" and %d writes later", f.Again)
	}
	return text
}

// Hit is a write that a fault hit.
type Hit struct {
	Write Write
	// Action is what happened to it, and Time when.
	Action Action
	Time   time.Time
}

const (
	// retryAfter is what Throttled asks for, in seconds.
	retryAfter = "1"
	// timeoutAfter is how long a write waits for its 504.
	timeoutAfter = 2 * time.Second
)
