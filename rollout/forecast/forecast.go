package forecast

import (
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// assumedPerCluster is how long a cluster takes if nothing is known of the add-on.
const assumedPerCluster = 2 * time.Minute

// Took is how long after its admission a cluster verified its content: the median of Clusters clusters. Without
// clusters it is not known.
type Took struct {
	PerCluster time.Duration
	Clusters   int
}

// Measured is how long the Done clusters took, by their records. The soaks of their stages do not count; under is
// the forecast of the policy that moved these clusters, and has the lengths of the soaks. Records have whole
// seconds, and a cluster takes at least one.
func Measured(records []rollout.Record, under Forecast) Took {
	soaks := map[string]time.Duration{}
	for _, st := range under.Stages {
		soaks[st.Name] = st.Soak
	}
	var took []time.Duration
	for _, r := range records {
		if d := r.Since.Sub(r.Admitted) - soaks[r.Stage]; r.State == rollout.Done && d >= 0 {
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return Took{}
	}
	slices.Sort(took)
	return Took{PerCluster: max(took[len(took)/2], time.Second), Clusters: len(took)}
}

// Fleet is the clusters and placements of a forecast.
type Fleet struct {
	// Clusters of the fleet. Those that are installed are to be upgraded.
	Clusters []rollout.Cluster
	// Placements that the policy names.
	Placements []rollout.Placement
	// Took is how long the clusters of the add-on took before.
	Took Took
	// Notes say in words what was assumed of the fleet or not evaluated.
	Notes []string
}

// Windows are the windows of a policy, for a rollout that begins at a time. Without At, every window is open.
type Windows struct {
	Begins time.Time
	// At reports whether a window is open at a time, and when that changes; zero: not within a year.
	At func(window v1alpha1.WindowGate, at time.Time) (open bool, changes time.Time)
}

// Forecast is how a rollout proceeds if every cluster succeeds.
type Forecast struct {
	// Stages that have clusters, in the order in which the planner reports them.
	Stages []Stage
	// Unstaged counts the clusters in no stage.
	Unstaged int
	// PerCluster is how long after its admission every cluster of the forecast is verified. It is the median of
	// Measured clusters; if Measured is 0, it is assumed.
	PerCluster time.Duration
	Measured   int
	// Duration from the begin to the end. With a finding it is not the whole time.
	Duration time.Duration
	// Windowed: the times include waits for closed windows, and depend on the begin.
	Windowed bool
	// Untimed: the times lack waits before stages.
	Untimed bool
	// Findings are the reasons for which the rollout does not end by itself within a year; none if it does.
	Findings []Finding
}

// Stage is the course of one stage.
type Stage struct {
	Name string
	// Clusters of the stage, and how many of them are in flight at once at most.
	Clusters, AtOnce int
	// Waits are for people, windows and measurements before the stage. Of these, only the waits for windows are part
	// of the times, and only if the forecast is Windowed.
	Waits []string
	// Soak of each cluster; 0: none.
	Soak time.Duration
	// Begins and Ends count from the begin of the rollout. A stage that does not
	// begin has zero in both.
	Begins, Ends time.Duration
}

// Finding is why a rollout does not end by itself. Field is relative to the spec of the
// AddOnRollout. If it starts with installStrategy, it is relative to the spec of the
// ClusterManagementAddOn.
type Finding struct {
	Field, Message, Hint string
}

// Of forecasts the rollout of an add-on under a valid policy. It returns an error if the forecast takes too many
// decisions.
func Of(addOn string, policy v1alpha1.AddOnRolloutSpec, fleet Fleet, windows Windows) (Forecast, error) {
	r := newRun(addOn, policy, fleet, windows)
	err := r.simulate()
	return r.forecast(), err
}
