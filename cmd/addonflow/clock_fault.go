//go:build faultclock

package main

import (
	"os"
	"time"
	"unsafe"

	"k8s.io/utils/clock"
)

// operatorClock is a clock that a test can change while the operator runs: the duration in the
// file that ADDONFLOW_FAULT_CLOCK names is added to its time of day.
func operatorClock() clock.Clock { return setClock{file: os.Getenv("ADDONFLOW_FAULT_CLOCK")} }

type setClock struct {
	clock.RealClock
	file string
}

// Now is the system's time with a changed time of day. The monotonic reading stays, as if the clock of the system was
// set. time.Time stores the seconds since 1885 in 33 bits above the 30 bits of the nanoseconds; only the seconds
// change.
func (c setClock) Now() time.Time {
	now := time.Now()
	text, err := os.ReadFile(c.file)
	if err != nil {
		return now // no test has written it yet
	}
	by, err := time.ParseDuration(string(text))
	if err != nil {
		return now // a test is writing it
	}
	*(*uint64)(unsafe.Pointer(&now)) += uint64(by/time.Second) << 30
	return now
}

// Since uses the monotonic readings.
func (c setClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
