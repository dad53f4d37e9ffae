//go:build !faultclock

package main

import "k8s.io/utils/clock"

// operatorClock is the clock of all controllers. The tests of faults build the operator with the tag faultclock,
// which gives it another clock.
func operatorClock() clock.Clock { return clock.RealClock{} }
