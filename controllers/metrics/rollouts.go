package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// The labels of several metrics.
const (
	namespaceLabel = "namespace"
	nameLabel      = "name"
	stageLabel     = "stage"
	typeLabel      = "type"
	phaseLabel     = "phase"
	resultLabel    = "result"
)

// The results of rollouts, stages and gates.
const (
	succeeded  = "succeeded"
	failed     = "failed"
	rolledBack = "rolled_back"
	held       = "held"
	superseded = "superseded"
)

// Rollouts are the metrics of rollouts. It is safe for concurrent use.
type Rollouts struct {
	clusters, phase, stage, gate, owed *prometheus.Desc

	durations, leadTimes, restores, stages, gates *prometheus.HistogramVec

	mu sync.Mutex
	// shown has what a scrape shows of each rollout.
	shown map[types.NamespacedName]shown
}

type shown struct {
	counts v1alpha1.Counts
	phase  v1alpha1.Phase
	// stages are the phases of the stages, by name.
	stages map[string]string
	gates  []waitingGate
	owed   int
	// broken is the time since which clusters run content that failed; zero: no cluster does.
	broken time.Time
	// counted is the end that was counted last. A cluster that joins opens a rollout again; the second end of the
	// same rollout is not counted.
	counted end
}

type end struct {
	digest  string
	started time.Time
	result  string
}

// NewRollouts returns metrics that are not registered.
func NewRollouts() *Rollouts {
	of := []string{namespaceLabel, nameLabel}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: periods()}, append(of, labels...))
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append(of, labels...), nil)
	}
	return &Rollouts{
		shown:    map[types.NamespacedName]shown{},
		clusters: desc("addonflow_rollout_clusters", "Clusters of a rollout by state: updated, in_flight, failed, parked, held, waiting, removing.", "state"),
		phase:    desc("addonflow_rollout_phase", "1 for the phase a rollout is in.", phaseLabel),
		stage:    desc("addonflow_rollout_stage_phase", "1 for the phase a stage of a rollout is in.", stageLabel, phaseLabel),
		gate: desc("addonflow_gate_waiting_since_timestamp_seconds", "Since when a gate holds the clusters of its stage; absent while it does not.",
			stageLabel, "gate", typeLabel),
		owed: desc("addonflow_rollout_commit_statuses_waiting", "Commit statuses of a rollout that the forge has not accepted yet."),
		durations: histogram("addonflow_rollout_duration_seconds",
			"Time from the first plan for a content to the end of its rollout, by result: succeeded, failed, rolled_back, held, superseded.", resultLabel),
		leadTimes: histogram("addonflow_rollout_lead_time_seconds",
			"Time from the first plan for a content to its success, other contents and attempts in between included."),
		restores: histogram("addonflow_rollout_time_to_restore_seconds",
			"Time from the failure of a rollout to the next success, or to the end of the rollback."),
		stages: histogram("addonflow_stage_duration_seconds",
			"Time from the first admission of a stage to its end, by result: succeeded, failed.", stageLabel, resultLabel),
		gates: histogram("addonflow_gate_wait_seconds",
			"Time that a gate held the clusters of its stage, by result: succeeded, failed.", typeLabel, resultLabel),
	}
}

// periods reach from the shortest rollout to a rollout whose approval took a week.
func periods() []float64 {
	var seconds []float64
	for _, d := range []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour,
	} {
		seconds = append(seconds, d.Seconds())
	}
	return seconds
}

// owed counts the marks whose statement the forge has not accepted.
func owed(marks []v1alpha1.CommitMark) int {
	n := 0
	for i := range marks {
		if marks[i].Posting != nil || marks[i].Owed != nil {
			n++
		}
	}
	return n
}

// Stored measures a rollout after its turn, which stored the status at a time or left it unchanged. before is the
// status that the turn read.
func (r *Rollouts) Stored(before *v1alpha1.AddOnRolloutStatus, ro *v1alpha1.AddOnRollout, now time.Time) {
	key, after := client.ObjectKeyFromObject(ro), &ro.Status
	r.mu.Lock()
	defer r.mu.Unlock()
	known, again := r.shown[key]
	if !again {
		// Without these, a rate would miss the first rollout that ends.
		for _, result := range []string{succeeded, failed, rolledBack, superseded} {
			r.durations.WithLabelValues(key.Namespace, key.Name, result)
		}
		known.broken = brokenSince(before)
	}
	next := shown{
		counts: after.Counts, phase: after.Phase, stages: map[string]string{},
		gates: waitingGates(after), owed: owed(after.CommitStatuses), broken: known.broken,
		counted: r.ended(key, known.counted, before.History, after.History),
	}
	for i := range after.Stages {
		next.stages[after.Stages[i].Name] = after.Stages[i].Phase
	}
	switch after.Phase {
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRollingBack:
		if next.broken.IsZero() {
			next.broken = now
		}
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseRolledBack:
		if !next.broken.IsZero() {
			r.restores.WithLabelValues(key.Namespace, key.Name).Observe(now.Sub(next.broken).Seconds())
		}
		next.broken = time.Time{}
	default:
	}
	r.shown[key] = next
	r.decided(key, before, after, now)
}

// brokenSince is when the first rollout failed since the last success; zero: none failed.
func brokenSince(s *v1alpha1.AddOnRolloutStatus) time.Time {
	var since time.Time
	for i := range s.History {
		switch h := &s.History[i]; {
		case h.Phase == v1alpha1.PhaseSucceeded, h.Phase == v1alpha1.PhaseRolledBack:
			return since
		case h.Phase == v1alpha1.PhaseFailed && h.Finished != nil:
			since = h.Finished.Time
		}
	}
	return since
}

// ended measures the rollouts and stages that ended between two histories. It returns the end that
// was counted last.
func (r *Rollouts) ended(key types.NamespacedName, counted end, before, after []v1alpha1.HistoryEntry) end {
	for i := range after {
		h := &after[i]
		was := v1alpha1.HistoryEntry{}
		if j := slices.IndexFunc(before, func(b v1alpha1.HistoryEntry) bool {
			return b.Target.Digest == h.Target.Digest && b.Started.Equal(&h.Started)
		}); j >= 0 {
			was = before[j]
		}
		for _, stage := range h.Stages {
			known := slices.ContainsFunc(was.Stages, func(s v1alpha1.StageTimes) bool { return s.Name == stage.Name && s.Finished != nil })
			if stage.Finished == nil || known {
				continue
			}
			result := succeeded
			if stage.Phase == rollout.StageFailed {
				result = failed
			}
			r.stages.WithLabelValues(key.Namespace, key.Name, stage.Name, result).Observe(stage.Finished.Sub(stage.Started.Time).Seconds())
		}
		if h.Finished == nil || was.Finished != nil && was.Phase == h.Phase {
			continue
		}
		this := end{h.Target.Digest, h.Started.Time, resultOf(h)}
		if this == counted {
			continue
		}
		if i == 0 {
			counted = this
		}
		r.durations.WithLabelValues(key.Namespace, key.Name, this.result).Observe(h.Finished.Sub(h.Started.Time).Seconds())
		if h.Phase == v1alpha1.PhaseSucceeded {
			r.leadTimes.WithLabelValues(key.Namespace, key.Name).Observe(h.Finished.Sub(begun(after[i:])).Seconds())
		}
	}
	return counted
}

func resultOf(h *v1alpha1.HistoryEntry) string {
	switch {
	case h.SupersededBy != "":
		return superseded
	case h.Phase == v1alpha1.PhaseSucceeded:
		return succeeded
	case h.Phase == v1alpha1.PhaseRolledBack:
		return rolledBack
	case h.Phase == v1alpha1.PhaseHeld:
		return held
	default:
		return failed
	}
}

// begun is when the content of the first entry was first planned for since its last success.
func begun(history []v1alpha1.HistoryEntry) time.Time {
	first := history[0].Started.Time
	for _, h := range history[1:] {
		if h.Target.Digest != history[0].Target.Digest {
			continue
		}
		if h.Phase == v1alpha1.PhaseSucceeded {
			break
		}
		first = h.Started.Time
	}
	return first
}

// decided measures the gates that held a stage before and hold it no longer. If the content or the attempt changed,
// it measures none.
func (r *Rollouts) decided(key types.NamespacedName, before, after *v1alpha1.AddOnRolloutStatus, now time.Time) {
	if before.Target == nil || after.Target == nil || before.Target.Digest != after.Target.Digest || before.Attempt != after.Attempt {
		return
	}
	for _, waited := range waitingGates(before) {
		for i := range after.Stages {
			for _, g := range after.Stages[i].Gates {
				if after.Stages[i].Name != waited.stage || g.Name != waited.Name || g.When != waited.When {
					continue
				}
				result := ""
				switch g.State {
				case v1alpha1.GatePassed:
					result = succeeded
				case v1alpha1.GateFailed:
					result = failed
				default:
					continue
				}
				r.gates.WithLabelValues(key.Namespace, key.Name, gateType(g.Type), result).Observe(now.Sub(waited.since).Seconds())
			}
		}
	}
}

// waitingGate is a gate that holds its stage.
type waitingGate struct {
	v1alpha1.GateStatus

	stage string
	since time.Time
}

// waitingGates are the gates that hold their stage: no stage before it is unfinished, and the gate
// is not passed. A gate may wait before it holds anything; that time is not counted.
func waitingGates(s *v1alpha1.AddOnRolloutStatus) []waitingGate {
	var waiting []waitingGate
	var reached time.Time
	for i := range s.Stages {
		stage := &s.Stages[i]
		for _, g := range stage.Gates {
			if g.When == v1alpha1.GateBefore && g.Since != nil && (g.State == v1alpha1.GateWaiting || g.State == v1alpha1.GateError) {
				w := waitingGate{g, stage.Name, g.Since.Time}
				if reached.After(w.since) {
					w.since = reached
				}
				waiting = append(waiting, w)
			}
		}
		if stage.Phase != rollout.StageComplete && stage.Phase != rollout.StageNothingToDo {
			break
		}
		if end := endOf(s, stage.Name); end.After(reached) {
			reached = end
		}
	}
	return waiting
}

// endOf is when a stage of the current rollout ended; zero: it did not begin.
func endOf(s *v1alpha1.AddOnRolloutStatus, stage string) time.Time {
	if len(s.History) > 0 {
		for _, t := range s.History[0].Stages {
			if t.Name == stage && t.Finished != nil {
				return t.Finished.Time
			}
		}
	}
	return time.Time{}
}

// gateType is the type of a gate as a label.
func gateType(t v1alpha1.GateType) string { return strings.ToLower(string(t)) }

// Forget drops a rollout that no longer exists.
func (r *Rollouts) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.shown, key)
	for _, vec := range r.histograms() {
		vec.DeletePartialMatch(prometheus.Labels{namespaceLabel: key.Namespace, nameLabel: key.Name})
	}
}

func (r *Rollouts) histograms() []*prometheus.HistogramVec {
	return []*prometheus.HistogramVec{r.durations, r.leadTimes, r.restores, r.stages, r.gates}
}

// Describe implements prometheus.Collector.
func (r *Rollouts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{r.clusters, r.phase, r.stage, r.gate, r.owed} {
		to <- d
	}
	for _, vec := range r.histograms() {
		vec.Describe(to)
	}
}

// Collect implements prometheus.Collector. It shows only the stored phase of a rollout. With a phase in between, an
// alert would start its wait again.
func (r *Rollouts) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.shown {
		for state, n := range map[string]int32{
			"updated": s.counts.Updated, "in_flight": s.counts.InFlight, "failed": s.counts.Failed,
			"parked": s.counts.Parked, "held": s.counts.Held, "waiting": s.counts.Waiting, "removing": s.counts.Removing,
		} {
			gauge(r.clusters, float64(n), key.Namespace, key.Name, state)
		}
		if s.phase != "" {
			gauge(r.phase, 1, key.Namespace, key.Name, string(s.phase))
		}
		for name, phase := range s.stages {
			gauge(r.stage, 1, key.Namespace, key.Name, name, phase)
		}
		for _, g := range s.gates {
			gauge(r.gate, float64(g.since.Unix()), key.Namespace, key.Name, g.stage, g.Name, gateType(g.Type))
		}
		gauge(r.owed, float64(s.owed), key.Namespace, key.Name)
	}
	for _, vec := range r.histograms() {
		vec.Collect(to)
	}
}
