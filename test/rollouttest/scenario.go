package rollouttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

// Event is something that happens to a fleet at a time after the start.
type Event struct {
	At   time.Duration
	What string
	Do   func(*Fleet)
}

// Scenario is a fleet and what happens to it.
type Scenario struct {
	Fleet  *Fleet
	Events []Event
	// Until is how long it is watched; it must be at rest by then.
	Until time.Duration
}

// steps is how many plans a scenario may take: many times what any needs.
const steps = 5000

// Run drives the scenario to its end and returns the transcript: what happened, what
// was done, and why each waiting cluster waits. Every plan is judged by the history
// before it, and planning again must plan nothing. With seed 0 the input comes in
// order of name, with any other it comes shuffled; the transcript is the same.
func (s Scenario) Run(seed int64) (string, error) {
	f := s.Fleet
	if seed != 0 {
		f.Shuffle = random(seed)
	}
	h, log := NewHistory(), &transcript{start: f.Now}
	h.Keep(Step{Ledger: f.Ledger, Start: true}) // it may have run before
	events := slices.Clone(s.Events)
	end := f.Now.Add(s.Until)
	for range steps {
		for len(events) > 0 && !f.Now.Before(log.start.Add(events[0].At)) {
			events[0].Do(f)
			log.event(f.Now, events[0].What)
			events = events[1:]
		}
		plan, err := f.Step(h)
		if err != nil {
			return log.String(), fmt.Errorf("%s: %w", log.clock(f.Now), err)
		}
		log.plan(f.Now, plan)
		next := earliest(plan.RecheckAt, f.NextChange())
		if removes(plan) {
			next = earliest(next, f.Now.Add(time.Second)) // the hub tells of each deletion
		}
		if len(events) > 0 {
			next = earliest(next, log.start.Add(events[0].At))
		}
		if next.IsZero() || next.After(end) {
			return log.String(), nil
		}
		f.Now = next
		f.Collect()
	}
	return log.String(), fmt.Errorf("not at rest after %d plans", steps)
}

// Step plans once, checks the plan, carries it out, and checks that planning again at once
// admits no further cluster. Step does not return an error of the planner. The plan that comes
// with such an error holds every cluster, and Step checks that.
func (f *Fleet) Step(h *History) (rollout.Plan, error) {
	in := f.Input()
	before := Snapshot(in)
	plan, refused := rollout.New(in)
	if Snapshot(in) != before {
		return plan, fmt.Errorf("the planner changed its input")
	}
	if err := h.Check(StepOf(in, plan, refused)); err != nil {
		return plan, err
	}
	if err := samePlan(in, plan); err != nil {
		return plan, err
	}
	f.Store(plan)
	h.Keep(StepOf(in, plan, refused))
	f.CarryOut(plan.Actions)
	return plan, f.idle(plan)
}

// samePlan: the order of the input does not matter.
func samePlan(in rollout.Input, plan rollout.Plan) error {
	again, _ := rollout.New(Shuffled(in, random(1)))
	if a, b := Snapshot(plan), Snapshot(again); a != b {
		return fmt.Errorf("another order of the input gives another plan: %s, %s", a, b)
	}
	return nil
}

// idle: after a plan was carried out, planning again at the same time makes no further change. Four changes are
// allowed: a removal frees a slot; a cluster whose works cannot be written fails; a cluster that is retargeted to the
// content that it runs is verified; after a success the stable revision changes.
func (f *Fleet) idle(plan rollout.Plan) error {
	again, refused := rollout.New(f.Input())
	blocked := slices.ContainsFunc(f.Input().Clusters, func(c rollout.Cluster) bool { return c.Blocked != "" || c.Refused != "" })
	arrived := slices.ContainsFunc(plan.Clusters, func(c rollout.ClusterPlan) bool {
		moves := slices.ContainsFunc(plan.Actions, func(a rollout.Action) bool { return a.Cluster == c.Name })
		return c.State == rollout.Admitted && !moves && f.Clusters[c.Name].Running == c.Revision
	})
	if refused != nil || removes(plan) || plan.Succeeded || blocked || arrived {
		return nil //nolint:nilerr // a refused plan does nothing
	}
	todo := slices.DeleteFunc(again.Actions, func(a rollout.Action) bool {
		return a.Kind == rollout.Move && !f.writable(f.Clusters[a.Cluster], a.Revision)
	})
	if again.Admitted > 0 || len(todo) > 0 {
		return fmt.Errorf("planning again acts again: %d admitted, %+v", again.Admitted, todo)
	}
	in := f.Input()
	in.Ledger = again.Ledger
	if third, _ := rollout.New(in); third.LedgerChanged {
		return fmt.Errorf("planning again changes the ledger: %s to %s", Snapshot(again.Ledger), Snapshot(third.Ledger))
	}
	return nil
}

// removes reports whether the plan removes a cluster.
func removes(p rollout.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a rollout.Action) bool { return a.Kind == rollout.Remove })
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// transcript is what a reviewer reads: behaviour, not code.
type transcript struct {
	strings.Builder
	start time.Time
	said  string
}

func (t *transcript) clock(now time.Time) string {
	d := now.Sub(t.start)
	return fmt.Sprintf("%02d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

func (t *transcript) event(now time.Time, what string) {
	fmt.Fprintf(t, "%s * %s\n", t.clock(now), what)
	t.said = ""
}

// plan notes a plan that does or says something new.
func (t *transcript) plan(now time.Time, p rollout.Plan) {
	var b strings.Builder
	for _, a := range p.Actions {
		fmt.Fprintf(&b, "         %-11s %s", strings.ToLower(string(a.Kind)), a.Cluster)
		if a.Revision != "" {
			fmt.Fprintf(&b, " -> %s", a.Revision)
		}
		fmt.Fprintf(&b, ": %s\n", a.Reason)
	}
	for _, line := range states(p) {
		fmt.Fprintf(&b, "         %s\n", line)
	}
	if p.Guard != "" {
		fmt.Fprintf(&b, "         guard       %s\n", p.Guard)
	}
	said := fmt.Sprintf("%s: %s\n%s", p.Phase, p.Message, b.String())
	if said == t.said {
		return
	}
	t.said = said
	fmt.Fprintf(t, "%s %s", t.clock(now), said)
	if p.Succeeded {
		fmt.Fprintf(t, "         the target earned success\n")
	}
}

// states groups the clusters that have the same state and the same reason. It leaves out clusters that are Done or
// unchanged, and clusters whose action the transcript shows.
func states(p rollout.Plan) []string {
	var order []string
	groups := map[string][]string{}
	for _, c := range p.Clusters {
		acted := slices.ContainsFunc(p.Actions, func(a rollout.Action) bool { return a.Cluster == c.Name })
		if c.State == rollout.Done || c.State == rollout.Unchanged || c.State == rollout.Admitted && acted {
			continue // it is where it shall be, or its action says why
		}
		key := fmt.Sprintf("%-11s %%s: %s", strings.ToLower(string(c.State)), strings.ReplaceAll(c.Reason, "%", "%%"))
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c.Name)
	}
	lines := make([]string, len(order))
	for i, key := range order {
		lines[i] = fmt.Sprintf(key, listed(groups[key]))
	}
	return lines
}

func listed(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s .. %s (%d)", names[0], names[len(names)-1], len(names))
}
