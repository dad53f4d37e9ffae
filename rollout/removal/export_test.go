package removal

import "time"

// Shift moves every time of the record by d.
func (r Record) Shift(d time.Duration) Record {
	return r.retimed(func(t time.Time) time.Time { return t.Add(d) })
}
