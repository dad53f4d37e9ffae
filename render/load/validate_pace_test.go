package load

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/strict"
)

// TestPaceSurvivesDecoding: everything that paceFlaws accepts can be decoded, so that a bad
// pace is always explained and never ends in a decoder's error.
func TestPaceSurvivesDecoding(t *testing.T) {
	value := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Float64(), func(f float64) any { return f }),
		rapid.Map(rapid.SampledFrom([]string{"10%", "x", "", "5m", "1h30m", "-3s", "5", "0"}), func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any](map[string]any{}), rapid.Just[any]([]any{}), rapid.Just[any](nil),
	)
	rapid.Check(t, func(t *rapid.T) {
		progressive := map[string]any{}
		for _, name := range []string{maxConcurrencyField, maxFailuresField, minSuccessTimeField, progressDeadlineField} {
			progressive[name] = value.Draw(t, name)
		}
		strategy := map[string]any{"progressive": progressive}
		dropNulls(strategy)
		if len(paceFlaws("strategy", strategy)) > 0 {
			return
		}
		var spec v1alpha1.RolloutStrategy
		if err := strict.Convert(strategy, &spec); err != nil {
			t.Fatalf("no flaw is found in %v, but: %v", strategy, err)
		}
	})
}
