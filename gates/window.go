package gates

import (
	"errors"
	"fmt"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// horizon is how far Window looks ahead.
const horizon = 366 * 24 * time.Hour

// Window evaluates a window at a time: Passed while it is open; Waiting while it is closed, with
// the reason "opens Mon 09:00 CET"; Error if it cannot be read. It returns the next time at
// which that changes; zero: not within a year.
func Window(spec v1alpha1.WindowGate, now time.Time) (Verdict, time.Time) {
	c, err := readCalendar(spec, now)
	if err != nil {
		return Verdict{State: v1alpha1.GateError, Reason: err.Error()}, time.Time{}
	}
	defer c.stop()
	opening, closing := c.opening(now)
	switch {
	case opening.IsZero():
		return Verdict{State: v1alpha1.GateWaiting, Reason: "does not open within a year"}, time.Time{}
	case opening.After(now):
		return Verdict{State: v1alpha1.GateWaiting, Reason: "opens " + moment(opening.In(c.zone), now)}, opening
	case closing.IsZero():
		return Verdict{State: v1alpha1.GatePassed, Reason: "open"}, time.Time{}
	default:
		return Verdict{State: v1alpha1.GatePassed, Reason: "open until " + moment(closing.In(c.zone), now)}, closing
	}
}

// CheckWindow refuses a window that no fleet could satisfy: an unknown zone, a cron expression
// that cannot be read, or no opening in the year after now.
func CheckWindow(spec v1alpha1.WindowGate, now time.Time) error {
	c, err := readCalendar(spec, now)
	if err != nil {
		return err
	}
	defer c.stop()
	if opening, _ := c.opening(now); opening.IsZero() {
		return errors.New("the window does not open within a year")
	}
	return nil
}

// moment names a time: "Mon 09:00 CET", and with the date if it is not within six days.
func moment(t, now time.Time) string {
	if t.Sub(now) < 6*24*time.Hour {
		return t.Format("Mon 15:04 MST")
	}
	return t.Format("Mon 2 Jan 2006 15:04 MST")
}

// calendar is a window from a time on.
type calendar struct {
	zone *time.Location
	// end is when it is no longer known.
	end time.Time
	// allow is nil if it is always.
	allow, exclude *union
}

// readCalendar reads a window. The caller stops it.
func readCalendar(spec v1alpha1.WindowGate, now time.Time) (*calendar, error) {
	zone, err := time.LoadLocation(spec.TimeZone)
	if err != nil || spec.TimeZone == "" || spec.TimeZone == "Local" { // what these mean is Go's idea
		return nil, fmt.Errorf("unknown time zone %q: use an IANA name, such as Europe/Berlin", spec.TimeZone)
	}
	c := &calendar{zone: zone, end: now.Add(horizon)}
	remaining := mostBeginnings
	allow, err := readRanges("allow", spec.Allow, &remaining)
	if err != nil {
		return nil, err
	}
	exclude, err := readRanges("exclude", spec.Exclude, &remaining)
	if err != nil {
		return nil, err
	}
	if len(allow) > 0 {
		c.allow = newUnion(allow, zone, now, c.end)
	}
	c.exclude = newUnion(exclude, zone, now, c.end)
	return c, nil
}

func (c *calendar) stop() {
	c.allow.stop()
	c.exclude.stop()
}

// opening returns when the window is first open from now on, and when it closes after that. A
// zero opening: not before the end; a zero closing: the same.
func (c *calendar) opening(now time.Time) (opening, closing time.Time) {
	at := now
	for at.Before(c.end) {
		allowed := span{at, c.end}
		if c.allow != nil {
			allowed = c.allow.after(at)
		}
		if allowed.from.After(at) {
			at = allowed.from
			continue
		}
		excluded := c.exclude.after(at)
		if !excluded.from.After(at) {
			at = excluded.to
			continue
		}
		closing = earlier(allowed.to, excluded.from)
		if !closing.Before(c.end) {
			closing = time.Time{}
		}
		return at, closing
	}
	return time.Time{}, time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
