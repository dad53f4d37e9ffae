// Package demo is the whole story on one machine: an embedded hub, a simulated fleet, a Git
// repository, a forge and the real operator binary as a process of its own.
//
//	World      hub + fleet + Git + forge + operator; other suites can start one, too
//	Repository what is committed: examples/hello, with another image at each step
//	Recorder   every change of every work, in the order in which the hub stored it
//	Run        the show: seven commits, each checked three times
//
// Each step prints the commands a user would type, runs them with the same binary, and then
// checks the result independently of their output: through the API (AddOnRollout.status), at
// the forge (the statuses it stored for the commit) and in the works and on the simulated
// clusters themselves. The first wrong state ends the show with an error, the last status and
// the end of the operator's log.
//
// Every wait is for an event, with the deadline of its step; none is for a fixed time.
package demo
