package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Reasons of a FieldError about a gate.
const (
	// InvalidGate: a gate that cannot be evaluated, or cannot pass on any fleet.
	InvalidGate = "InvalidGate"
	// DuplicateGate: two gates of a stage with the same name.
	DuplicateGate = "DuplicateGate"
)

// leastInterval is the shortest time between two evaluations of a gate.
const leastInterval = time.Second

func (f *findings) gates(field string, gates *v1alpha1.Gates) {
	if gates == nil {
		return
	}
	seen := map[string]bool{}
	for when, declared := range moments(gates) {
		list := field + ".before"
		if when == v1alpha1.GateDuring {
			list = field + ".during"
		}
		for i, g := range declared {
			at := fmt.Sprintf("%s[%d]", list, i)
			if seen[g.Name] {
				*f = append(*f, FieldError{
					Field: at + ".name", Reason: DuplicateGate, Message: fmt.Sprintf("gate %q is listed twice in this stage", g.Name),
					Hint: "rename one of the gates",
				})
			}
			seen[g.Name] = true
			f.gate(at, g)
			if when == v1alpha1.GateDuring && !g.Type.Measured() {
				f.badGate(at+".type", fmt.Sprintf("a gate of type %s cannot be evaluated during a stage", g.Type), "move it to before")
			}
			if when == v1alpha1.GateBefore && g.Type.Measured() && (g.Failures != nil || g.ErrorAfter != nil) {
				f.badGate(at, "failures and errorAfter have no effect before a stage", "remove them, or move the gate to during")
			}
		}
	}
}

// neverMoved finds gates before the first stage that measure moved clusters: before that stage, no cluster has been
// moved.
func (f *findings) neverMoved(field string, gates *v1alpha1.Gates) {
	if gates == nil {
		return
	}
	for i, g := range gates.Before {
		if p := g.Prometheus; p != nil && strings.Contains(p.Query, "$moved") {
			f.badGate(fmt.Sprintf("%s.before[%d].prometheus.query", field, i), "$moved is empty before the first stage, so that the gate waits for ever", "move it to during, or to the next stage")
		}
	}
}

func (f *findings) badGate(field, message, hint string) {
	*f = append(*f, FieldError{Field: field, Reason: InvalidGate, Message: message, Hint: hint})
}

func (f *findings) gate(field string, g v1alpha1.Gate) {
	configured := map[v1alpha1.GateType]bool{
		v1alpha1.GateApproval: g.Approval != nil, v1alpha1.GateWindow: g.Window != nil,
		v1alpha1.GatePrometheus: g.Prometheus != nil, v1alpha1.GateWebhook: g.Webhook != nil,
	}
	is, known := configured[g.Type]
	switch {
	case !known:
		f.badGate(field+".type", fmt.Sprintf("unknown type %q", g.Type), "approval, window, prometheus or webhook")
		return
	case !is:
		f.badGate(field+"."+string(g.Type), "missing", "a gate has the field that its type names")
	}
	for _, other := range []v1alpha1.GateType{v1alpha1.GateApproval, v1alpha1.GateWindow, v1alpha1.GatePrometheus, v1alpha1.GateWebhook} {
		if other != g.Type && configured[other] {
			f.badGate(field+"."+string(other), fmt.Sprintf("type is %s and %s would be ignored", g.Type, other), "set type, or remove "+string(other))
		}
	}
	if d := g.Interval; d != nil && d.Duration < leastInterval {
		f.badGate(field+".interval", d.Duration.String()+": must be at least "+leastInterval.String(), "such as 30s, or omit it for 1m")
	}
	if d := g.ErrorAfter; d != nil && d.Duration <= 0 {
		f.badGate(field+".errorAfter", d.Duration.String()+": must be positive", "such as 5m, or omit it for 10m")
	}
	if !g.Type.Measured() {
		for _, of := range []struct {
			name string
			set  bool
		}{{"interval", g.Interval != nil}, {"failures", g.Failures != nil}, {"errorAfter", g.ErrorAfter != nil}} {
			if of.set {
				f.badGate(field+"."+of.name, "a gate of type "+string(g.Type)+" has none", "remove it")
			}
		}
	}
	if g.Approval != nil {
		f.approvers(field+".approval", *g.Approval)
	}
	if g.Window != nil {
		f.window(field+".window", *g.Window)
	}
	if p := g.Prometheus; p != nil {
		if p.Max == nil && p.Min == nil && p.MaxRatio == nil {
			f.badGate(field+".prometheus", "no limit", "set max, min or maxRatio")
		}
		if p.Max != nil && p.Min != nil && *p.Max < *p.Min {
			f.badGate(field+".prometheus.max", fmt.Sprintf("%v is less than min %v, so that no result passes", *p.Max, *p.Min), "swap them")
		}
		if (p.MaxRatio == nil) != (p.Control == "") {
			f.badGate(field+".prometheus.maxRatio", "maxRatio and control must be set together", "maxRatio compares query with control")
		}
	}
}

// window checks the fields for which the schema of an AddOnRollout has CEL rules. Package gates reads the times.
func (f *findings) window(field string, w v1alpha1.WindowGate) {
	for _, list := range []struct {
		name  string
		times []v1alpha1.TimeRange
	}{{"allow", w.Allow}, {"exclude", w.Exclude}} {
		for i, t := range list.times {
			weekly := len(t.Weekdays) > 0 || t.Hours != ""
			if cron := t.Cron != ""; cron != (t.Duration != nil) || cron == weekly {
				f.badGate(fmt.Sprintf("%s.%s[%d]", field, list.name, i), "a time has cron and duration, or weekdays and hours", "such as weekdays: [Mon, Tue] and hours: 09:00-17:00")
			}
		}
	}
}

// approvers refuses a count that the listed users cannot reach. The members of groups are not known.
func (f *findings) approvers(field string, a v1alpha1.ApprovalGate) {
	if a.Approvers != nil && len(a.Approvers.Users)+len(a.Approvers.Groups) == 0 {
		f.badGate(field+".approvers", "neither users nor groups", "list some, or omit approvers to accept every user who may create AddOnApprovals")
	}
	if a.Count == nil || a.Approvers == nil || len(a.Approvers.Groups) > 0 || a.Forge != nil && len(a.Forge.Users) == 0 {
		return
	}
	users := slices.Compact(slices.Sorted(slices.Values(a.Approvers.Users)))
	if a.Forge != nil {
		users = append(users, a.Forge.Users...)
	}
	if n := int(*a.Count); n > len(users) {
		f.badGate(field+".count", fmt.Sprintf("needs %d approvals, more than the listed users (%d)", n, len(users)), "list more users, or a group")
	}
}
