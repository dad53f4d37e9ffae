package demo

import (
	"fmt"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// waves is the order in which a fleet must move: the canaries, their soak, and then
// the others, a few at once.
type waves struct {
	digest   string
	canaries []string
	others   int
	limit    int
	soak     time.Duration
}

// waves of the stages that examples/hello declares: the canaries, then the other clusters at
// 25%, rounded up.
func (s *show) waves(digest string) waves {
	others := len(s.clusters) - len(s.canaries)
	return waves{digest: digest, canaries: s.canaries, others: others, limit: (others + 3) / 4, soak: s.soak()}
}

// finished reports whether every cluster was seen verified at the target, and the rollout
// succeeded.
func (w waves) finished(r Recording) bool {
	verified := 0
	for _, c := range r.Latest() {
		if c.Revision == w.digest && c.Verified {
			verified++
		}
	}
	succeeded := slices.ContainsFunc(r.Statuses, func(s v1alpha1.AddOnRolloutStatus) bool {
		return s.Target != nil && s.Target.Digest == w.digest && s.Phase == v1alpha1.PhaseSucceeded
	})
	return succeeded && verified == w.others+len(w.canaries)
}

// check returns the first thing that was out of order.
func (w waves) check(r Recording) error {
	inFlight, done := map[string]bool{}, map[string]bool{}
	for _, c := range r.Works {
		if c.Revision != w.digest {
			continue
		}
		canary := slices.Contains(w.canaries, c.Cluster)
		switch {
		case c.Verified:
			delete(inFlight, c.Cluster)
			done[c.Cluster] = true
			continue
		case done[c.Cluster] || inFlight[c.Cluster]:
			continue
		}
		inFlight[c.Cluster] = true
		if missing := absent(w.canaries, done); !canary && missing != "" {
			return fmt.Errorf("cluster %s moved before canary %s was verified", c.Cluster, missing)
		}
		if !canary && len(inFlight) > w.limit {
			return fmt.Errorf("%d clusters moved at once when %s did, more than %d", len(inFlight), c.Cluster, w.limit)
		}
	}
	return w.checkSoak(r.Statuses)
}

// absent is the first name that is not done.
func absent(names []string, done map[string]bool) string {
	for _, name := range names {
		if !done[name] {
			return name
		}
	}
	return ""
}

// checkSoak compares the times in the ledger, which have a precision of a second: when the
// last canary began to soak, and the first admission of the others.
func (w waves) checkSoak(statuses []v1alpha1.AddOnRolloutStatus) error {
	var verified, admitted time.Time
	for _, status := range statuses {
		for _, group := range status.Ledger.Records {
			if group.Revision != w.digest {
				continue
			}
			for _, t := range group.Times {
				if group.Stage != firstStage && (admitted.IsZero() || t.Admitted.Time.Before(admitted)) {
					admitted = t.Admitted.Time
				}
				if group.Stage == firstStage && group.State == v1alpha1.ClusterSoaking && t.Since.After(verified) {
					verified = t.Since.Time
				}
			}
		}
	}
	switch {
	case verified.IsZero() || admitted.IsZero():
		return fmt.Errorf("the ledger never named both stages (canary verified %v, others admitted %v)", verified, admitted)
	case admitted.Sub(verified) < w.soak-time.Second:
		return fmt.Errorf("the others were admitted %s after the last canary was verified, before its soak of %s", admitted.Sub(verified), w.soak)
	}
	return nil
}
