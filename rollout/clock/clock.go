package clock

import "time"

// RoundUp returns the first multiple of grain that is not before t, in UTC.
func RoundUp(t time.Time, grain time.Duration) time.Time {
	down := t.Truncate(grain)
	if down.Equal(t) {
		return down.UTC()
	}
	return down.Add(grain).UTC()
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// First returns the earlier of two times, where a zero time is none.
func First(a, b time.Time) time.Time {
	if a.IsZero() || b.IsZero() {
		return Later(a, b)
	}
	return Earlier(a, b)
}

// Sooner returns the shorter of two waits, where 0 is none.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Text formats a time of day, rounded up to the minute, with the date if it is not
// today's.
func Text(t, now time.Time) string {
	t = RoundUp(t, time.Minute)
	if t.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}
