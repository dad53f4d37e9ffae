package addonrollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// shiftLedger returns a ledger whose times all lie by later, rounded up to the second.
func shiftLedger(ledger v1alpha1.Ledger, by time.Duration) v1alpha1.Ledger {
	return mapTimes(ledger, func(t time.Time) time.Time { return nextSecond(t.Add(by)) })
}

// nextSecond rounds up, so that no soak becomes shorter.
func nextSecond(t time.Time) time.Time {
	whole := t.UTC().Truncate(time.Second)
	if whole.Before(t) {
		return whole.Add(time.Second)
	}
	return whole
}

// clampLedger returns a ledger in which no time lies after now.
func clampLedger(ledger v1alpha1.Ledger, now time.Time) v1alpha1.Ledger {
	latest := nextSecond(now)
	return mapTimes(ledger, func(t time.Time) time.Time {
		if t.After(latest) {
			return latest
		}
		return t
	})
}

// mapTimes returns a ledger with every time replaced.
func mapTimes(ledger v1alpha1.Ledger, of func(time.Time) time.Time) v1alpha1.Ledger {
	out := *ledger.DeepCopy()
	set := func(t *metav1.Time) {
		if t != nil && !t.IsZero() {
			t.Time = of(t.Time)
		}
	}
	for i := range out.Waves {
		set(&out.Waves[i].AdmittedAt)
		for j := range out.Waves[i].Verified {
			set(&out.Waves[i].Verified[j].At)
		}
	}
	if removal := out.Removal; removal != nil {
		set(&removal.Since)
		set(removal.WindowStart)
		for i := range removal.Departed {
			set(&removal.Departed[i].Since)
		}
		if removal.Lifted != nil {
			set(&removal.Lifted.At)
		}
	}
	return out
}
