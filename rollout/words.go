package rollout

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

// reasonLimit is how many characters of a reason are kept.
const reasonLimit = 200

// bounded makes a foreign text fit into a message: one line, at most reasonLimit characters.
func bounded(text string) string {
	if strings.ContainsAny(text, "\r\n\t") {
		text = strings.Join(strings.Fields(text), " ")
	}
	if utf8.RuneCountInString(text) <= reasonLimit {
		return text
	}
	return string([]rune(text)[:reasonLimit-3]) + "..."
}

// standing is "canary 1/2, soaking until 14:32 UTC".
func (p *planner) standing(s *step) string {
	return s.name + " " + p.detail(s) + s.refusedText()
}

// detail is standing without the name of the step, and without refusedText.
func (p *planner) detail(s *step) string {
	c := s.tally
	text := fmt.Sprintf("%d/%d", c.updated, c.total) + p.pendingText(s)
	if s.gated != "" && c.flying > 0 {
		text += ", " + s.gated
	}
	text += s.erringText()
	if g := s.failedGate(); g != nil {
		text += ", " + g.failText()
	}
	if c.failed > 0 {
		text += ", " + failedText(int(c.failed), c.failures)
	}
	text += excusedText(c.excused)
	if c.left > 0 && c.done == 0 && s.missing() == 0 {
		text += fmt.Sprintf(", %s left, none verified (%s)", brief.Count(int(c.left), "cluster"), s.formerNames(int(c.left)))
	}
	if names := s.formerDone(); len(names) > 0 {
		text += fmt.Sprintf(", %d verified and no longer selected (%s)", len(names), brief.Names(names))
	}
	if n := int(c.parked) - len(c.away) - len(c.held); n > 0 {
		text += fmt.Sprintf(", %d not available", n)
	}
	return text + s.barredText() + awayText(c.away) + onHoldText(c.held)
}

// barredText is ", 3 not admitted yet (c1: waits for add-on base to be verified; and 2 more)";
// "" for none.
func (s *step) barredText() string {
	c := s.tally
	if c.barred == 0 {
		return ""
	}
	first := c.bars.c.Name + ": " + c.bars.c.waitText()
	return fmt.Sprintf(", %d not admitted yet (%s)", c.barred, brief.ReasonsOf(int(c.barred), []string{first}))
}

// refusedText is ", 3 not applied (c1: reason; and 2 more)", of clusters in flight; "" for none. The text of a failed
// stage leaves it out, because that text names the failures.
func (s *step) refusedText() string {
	c := s.tally
	if c.refused == 0 {
		return ""
	}
	first := c.refuses.c.Name + ": " + c.refuses.refusal()
	return fmt.Sprintf(", %d not applied (%s)", c.refused, brief.ReasonsOf(int(c.refused), []string{first}))
}

// pendingText is ", 2 in flight", or the next condition that the step waits for; "" for none.
func (p *planner) pendingText(s *step) string {
	c := s.tally
	moving := c.flying - c.soaking - c.lost
	switch {
	case moving > 0:
		return fmt.Sprintf(", %d in flight", moving)
	case c.soaking > 0 && !c.until.IsZero():
		return ", soaking until " + clock.Text(c.until, p.now)
	case c.lost > 0:
		return ", waits for " + p.lostText(s)
	case s.abandoned():
		return ", " + s.abandonedText()
	case len(c.onward) > 0 && c.done == 0 && c.waiting == 0 && !s.proven:
		return fmt.Sprintf(", waits for %d that another stage selects now (%s)", len(c.onward), brief.Names(namesOf(c.onward)))
	case c.waiting == 0 && s.unmeasured != "" && s.failedGate() == nil:
		return ", " + s.unmeasured
	case c.waiting == 0 && c.done == 0 && c.parked > 0 && (!s.proven || s.unverified()):
		return ", waits for a cluster that " + wanted(c)
	case s.holding() != "" && (c.waiting > 0 || s.unknown || s.empty()):
		return ", " + s.holding()
	}
	return ""
}

// wanted describes the clusters that could verify the content. A parked cluster may be available and lack something
// else.
func wanted(c tally) string {
	text := "is available"
	if len(c.away) > 0 {
		text = "can get the content"
	}
	if len(c.held) > 0 {
		text += " and is not held"
	}
	return text
}

// lostText is "2 unavailable clusters (c1, c2)", of the clusters that the step waits for. If one of them is available
// but cannot get the content, the text is "2 clusters (c1: its configuration is missing; c2: unavailable)".
func (p *planner) lostText(s *step) string {
	var names, causes []string
	away := false
	for _, u := range s.members {
		if u.state == Lost && (!s.revert || p.retargetable(u)) {
			away = away || u.c.Away != ""
			if len(names) < brief.Shown {
				names, causes = append(names, u.c.Name), append(causes, u.c.Name+": "+orElse(u.c.Away, "unavailable"))
			}
		}
	}
	n := int(s.tally.lost)
	if away {
		return fmt.Sprintf("%s (%s)", brief.Count(n, "cluster"), brief.ReasonsOf(n, causes))
	}
	return fmt.Sprintf("%s (%s)", brief.Count(n, "unavailable cluster"), brief.NamesOf(n, names))
}

// namesOf are the names of clusters.
func namesOf(units []*unit) []string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.c.Name
	}
	return names
}

// awayText is ", 2 parked (c1: reason; c2: reason)"; "" for none.
func awayText(away []*unit) string {
	if len(away) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d parked (%s)", len(away), namedText(len(away), away))
}

// onHoldText is ", 2 held by annotation (c1, c2: its value "tomorrow" is neither ...)"; "" for none.
func onHoldText(held []*unit) string {
	if len(held) == 0 {
		return ""
	}
	names := make([]string, 0, brief.Shown)
	for _, u := range held[:min(brief.Shown, len(held))] {
		name := u.c.Name
		if u.c.HeldFor != "" {
			name += ": " + u.c.invalidHold()
		}
		names = append(names, name)
	}
	return fmt.Sprintf(", %d held by annotation (%s)", len(held), brief.NamesOf(len(held), names))
}

// failedText is "2 failed (c1: reason; c2: reason)". It names the first few clusters.
func failedText(n int, first []*unit) string {
	return fmt.Sprintf("%d failed (%s)", n, namedText(n, first))
}

// excusedText is ", 2 failed again, not counted (c1: reason; c2: reason)"; "" for none.
func excusedText(excused []*unit) string {
	if len(excused) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed again, not counted (%s)", len(excused), namedText(len(excused), excused))
}

// namedText is "c1: reason; c2: reason; and 4 more"; first are the first of n clusters.
func namedText(n int, first []*unit) string {
	names := make([]string, 0, brief.Shown)
	for _, u := range first[:min(brief.Shown, len(first))] {
		names = append(names, u.c.Name+": "+u.cause())
	}
	return brief.ReasonsOf(n, names)
}

// haltedText is "halted in canary: 1 failed (c1: reason), 2 in flight, 20 untouched". The verdict on a commit is
// final, so the text also counts the clusters that are undecided.
func (p *planner) haltedText(t *track, i int, c v1alpha1.Counts) string {
	s := t.steps[i]
	failures := s.tally.failures
	if t.shared && !s.mandatory {
		failures = nil
		for _, other := range t.steps {
			failures = append(failures, other.tally.failures...)
		}
	}
	verb := "halted"
	if s.all && s.tally.elsewhere == 0 && !s.abandoned() {
		verb = "failed"
	}
	why := failedText(t.failures(i), failures)
	if s.abandoned() && t.failures(i) <= s.maxFailures {
		why = s.abandonedText()
	}
	if g := s.failedGate(); g != nil && t.failures(i) <= s.maxFailures {
		why = g.failText()
	}
	text := fmt.Sprintf("%s in %s: %s", verb, s.name, why)
	if c.InFlight > 0 {
		text += fmt.Sprintf(", %d in flight", c.InFlight)
	}
	return fmt.Sprintf("%s, %d untouched", text, c.Waiting)
}
