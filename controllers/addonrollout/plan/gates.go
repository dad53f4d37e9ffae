package plan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/rollout"
)

// Approvals are the decisions of users on the gates of a rollout, as they were read.
type Approvals struct {
	// Read: the decisions were read. Otherwise the verdicts in the status are used.
	Read bool
	// Counted are the decisions whose author the API server proved, and every rejection, because a rejection only
	// stops a stage. Outdated are the approvals that are older than the policy that proves authors. Unproven says why
	// no approval is proven.
	Counted, Outdated []v1alpha1.AddOnApproval
	Unproven          error
}

// namesPerSide bounds the clusters on each side of a comparison.
const namesPerSide = 200

// gateTextLimit is how many characters of the texts of a verdict are stored.
const gateTextLimit = 200

// gateRoom is the most bytes of the verdict of a gate in the object, stageRoom the most bytes of a stage without
// gates. The limit of the ledger is lowered by these bytes for each gate, and for each stage after the first
// stagesSpared.
const gateRoom, stageRoom, stagesSpared = 700, 600, 31

// gate is a gate of a stage and its verdict in this turn.
type gate struct {
	v1alpha1.Gate
	stage  string
	status v1alpha1.GateStatus
	// stored is the verdict in the status.
	stored v1alpha1.GateStatus
	// changesAt is when a window opens or closes next; zero: never.
	changesAt time.Time
}

// windowKey identifies a window gate of a rollout.
type windowKey struct{ stage, gate string }

// window is a window as declared, and when it is open.
type window struct {
	declared *v1alpha1.WindowGate
	gates.Openings
}

// judgeGates returns the gates of the declared stages, each with its verdict about the target.
func (t *turn) judgeGates() []gate {
	var found []gate
	for i := range t.Rollout.Spec.Stages {
		st := &t.Rollout.Spec.Stages[i]
		if st.Gates == nil {
			continue
		}
		for _, g := range st.Gates.Before {
			found = append(found, t.judgeGate(st.Name, v1alpha1.GateBefore, g))
		}
		for _, g := range st.Gates.During {
			found = append(found, t.judgeGate(st.Name, v1alpha1.GateDuring, g))
		}
	}
	return found
}

func (t *turn) judgeGate(stage string, when v1alpha1.GateMoment, declared v1alpha1.Gate) gate {
	g := gate{Gate: declared, stage: stage, stored: t.storedVerdict(stage, when, declared)}
	g.status = g.stored
	switch g.Type {
	case v1alpha1.GateWindow:
		t.evaluate(&g)
	case v1alpha1.GateApproval:
		t.approve(&g)
	case v1alpha1.GatePrometheus, v1alpha1.GateWebhook:
		t.measure(&g)
	}
	return g
}

// storedVerdict is the verdict of a gate in the status; Waiting if the status has none. If a clock was set back, a
// stored time may be in the future. Such a time of a verdict becomes the present time. Such a time of a measurement
// is dropped: with the present time, the measurement could count as one after a soak that ends now, and a
// measurement that begins in this second would be ignored.
func (t *turn) storedVerdict(stage string, when v1alpha1.GateMoment, declared v1alpha1.Gate) v1alpha1.GateStatus {
	s := v1alpha1.GateStatus{Name: declared.Name, When: when, Type: declared.Type, State: v1alpha1.GateWaiting}
	for _, st := range t.stored.Stages {
		for _, known := range st.Gates {
			if st.Name == stage && known.Name == s.Name && known.When == when && known.Type == s.Type {
				s = *known.DeepCopy()
			}
		}
	}
	now := metav1.NewTime(t.Look.Wall).Rfc3339Copy()
	if s.Since != nil && s.Since.After(now.Time) {
		s.Since = &now
	}
	if s.BeganAt != nil && s.BeganAt.After(now.Time) {
		s.BeganAt = &now
	}
	if s.EvaluatedAt != nil && s.EvaluatedAt.After(now.Time) {
		s.EvaluatedAt = nil
		if s.Type == v1alpha1.GateApproval {
			s.EvaluatedAt = &now // the approval was used, and stays used
		}
	}
	return s
}

// enter gives the gate a verdict.
func (g *gate) enter(v gates.Verdict, now time.Time) {
	if g.status.State != v.State {
		g.stamp(now)
	}
	g.status.State, g.status.Reason, g.status.By = v.State, brief.Line(v.Reason, gateTextLimit), brief.Line(v.By, gateTextLimit)
}

// stamp stores when the gate entered its state, and the first time also when the gate began.
func (g *gate) stamp(now time.Time) {
	since, before := metav1.NewTime(now).Rfc3339Copy(), g.status.Since
	g.status.Since = &since
	if g.Approval != nil && g.Approval.Forge != nil && g.status.BeganAt == nil {
		g.status.BeganAt = cmp.Or(before, &since) // an earlier version stored only Since
	}
}

// evaluate evaluates a window. It reads the window only if the window was edited or its openings have passed.
func (t *turn) evaluate(g *gate) {
	key, now := windowKey{g.stage, g.Name}, t.Look.Wall
	w := t.Memory.windows[key]
	if w.Expired(now) || !equality.Semantic.DeepEqual(w.declared, g.Window) {
		w = window{g.Window, gates.ReadWindow(*g.Window, now)}
	}
	t.forNext.windows[key] = w
	verdict, changes := w.At(now)
	g.enter(verdict, now)
	g.changesAt = changes
}

// approve counts the decisions of users. A rejection stays until the attempt changes. An approval that was used
// stays, too; EvaluatedAt then says when it first let a cluster be admitted.
func (t *turn) approve(g *gate) {
	used := g.stored.State == v1alpha1.GatePassed && g.stored.EvaluatedAt != nil
	if !t.Approvals.Read || used || g.stored.State == v1alpha1.GateFailed {
		return
	}
	if err := t.Approvals.Unproven; err != nil {
		g.enter(gates.Verdict{State: v1alpha1.GateError, Reason: err.Error()}, t.Look.Wall)
		return
	}
	ro := t.Rollout
	subject := gates.Subject{
		Namespace: ro.Namespace, RolloutUID: ro.UID, Stage: g.stage, Gate: g.Name,
		Digest: t.Target.Digest, Attempt: t.stored.Attempt,
	}
	decisions := subject.Of(t.Approvals.Counted)
	for i := range decisions {
		if by := decisions[i].Spec.Forge; by != nil {
			g.status.LastComment = max(g.status.LastComment, by.CommentID)
		}
	}
	verdict := gates.Approval(*g.Approval, decisions)
	if outdated := subject.Of(t.Approvals.Outdated); verdict.State == v1alpha1.GateWaiting && len(outdated) > 0 {
		names := make([]string, len(outdated))
		for i := range outdated {
			names[i] = outdated[i].Name
		}
		slices.Sort(names)
		verdict.Reason += "; not counted, as older than the admission policy: " + brief.Names(names) + "; delete and decide again"
	}
	g.enter(verdict, t.Look.Wall)
}

// measure enters a new result of a measurement. Passed stays before the stage, Failed stays during it.
func (t *turn) measure(g *gate) {
	during := g.status.When == v1alpha1.GateDuring
	if during && g.stored.State == v1alpha1.GateFailed || !during && g.stored.State == v1alpha1.GatePassed {
		return
	}
	i := slices.IndexFunc(t.measured, func(m gates.Measured) bool {
		return m.Stage == g.stage && m.Gate == g.Name && m.When == g.status.When &&
			m.Digest == t.Target.Digest && m.Attempt == t.stored.Attempt
	})
	if i < 0 {
		return
	}
	m := t.measured[i]
	began := metav1.NewTime(m.Began).Rfc3339Copy() // rounded down
	if g.stored.EvaluatedAt != nil && !began.After(g.stored.EvaluatedAt.Time) || m.Began.After(t.Look.Wall) {
		return // the verdict already has this result
	}
	verdict := m.Verdict
	if verdict.State != v1alpha1.GateError {
		g.status.EvaluatedAt = &began
	}
	switch verdict.State {
	case v1alpha1.GatePassed:
		g.status.FailedInARow = 0
	case v1alpha1.GateFailed:
		g.status.FailedInARow++
		if allowed := g.failures(); during && g.status.FailedInARow < allowed {
			verdict.State = v1alpha1.GateWaiting
			verdict.Reason = fmt.Sprintf("failed %d times in a row, %d halt the stage: %s", g.status.FailedInARow, allowed, verdict.Reason)
		}
	case v1alpha1.GateWaiting, v1alpha1.GateError:
	}
	g.enter(verdict, t.Look.Wall)
}

// failures is how many evaluations in a row must fail before the gate fails.
func (g *gate) failures() int32 {
	if g.Failures == nil {
		return 1
	}
	return *g.Failures
}

// planned is the verdict as the planner's input.
func (g *gate) planned() rollout.Gate {
	v := rollout.Gate{
		Stage: g.stage, Name: g.Name, When: g.status.When, State: g.status.State, Reason: g.status.Reason, ChangesAt: g.changesAt,
	}
	if g.status.Since != nil {
		v.Since = g.status.Since.Time
	}
	if g.status.EvaluatedAt != nil {
		v.EvaluatedAt = g.status.EvaluatedAt.Time
	}
	return v
}

// ask stores since when the planner asks for the verdict. A verdict is not stored if the planner never asked for it
// and it decides nothing. The verdict of a window is stored only while the planner asks for it, because a window
// opens and closes whether or not a stage waits for it. Decisions of users are counted even while the rollout is
// suspended.
func (g *gate) ask(asked bool, now time.Time) {
	decided := g.Type != v1alpha1.GateWindow && (g.status.State == v1alpha1.GatePassed || g.status.State == v1alpha1.GateFailed)
	switch {
	case !asked && !decided && !g.Type.Measured() && (g.Type == v1alpha1.GateWindow || g.stored.Since == nil):
		g.status = g.stored
	case asked && g.status.Since == nil:
		g.stamp(now)
	}
}

// asked are the gates with the times from which the planner asks for them.
func (d *Decided) asked(now time.Time) []gate {
	after := slices.Clone(d.gates)
	for i := range after {
		g := &after[i]
		_, asked := d.asks(g)
		g.ask(asked, now)
		used := slices.Contains(d.Planned.Passed, rollout.Ask{Stage: g.stage, Name: g.Name, When: g.status.When})
		if used && g.Type == v1alpha1.GateApproval && g.status.EvaluatedAt == nil {
			stamp := metav1.NewTime(now).Rfc3339Copy()
			g.status.EvaluatedAt = &stamp
		}
	}
	return after
}

// asks returns the planner's question about a gate; false: the planner does not need the verdict.
func (d *Decided) asks(g *gate) (rollout.Ask, bool) {
	i := slices.IndexFunc(d.Planned.Asks, func(a rollout.Ask) bool {
		return a.Stage == g.stage && a.Name == g.Name && a.When == g.status.When
	})
	if i < 0 {
		return rollout.Ask{}, false
	}
	return d.Planned.Asks[i], true
}

// measures are the gates to measure.
func (d *Decided) measures(o *Observation, attempt int32) []gates.Measure {
	var measures []gates.Measure
	for i := range d.gates {
		g := &d.gates[i]
		if ask, asked := d.asks(g); asked && g.Type.Measured() {
			measures = append(measures, gates.Measure{When: g.status.When, Gate: g.Gate, Question: d.question(o, g, attempt), After: ask.After})
		}
	}
	return measures
}

// withVerdicts returns the stages with the verdicts of their gates. If the planner could not plan and does not list a
// stage, the stage keeps its verdicts, so that a failed gate stays Failed. A complete stage waits for no gate: its
// gates that were not asked for, as after a retry, are left out.
func withVerdicts(stages []v1alpha1.StageStatus, all []gate) []v1alpha1.StageStatus {
	for _, g := range all {
		i := slices.IndexFunc(stages, func(s v1alpha1.StageStatus) bool { return s.Name == g.stage })
		over := i < 0 || stages[i].Phase == rollout.StageComplete || stages[i].Phase == rollout.StageNothingToDo
		if over && g.status.Since == nil {
			continue
		}
		if i < 0 {
			stages = append(stages, v1alpha1.StageStatus{Name: g.stage, Phase: rollout.StageWaiting})
			i = len(stages) - 1
		}
		stages[i].Gates = append(stages[i].Gates, g.status)
	}
	return stages
}

// question has the clusters that a measurement of the gate compares.
func (d *Decided) question(o *Observation, g *gate, attempt int32) gates.Question {
	q := gates.Question{
		Rollout: types.NamespacedName{Namespace: o.Rollout.Namespace, Name: o.Rollout.Name}, Stage: g.stage, Gate: g.Name,
		Digest: o.Target.Digest, Commit: o.Target.Commit, Attempt: attempt,
	}
	for _, s := range d.Planned.Stages {
		if s.Name == g.stage {
			q.Counts = s.Counts
		}
	}
	for i := range d.Clusters {
		switch c := &d.Clusters[i]; {
		case c.moved(o.Target.Digest):
			q.Moved = append(q.Moved, c.Name)
		case d.compares(c):
			q.Control = append(q.Control, c.Name)
		}
	}
	q.Moved, q.Control = chosen(q.Moved), chosen(q.Control)
	return q
}

// moved reports whether the cluster is Soaking or Done with the content of the target.
func (c *Cluster) moved(target string) bool {
	return c.Planned.State == rollout.Done || c.Planned.State == rollout.Soaking && c.Planned.Revision == target
}

// compares reports whether moved clusters are compared with this cluster: it is available, in the install set, runs
// the stable revision and is not in flight.
func (d *Decided) compares(c *Cluster) bool {
	is, _ := Reachable(c.Cluster)
	switch c.Planned.State {
	case rollout.Waiting, rollout.Held, rollout.Unchanged, rollout.Unstaged:
		return is && c.AtStable && d.Input.Stable != "" && d.Input.Stable != d.Input.Spec.Target.Digest
	default:
		return false
	}
}

// chosen are at most namesPerSide of the names: those with the smallest hashes, so that equal names give the same
// choice.
func chosen(names []string) []string {
	if len(names) <= namesPerSide {
		return names
	}
	hash := make(map[string][sha256.Size]byte, len(names)) // a weaker hash would choose neighbours
	for _, name := range names {
		hash[name] = sha256.Sum256([]byte(name))
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := hash[a], hash[b]
		return bytes.Compare(x[:], y[:])
	})
	names = names[:namesPerSide]
	slices.Sort(names)
	return names
}
