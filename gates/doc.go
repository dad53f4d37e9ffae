// Package gates evaluates the gates of a stage.
//
// A gate has one of four types, each in a file of its own:
//   - window: Window compares the time that it is given with a calendar. Pure.
//   - approval: Approval counts the decisions that it is given. Pure.
//   - prometheus and webhook: Measure asks a server, within the bounds of the transport.
//
// Every evaluation ends in a Verdict with a reason in words. A gate that could not be evaluated
// is Error and never Passed. The text of a server is shortened and made visible, and contains
// no credential of the gate.
//
// Where a measurement goes is written in Git, and its credentials are in a Secret on the hub.
// The author of a commit must not be able to send them elsewhere: the Secret itself names the
// host, in the annotation addonflow.io/gate-host.
//
// When a gate is evaluated, and what its verdict means for the rollout, is not decided here:
// the planner reads verdicts, and controllers/gates calls Measure in the background.
package gates
