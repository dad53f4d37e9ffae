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

// Text formats a time of day, rounded up to the minute, with the date if it is not
// today's.
func Text(t, now time.Time) string {
	t = RoundUp(t, time.Minute)
	if t.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}
