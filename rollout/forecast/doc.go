// Package forecast computes how long a rollout takes under a policy, and finds the parts of the policy that never
// end.
//
//	policy, fleet ─ Of ─> Forecast: stages with their counts and times, findings
//
//	Assumed        a fleet of 100 clusters, when nothing is known of the real one
//	Known.Fleet    a fleet of known clusters; placements are evaluated as far as that is
//	               possible without a hub
//
// The forecast is of an upgrade: every cluster runs the stable revision, is available, and is
// verified a fixed time after its admission. The planner itself (rollout.New) decides at each
// moment, so that the forecast follows the rules of a real rollout. The clock of the forecast
// moves from one decision to the next.
//
// The package is pure: it has no client, no clock and no log.
package forecast
