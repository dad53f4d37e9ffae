package clock_test

import (
	"testing"
	"time"

	"github.com/addonflow/addonflow/rollout/clock"
)

func TestText(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"12:00 UTC": noon, "12:01 UTC": noon.Add(time.Millisecond), "2026-03-03 00:00 UTC": noon.Add(12*time.Hour - time.Second),
		"14:00 UTC": noon.Add(2 * time.Hour).In(time.FixedZone("CET", 3600)),
	} {
		if got := clock.Text(at, noon); got != want {
			t.Errorf("%s is %q, want %q", at, got, want)
		}
	}
}
