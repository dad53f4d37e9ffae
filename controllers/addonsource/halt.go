package addonsource

import (
	"fmt"
	"time"

	"github.com/addonflow/addonflow/api/problem"
)

// haltKind is the consequence of a pass that did not complete.
type haltKind int

const (
	// retried: an error that may be over at the next try; the queue backs off.
	retried haltKind = iota
	// waiting: an object does not exist yet; the pass is repeated after a while.
	waiting
	// stalled: the user must change an input, but the commit was not judged.
	stalled
	// refused: the commit was judged and is invalid; it is not tried again.
	refused
)

// halt is why a pass ended before its commit was on the hub. It is an error. Only report converts it into conditions,
// commit status and requeue.
type halt struct {
	kind haltKind
	// reason is one of the reasons of api/v1alpha1.
	reason string
	// text is for conditions and events. It contains no secret and no running clock.
	text string
	// after is when a waiting pass is repeated.
	after    time.Duration
	problems problem.List
	// cause of a retried pass, for the log.
	cause error
}

func (h *halt) Error() string { return h.text }

func (h *halt) Unwrap() error { return h.cause }

// retry is a halt for an error of the hub.
func retry(reason string, cause error) *halt {
	return &halt{kind: retried, reason: reason, text: cause.Error(), cause: cause}
}

// wait is a halt until an object exists.
func wait(reason string, after time.Duration, format string, args ...any) *halt {
	return &halt{kind: waiting, reason: reason, after: after, text: fmt.Sprintf(format, args...)}
}

// stall is a halt until the user changes an input.
func stall(reason, format string, args ...any) *halt {
	return &halt{kind: stalled, reason: reason, text: fmt.Sprintf(format, args...)}
}

// refuse is the verdict on a commit with problems.
func refuse(reason string, problems problem.List) *halt {
	return &halt{kind: refused, reason: reason, text: problems.Error(), problems: problems}
}
