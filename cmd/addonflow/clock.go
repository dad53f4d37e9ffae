//go:build !faultclock

package main

import "k8s.io/utils/clock"

// operatorClock is the clock of every controller. The tests of faults build the operator with the
// tag faultclock, and with another clock.
func operatorClock() clock.Clock { return clock.RealClock{} }
