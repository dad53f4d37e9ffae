// Package gates evaluates the gates of a stage.
//
// A gate has one of four types, each in a file of its own:
//   - window: Window compares the time that it is given with a calendar.
//   - approval: Approval counts the decisions that it is given.
//   - prometheus and webhook: package measure asks a server.
//
// This package is pure. Every evaluation ends in a Verdict with a reason in words. A gate that
// could not be evaluated is Error and never Passed.
//
// Other packages decide when a gate is evaluated, and what its verdict means for the rollout: the planner reads
// verdicts, and controllers/gatechecks measures in the background.
package gates
