package gates

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	day = 24 * time.Hour
	// mostBeginnings is how many beginnings of cron expressions are computed for one window, enough for
	// every minute of a year. If a window has more, its openings are known for less time ahead.
	mostBeginnings = 600_000
	// longest is a duration after which every cron expression has begun again. The library looks
	// five years ahead.
	longest = 4 * 366 * day
)

// span is the time from one moment until just before another.
type span struct{ from, to time.Time }

// recurring is a time that repeats.
type recurring interface {
	// spans yields the spans that overlap the time between from and to, in the order of their beginnings. It may
	// leave out a part that another span of the same time covers.
	spans(zone *time.Location, from, to time.Time) iter.Seq[span]
}

// readRanges reads the times of a field of a window. remaining is how many more beginnings are looked at.
func readRanges(field string, specs []v1alpha1.TimeRange, remaining *int) ([]recurring, error) {
	ranges := make([]recurring, 0, len(specs))
	for i, spec := range specs {
		r, err := readRange(spec, remaining)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

func readRange(spec v1alpha1.TimeRange, remaining *int) (recurring, error) {
	if spec.Cron != "" {
		return readCron(spec, remaining)
	}
	return readWeekly(spec)
}

// weekly is a time of the day on some weekdays, as clocks show it. When clocks change, a
// time that is skipped is not part of it, and a time that occurs twice is part of it twice.
type weekly struct {
	days []time.Weekday
	// from and to are since midnight. to may be on the next day.
	from, to time.Duration
}

func readWeekly(spec v1alpha1.TimeRange) (recurring, error) {
	w := weekly{to: day}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if len(spec.Weekdays) == 0 || slices.Contains(spec.Weekdays, d.String()[:3]) {
			w.days = append(w.days, d)
		}
	}
	if len(w.days) < len(spec.Weekdays) {
		return nil, fmt.Errorf("unknown weekday in %s; use Mon, Tue, Wed, Thu, Fri, Sat and Sun", spec.Weekdays)
	}
	if spec.Hours == "" {
		return w, nil
	}
	from, to, _ := strings.Cut(spec.Hours, "-")
	var err error
	if w.from, err = sinceMidnight(from); err == nil {
		w.to, err = sinceMidnight(to)
	}
	if err != nil || w.from == day {
		return nil, fmt.Errorf("cannot read hours %q; use a form such as 09:00-17:00", spec.Hours)
	}
	if w.to <= w.from {
		w.to += day
	}
	return w, nil
}

// sinceMidnight reads a time of the day, 24:00 included.
func sinceMidnight(text string) (time.Duration, error) {
	if text == "24:00" {
		return day, nil
	}
	t, err := time.Parse("15:04", text)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err
}

func (w weekly) spans(zone *time.Location, from, to time.Time) iter.Seq[span] {
	return func(yield func(span) bool) {
		for p := range periods(zone, from, to) {
			first, last := p.shown(p.from), p.shown(p.to)
			for d := first.Truncate(day).Add(-day); d.Before(last); d = d.Add(day) {
				if !slices.Contains(w.days, d.Weekday()) {
					continue
				}
				s := span{p.moment(later(d.Add(w.from), first)), p.moment(earlier(d.Add(w.to), last))}
				if s.from.Before(s.to) && !yield(s) {
					return
				}
			}
		}
	}
}

// cronTimes is a time whose periods begin when clocks show what a cron expression says. If a clock change skips the
// begin of a period, the period begins at the change. If the begin occurs twice, the period begins twice.
type cronTimes struct {
	schedule *cron.SpecSchedule
	duration time.Duration
	// remaining is how many more beginnings are looked at, for all times of the window together.
	remaining *int
}

func readCron(spec v1alpha1.TimeRange, remaining *int) (recurring, error) {
	if spec.Duration == nil || spec.Duration.Duration <= 0 {
		return nil, errors.New("cron needs a duration above zero")
	}
	if strings.Contains(spec.Cron, "=") { // the library takes a zone there
		return nil, fmt.Errorf("cannot read cron %q: the zone is that of the window", spec.Cron)
	}
	schedule, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(spec.Cron)
	if err != nil {
		return nil, fmt.Errorf("cannot read cron %q: %w", spec.Cron, err)
	}
	fields, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("cannot read cron %q: it has no fields", spec.Cron)
	}
	return cronTimes{fields, min(spec.Duration.Duration, longest), remaining}, nil
}

func (c cronTimes) spans(zone *time.Location, from, to time.Time) iter.Seq[span] {
	return func(yield func(span) bool) {
		var open span // begins that touch are one span
		for at := range c.beginnings(zone, c.latest(zone, from), to) {
			if *c.remaining--; *c.remaining < 0 {
				break
			}
			switch {
			case open.to.IsZero():
				open.from = at
			case at.After(open.to):
				if !yield(open) {
					return
				}
				open.from = at
			}
			open.to = at.Add(c.duration)
		}
		if !open.to.IsZero() {
			yield(open)
		}
	}
}

// latest returns the last begin up to a time. If there is none, it returns the earliest time that a period could still
// affect.
func (c cronTimes) latest(zone *time.Location, to time.Time) time.Time {
	from := to.Add(-c.duration).Truncate(time.Minute)
	minute := func(n int) time.Time { return from.Add(time.Duration(n) * time.Minute) }
	after := sort.Search(int(to.Sub(from)/time.Minute)+1, func(n int) bool { return !c.begins(zone, minute(n), to) })
	return minute(max(0, after-1))
}

// begins reports whether the time begins between two moments, both included.
func (c cronTimes) begins(zone *time.Location, from, to time.Time) bool {
	for range c.beginnings(zone, from, to.Add(1)) {
		return true
	}
	return false
}

// beginnings yields every begin from a full minute until before another moment. It reads the expression day by day: the
// library is slow if periods begin in consecutive minutes, and makes mistakes on days on which clocks change.
func (c cronTimes) beginnings(zone *time.Location, from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for p := range periods(zone, from, to) {
			first, last := p.shown(p.from).Add(-p.skipped), p.shown(p.to)
			for d := first.Truncate(day); d.Before(last); d = d.Add(day) {
				if !c.onDay(d) {
					continue
				}
				for minute := range minutesOf(c.schedule) {
					at := d.Add(minute)
					if !at.Before(first) && at.Before(last) && !yield(later(p.moment(at), p.from)) {
						return
					}
				}
			}
		}
	}
}

// onDay reports whether the time begins on a day. If the day of the month and the weekday are given, one of them is
// enough.
func (c cronTimes) onDay(d time.Time) bool {
	const every = 1 << 63 // the library's mark of a field that is *
	s := c.schedule
	date, weekday := s.Dom&(1<<d.Day()) != 0, s.Dow&(1<<d.Weekday()) != 0
	if s.Dom&every != 0 || s.Dow&every != 0 {
		return s.Month&(1<<d.Month()) != 0 && date && weekday
	}
	return s.Month&(1<<d.Month()) != 0 && (date || weekday)
}

// minutesOf yields the minutes of a day at which a schedule begins, since midnight.
func minutesOf(s *cron.SpecSchedule) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for hour := range 24 {
			for minute := range 60 {
				if s.Hour&(1<<hour) != 0 && s.Minute&(1<<minute) != 0 && !yield(time.Duration(hour)*time.Hour+time.Duration(minute)*time.Minute) {
					return
				}
			}
		}
	}
}

// period is a time in which the clocks of a zone are not changed.
type period struct {
	span
	offset time.Duration
	// skipped is how far clocks were put forward when it began.
	skipped time.Duration
}

// shown returns what clocks show, as a time in UTC.
func (p period) shown(t time.Time) time.Time { return t.UTC().Add(p.offset) }

// moment is the inverse of shown.
func (p period) moment(shown time.Time) time.Time { return shown.Add(-p.offset) }

// periods yields the periods of a zone between two times.
func periods(zone *time.Location, from, to time.Time) iter.Seq[period] {
	return func(yield func(period) bool) {
		for from.Before(to) {
			began, ends := from.In(zone).ZoneBounds()
			p := period{span: span{from, to}, offset: offset(zone, from)}
			if began.Equal(from) {
				p.skipped = max(0, p.offset-offset(zone, began.Add(-1)))
			}
			if !ends.IsZero() {
				p.to = earlier(ends, to)
			}
			if !yield(p) {
				return
			}
			from = p.to
		}
	}
}

// offset returns how far the clocks of a zone are ahead of UTC.
func offset(zone *time.Location, at time.Time) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// union is several times as one, from a moment on.
type union struct {
	times []*pulled
	end   time.Time
	// block is a span of the union that touches no other.
	block span
}

// pulled is a time with its next span.
type pulled struct {
	head  span
	alive bool
	next  func() (span, bool)
	stop  func()
}

func newUnion(times []recurring, zone *time.Location, from, end time.Time) *union {
	u := &union{end: end}
	for _, t := range times {
		p := &pulled{}
		p.next, p.stop = iter.Pull(t.spans(zone, from, end))
		p.head, p.alive = p.next()
		u.times = append(u.times, p)
	}
	return u
}

func (u *union) stop() {
	if u == nil {
		return
	}
	for _, t := range u.times {
		t.stop()
	}
}

// after returns the first block that ends after a moment, or an empty block at the end of the union. Moments must not decrease
// from call to call.
func (u *union) after(at time.Time) span {
	for !u.block.to.After(at) {
		if !u.advance() {
			return span{u.end, u.end}
		}
	}
	return u.block
}

// advance goes on to the next block.
func (u *union) advance() bool {
	found := false
	for _, t := range u.times {
		if t.alive && (!found || t.head.from.Before(u.block.from)) {
			u.block, found = t.head, true
		}
	}
	for grown := found; grown; {
		grown = false
		for _, t := range u.times {
			for t.alive && !t.head.from.After(u.block.to) {
				u.block.to = later(u.block.to, t.head.to)
				t.head, t.alive = t.next()
				grown = true
			}
		}
	}
	return found
}
