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

func TestFirstAndSooner_NoneIsZero(t *testing.T) {
	none, noon := time.Time{}, time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ a, b, want time.Time }{
		{none, none, none}, {none, noon, noon}, {noon, none, noon}, {noon, noon.Add(1), noon}, {noon.Add(1), noon, noon},
	} {
		if got := clock.First(c.a, c.b); !got.Equal(c.want) {
			t.Errorf("the first of %s and %s is %s", c.a, c.b, got)
		}
	}
	for _, c := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {2, 3, 2}, {3, 2, 2}} {
		if got := clock.Sooner(c.a, c.b); got != c.want {
			t.Errorf("the sooner of %d and %d is %d", c.a, c.b, got)
		}
	}
}
