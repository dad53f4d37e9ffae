//go:build faultclock

package main

import (
	"os"
	"time"
	"unsafe"

	"k8s.io/utils/clock"
)

// operatorClock is a clock that is set while the operator runs: what the file named by
// ADDONFLOW_FAULT_CLOCK has is added to its time of day.
func operatorClock() clock.Clock { return setClock{file: os.Getenv("ADDONFLOW_FAULT_CLOCK")} }

type setClock struct {
	clock.RealClock
	file string
}

// Now is the system's time with another time of day. Its monotonic reading stays, as when a
// system's clock is set: only the field with the seconds since 1885 changes, which has 33 bits
// above the 30 bits with the nanoseconds.
func (c setClock) Now() time.Time {
	now := time.Now()
	text, err := os.ReadFile(c.file)
	if err != nil {
		return now // it was not set yet
	}
	by, err := time.ParseDuration(string(text))
	if err != nil {
		return now // it is being written
	}
	*(*uint64)(unsafe.Pointer(&now)) += uint64(by/time.Second) << 30
	return now
}

// Since is measured by the monotonic readings.
func (c setClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
