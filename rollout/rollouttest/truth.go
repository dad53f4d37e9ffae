package rollouttest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/addonflow/addonflow/rollout"
)

// What a waiting cluster can be told.
var (
	waitsForStep = regexp.MustCompile(`^waits for (\S+) to complete$`)
	waitsForSlot = regexp.MustCompile(`^waits for a free slot in (\S+): (\d+) of (\d+) in flight$`)
	isHalted     = regexp.MustCompile(`^halted: (\d+) failed in (\S+), (\d+) allowed$`)
	isAbandoned  = regexp.MustCompile(`^halted: in (\S+) \d+ left before anybody was verified and soaked \(`)
)

// truthful: the reason of every waiting cluster is one that keeps it waiting now.
func (v *Invariants) truthful(plan rollout.Plan) error {
	for _, c := range plan.Clusters {
		if c.State != rollout.Waiting || v.naive.in.Spec.Removal != nil {
			continue
		}
		if !v.isTrue(c) {
			return fmt.Errorf("%s waits, and that is not why: %q", c.Name, c.Reason)
		}
	}
	return nil
}

// isTrue holds one reason against the oracle's view after the plan.
func (v *Invariants) isTrue(c rollout.ClusterPlan) bool {
	in, n := v.naive.in, v.naive
	switch {
	case in.Contested != "":
		return strings.HasPrefix(c.Reason, "held: "+strings.Join(strings.Fields(in.Contested), " "))
	case in.Suspended || in.Spec.Suspend:
		return strings.HasPrefix(c.Reason, "suspended:")
	case n.target() == "":
		return c.Reason == "there is no revision to roll out yet"
	case n.unknownGroup:
		return strings.HasPrefix(c.Reason, "held: unknown mandatory decision group")
	case in.TargetMissing != "":
		return strings.HasPrefix(c.Reason, strings.Join(strings.Fields(in.TargetMissing), " "))
	}
	return v.isTrueOfStep(c)
}

// isAbandonedFor tells whether the step of that name, s itself or one before it, was left
// by everybody who could have proved the target there.
func (v *Invariants) isAbandonedFor(s NaiveStep, name string) bool {
	n, fates := v.naive, v.forecast.Fates
	if name == s.Name {
		i := slices.IndexFunc(n.steps, func(own NaiveStep) bool { return own.Name == name })
		return i >= 0 && n.abandoned(i, fates)
	}
	return slices.ContainsFunc(s.Before, func(j int) bool { return n.steps[j].Name == name && n.abandoned(j, fates) })
}

// isTrueOfStep is isTrue where it is not everybody that waits.
func (v *Invariants) isTrueOfStep(c rollout.ClusterPlan) bool {
	n, fates := v.naive, v.forecast.Fates
	s, _ := n.stepOf(c.Name)
	if m := waitsForStep.FindStringSubmatch(c.Reason); m != nil {
		return slices.ContainsFunc(s.Before, func(j int) bool {
			return n.steps[j].Name == m[1] && !n.completed(j, fates)
		})
	}
	if m := isAbandoned.FindStringSubmatch(c.Reason); m != nil {
		return v.isAbandonedFor(s, m[1])
	}
	if m := waitsForSlot.FindStringSubmatch(c.Reason); m != nil {
		taken, _ := strconv.Atoi(m[2])
		limit, _ := strconv.Atoi(m[3])
		return m[1] == s.Name && limit == s.Limit && taken == v.flying(s) && taken >= limit
	}
	if m := isHalted.FindStringSubmatch(c.Reason); m != nil {
		failed, _ := strconv.Atoi(m[1])
		i := slices.IndexFunc(n.steps, func(s NaiveStep) bool { return s.Name == m[2] })
		return i >= 0 && n.spent(i, fates) && n.failures(i, fates) == failed && strconv.Itoa(n.steps[i].MaxFailures) == m[3]
	}
	return strings.HasPrefix(c.Reason, "held") && s.Held
}
