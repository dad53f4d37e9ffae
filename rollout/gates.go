package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

// gateErrorAfter is the default of errorAfter.
const gateErrorAfter = 10 * time.Minute

// Gate is the verdict of one gate about the content of the target in this attempt.
type Gate struct {
	// Stage and Name of the gate, and when it is evaluated.
	Stage, Name string
	When        v1alpha1.GateMoment
	// State of the verdict; "" is Waiting. Reason in words.
	State  v1alpha1.GateState
	Reason string
	// Since is when the gate entered its state; EvaluatedAt is when the last evaluation with a result began. Both
	// have a precision of a second; EvaluatedAt is rounded down.
	Since, EvaluatedAt time.Time
	// ChangesAt is when the verdict of a window changes by the clock; zero: never.
	ChangesAt time.Time
}

// Ask names a gate that is to be evaluated now.
type Ask struct {
	Stage, Name string
	When        v1alpha1.GateMoment
	// After is the end of the last soak; it is set when all clusters of the stage are decided. Only an evaluation
	// that begins later completes the stage.
	After time.Time
}

// gate is a gate of a step that the rollout has to pass, and its verdict.
type gate struct {
	v1alpha1.Gate
	verdict Gate
}

// gatesOf returns the gates of a stage that the rollout has to pass, with their verdicts. Most gates judge content,
// so proven content needs no verdict. A window judges the time: it must be open at every admission. A cluster that
// moves back waits only for a window with holdsReverts.
func (p *planner) gatesOf(st v1alpha1.Stage) []gate {
	if st.Gates == nil {
		return nil
	}
	var found []gate
	for when, declared := range moments(st.Gates) {
		for _, g := range declared {
			passes := p.in.TargetProven && g.Type != v1alpha1.GateWindow || p.revertOpen && !g.Window.HoldsReverts
			if !passes {
				found = append(found, gate{g, p.verdictOf(st.Name, g.Name, when)})
			}
		}
	}
	return found
}

// moments visits the gates, with the moment at which each is evaluated.
func moments(g *v1alpha1.Gates) func(yield func(v1alpha1.GateMoment, []v1alpha1.Gate) bool) {
	return func(yield func(v1alpha1.GateMoment, []v1alpha1.Gate) bool) {
		if yield(v1alpha1.GateBefore, g.Before) {
			yield(v1alpha1.GateDuring, g.During)
		}
	}
}

// verdictOf is the verdict of a gate; Waiting if the input has none.
func (p *planner) verdictOf(stage, name string, when v1alpha1.GateMoment) Gate {
	for _, v := range p.in.Gates {
		if v.Stage == stage && v.Name == name && v.When == when {
			return v
		}
	}
	return Gate{Stage: stage, Name: name, When: when, State: v1alpha1.GateWaiting}
}

// failed reports whether the gate halts the stage. Before the stage, only a rejection does, because a measurement is
// repeated.
func (g *gate) failed() bool {
	return g.verdict.State == v1alpha1.GateFailed && (g.verdict.When == v1alpha1.GateDuring || g.Type == v1alpha1.GateApproval)
}

// failedGate is the first gate that halts the step; nil: none does.
func (s *step) failedGate() *gate {
	i := slices.IndexFunc(s.gates, func(g gate) bool { return g.failed() })
	if i < 0 {
		return nil
	}
	return &s.gates[i]
}

// measure sets the gates for which the step waits after all its clusters are decided. These are the gates in `during`
// without a passed evaluation that began after the last soak. A cluster counts in the stage that admitted it, even if
// another stage selects it now. A stage that admitted no cluster has nothing to measure.
func (p *planner) measure(s *step) {
	s.unmeasured, s.soaked = "", time.Time{}
	if len(s.gates) == 0 {
		return
	}
	for u := range p.recorded() {
		r := u.record
		if r.Revision != p.target || u.step != s && r.Stage != s.name {
			continue
		}
		if r.State == Done {
			s.soaked = clock.Later(s.soaked, clock.RoundUp(r.Since, time.Minute)) // rounded as in the ledger
		}
	}
	for i := range s.gates {
		g := &s.gates[i]
		passed := g.verdict.State == v1alpha1.GatePassed && !g.verdict.EvaluatedAt.Before(s.soaked)
		if g.verdict.When == v1alpha1.GateDuring && s.begun && !passed && s.unmeasured == "" {
			s.unmeasured = p.waitText(s, g) + p.unmeasurable(s, g)
		}
	}
}

// unmeasurable says what to do if a query uses $moved and no moved cluster is left; otherwise it is "".
func (p *planner) unmeasurable(s *step, g *gate) string {
	moved := func(u unit) bool {
		return u.member && u.record != nil && u.record.Revision == p.target && verified(u.record.State)
	}
	if g.Prometheus == nil || !strings.Contains(g.Prometheus.Query, "$moved") || s.tally.flying+s.tally.waiting > 0 || slices.ContainsFunc(p.units, moved) {
		return ""
	}
	return "; every cluster that had the content is gone: let the placement of stage " + s.name + " select another one, or remove the gate from the stage"
}

// askGates asks for the verdicts of the gates of a step that could start. It returns the text about the gates that
// hold admissions; "": no gate holds a cluster that waits.
func (p *planner) askGates(s *step) string {
	s.shut = nil
	if len(s.gates) == 0 {
		return ""
	}
	waiting := slices.Concat(p.candidates(s), p.turning(s))
	if len(waiting) == 0 {
		return ""
	}
	s.gated = ""
	for i := range s.gates {
		g := &s.gates[i]
		if p.askGate(s, g) {
			continue
		}
		s.shut = append(s.shut, g)
		switch {
		case !slices.ContainsFunc(waiting, func(u *unit) bool { return p.holds(g, u) }):
		case s.gated == "":
			s.gated, s.remeasured = p.waitText(s, g), g.Type.Measured()
		case g.verdict.State == v1alpha1.GateError:
			s.gated += ", and for " + g.title() + " (Error)"
		default:
			s.gated += ", and for " + g.title()
		}
	}
	return s.gated
}

// holds reports whether a gate that has not passed holds the cluster. A cluster that moves back in a revert waits
// only for a window with holdsReverts.
func (p *planner) holds(g *gate, u *unit) bool {
	return g.Type != v1alpha1.GateWindow || g.Window.HoldsReverts || !p.movesBack(u)
}

// shutOut reports whether the strategy, or a gate of the step, keeps the cluster from being admitted now.
func (p *planner) shutOut(s *step, u *unit) bool {
	return s.byStrategy && !p.unprotected(u) || slices.ContainsFunc(s.shut, func(g *gate) bool { return p.holds(g, u) })
}

// askGate asks for the verdict of a gate before the stage; a window is asked for at every admission. It reports
// whether the gate lets a cluster of the step be admitted now.
func (p *planner) askGate(s *step, g *gate) bool {
	v := &g.verdict
	if v.When == v1alpha1.GateDuring {
		late := v.Since.Add(g.errorAfter())
		if v.State != v1alpha1.GateError {
			return true
		}
		p.look(late)
		return p.now.Before(late)
	}
	passed := v.State == v1alpha1.GatePassed
	if !passed || g.Type == v1alpha1.GateWindow {
		p.asks = append(p.asks, Ask{Stage: s.name, Name: g.Name, When: v.When})
	}
	p.look(v.ChangesAt)
	return passed
}

// pass notes that the gates before the step let a cluster be admitted.
func (p *planner) pass(s *step) {
	for i := range s.gates {
		if g := &s.gates[i]; g.verdict.When == v1alpha1.GateBefore {
			p.passed = append(p.passed, Ask{Stage: s.name, Name: g.Name, When: v1alpha1.GateBefore})
		}
	}
}

// askDuring asks for the gates in `during` of every stage that has begun and is not decided. An aborted rollout needs
// no verdict: after a retry, gates are evaluated again.
func (p *planner) askDuring() {
	if p.in.Aborted != "" {
		return
	}
	for _, t := range p.tracks {
		for i, s := range t.steps {
			if !s.begun || t.complete(i) || t.failed(i) {
				continue
			}
			ask := Ask{Stage: s.name, When: v1alpha1.GateDuring}
			if t.decided(i) {
				ask.After = s.soaked
			}
			for k := range s.gates {
				if g := &s.gates[k]; g.verdict.When == ask.When {
					ask.Name = g.Name
					p.asks = append(p.asks, ask)
				}
			}
		}
	}
}

// errorAfter is how long the gate may be in Error before the stage admits no further cluster.
func (g *gate) errorAfter() time.Duration {
	if g.ErrorAfter == nil {
		return gateErrorAfter
	}
	return g.ErrorAfter.Duration
}

// title is "approval qa".
func (g *gate) title() string { return string(g.Type) + " " + g.Name }

// waitText says for what a step waits because of the gate.
func (p *planner) waitText(s *step, g *gate) string {
	text, reason := "waits for "+g.title(), bounded(g.verdict.Reason)
	switch {
	case g.verdict.State == v1alpha1.GateError:
		text += ", which cannot be evaluated: " + orElse(reason, "no reason is known")
	case g.verdict.State == v1alpha1.GateFailed:
		text += ", which failed: " + orElse(reason, "no reason is known")
	case reason != "" && g.verdict.State != v1alpha1.GatePassed:
		text += ": " + reason
	case g.verdict.When == v1alpha1.GateDuring:
		text += " to be evaluated after the soak"
		if !s.soaked.IsZero() {
			text += ", from " + clock.Text(s.soaked, p.now) + " on"
		}
	}
	if g.Type == v1alpha1.GateApproval && g.verdict.State != v1alpha1.GateError {
		text += fmt.Sprintf(" (addonflow approve %s %s)", p.in.AddOn, s.name) // other clauses may follow
	}
	return text
}

// erringText names the gates in during that cannot be evaluated and hold nothing yet; "": none.
func (s *step) erringText() string {
	var text strings.Builder
	for i := range s.gates {
		g := &s.gates[i]
		if g.verdict.When == v1alpha1.GateDuring && g.verdict.State == v1alpha1.GateError && s.begun && s.tally.flying+s.tally.waiting > 0 && !slices.Contains(s.shut, g) {
			text.WriteString(", " + g.title() + " cannot be evaluated: " + orElse(bounded(g.verdict.Reason), "no reason is known"))
		}
	}
	return text.String()
}

// failText says why the gate halts its step.
func (g *gate) failText() string {
	if g.Type == v1alpha1.GateApproval {
		return g.title() + ": " + orElse(g.verdict.Reason, "rejected")
	}
	return g.title() + " failed: " + orElse(g.verdict.Reason, "no reason is known")
}
