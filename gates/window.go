package gates

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// horizon is how far a window is looked at ahead.
const horizon = 366 * day

// Openings expire after known, or with the last of mostOpenings. Thus they cost little memory. They also cost little
// time if a window is slow to read and changes each minute.
const known, mostOpenings = day, 30

// Openings are the times at which a window is open, read at one moment. The zero value is expired.
type Openings struct {
	read, expire time.Time
	zone         *time.Location
	open         []span
	err          error
}

// ReadWindow reads a window at a time. This may take a tenth of a second.
func ReadWindow(spec v1alpha1.WindowGate, now time.Time) Openings {
	return readWindow(spec, now, mostOpenings)
}

// readWindow reads the first openings of a window.
func readWindow(spec v1alpha1.WindowGate, now time.Time, most int) Openings {
	o := Openings{read: now, expire: now.Add(known)}
	c, err := readCalendar(spec, now)
	if err != nil {
		o.err = err
		return o
	}
	defer c.stop()
	o.zone = c.zone
	for s := range c.openings(now) {
		if o.open = append(o.open, s); len(o.open) == most {
			o.expire = earlier(o.expire, s.to)
			break
		}
	}
	return o
}

// Expired reports whether the window has to be read again to evaluate it at a time.
func (o *Openings) Expired(now time.Time) bool {
	return now.Before(o.read) || !now.Before(o.expire)
}

// next returns when the window is first open from a time on, and when it closes after that; zero: not within a year.
func (o *Openings) next(now time.Time) (opening, closing time.Time) {
	end := now.Add(horizon)
	i := slices.IndexFunc(o.open, func(s span) bool { return s.to.After(now) })
	if i < 0 || !o.open[i].from.Before(end) {
		return time.Time{}, time.Time{}
	}
	if closing = o.open[i].to; !closing.Before(end) {
		closing = time.Time{}
	}
	return later(o.open[i].from, now), closing
}

// At evaluates the window at a time at which its openings are not expired. The verdict is Passed while the window is
// open. It is Waiting, with the reason "opens Mon 09:00 CET", while the window is closed, and Error if the window
// cannot be read. At returns the next time at which the verdict changes; zero: not within a year.
func (o *Openings) At(now time.Time) (Verdict, time.Time) {
	if o.err != nil {
		return Verdict{State: v1alpha1.GateError, Reason: o.err.Error()}, time.Time{}
	}
	opening, closing := o.next(now)
	switch {
	case opening.IsZero():
		return Verdict{State: v1alpha1.GateWaiting, Reason: "does not open within a year"}, time.Time{}
	case opening.After(now):
		return Verdict{State: v1alpha1.GateWaiting, Reason: "opens " + moment(opening.In(o.zone), now)}, opening
	case closing.IsZero():
		return Verdict{State: v1alpha1.GatePassed, Reason: "open"}, time.Time{}
	default:
		return Verdict{State: v1alpha1.GatePassed, Reason: "open until " + moment(closing.In(o.zone), now)}, closing
	}
}

// Window reads a window and evaluates it at the same time.
func Window(spec v1alpha1.WindowGate, now time.Time) (Verdict, time.Time) {
	o := ReadWindow(spec, now)
	return o.At(now)
}

// CheckWindow refuses a window that no fleet could satisfy: an unknown zone, a cron expression
// that cannot be read, or no opening in the year after now.
func CheckWindow(spec v1alpha1.WindowGate, now time.Time) error {
	o := readWindow(spec, now, 1)
	if o.err != nil {
		return o.err
	}
	if opening, _ := o.next(now); opening.IsZero() {
		return errors.New("the window does not open within a year")
	}
	return nil
}

// NeverCloses reports whether a window is open, and does not close in the year after now.
func NeverCloses(spec v1alpha1.WindowGate, now time.Time) bool {
	o := readWindow(spec, now, 1)
	v, closing := o.At(now)
	return v.State == v1alpha1.GatePassed && closing.IsZero()
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
	// end is when the calendar is no longer known.
	end time.Time
	// allow is nil if the window is always allowed.
	allow, exclude *union
}

// readCalendar reads a window. The caller stops it.
func readCalendar(spec v1alpha1.WindowGate, now time.Time) (*calendar, error) {
	zone, err := time.LoadLocation(spec.TimeZone)
	if err != nil || spec.TimeZone == "" || spec.TimeZone == "Local" { // what these mean is Go's idea
		return nil, fmt.Errorf("unknown time zone %q: use an IANA name, such as Europe/Berlin", spec.TimeZone)
	}
	c := &calendar{zone: zone, end: now.Add(horizon + known)}
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

// openings yields the times at which the window is open, in their order. One that has not closed at the end closes there.
func (c *calendar) openings(now time.Time) iter.Seq[span] {
	return func(yield func(span) bool) {
		for at := now; at.Before(c.end); {
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
			closing := earlier(allowed.to, excluded.from)
			if !yield(span{at, closing}) {
				return
			}
			at = closing
		}
	}
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
