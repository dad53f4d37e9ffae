package load

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/addonflow/addonflow/render/flaw"
)

// The fields of a pace whose values rollout.Validate judges, wherever they stand.
const (
	maxConcurrencyField          = "maxConcurrency"
	maxConcurrentlyUpdatingField = "maxConcurrentlyUpdating"
	maxFailuresField             = "maxFailures"
	minSuccessTimeField          = "minSuccessTime"
	progressDeadlineField        = "progressDeadline"
)

// leftToRollout reports whether a flaw found by the CRD's schema is about a pace.
// The schema would refuse 101% with a regular expression and accept 5mX; so its
// verdict is dropped, paceFlaws makes sure that the value has a type that can be
// decoded, and rollout.Validate says what is wrong in words.
func leftToRollout(f flaw.Flaw, kind field.ErrorType) bool {
	if !strings.Contains(string(f.Field), ".rolloutStrategy") {
		return false
	}
	switch f.Field.Last() {
	case maxConcurrencyField, maxFailuresField, minSuccessTimeField, progressDeadlineField:
		return true
	case "type":
		return kind == field.ErrorTypeNotSupported
	default:
		return false
	}
}

// paceFlaws walks a strategy, a list of stages or anything that holds them, and
// returns what cannot be decoded at all: numbers that are no whole numbers,
// durations that are no durations. Every value without a flaw survives decoding.
func paceFlaws(at flaw.Path, value any) []flaw.Flaw {
	var flaws []flaw.Flaw
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			flaws = append(flaws, paceFieldFlaws(at.Child(key), key, value[key])...)
		}
	case []any:
		for i, item := range value {
			flaws = append(flaws, paceFlaws(at.Index(i), item)...)
		}
	}
	return flaws
}

func paceFieldFlaws(at flaw.Path, key string, value any) []flaw.Flaw {
	switch {
	case value == nil:
		return nil
	case key == maxConcurrencyField || key == maxFailuresField || key == maxConcurrentlyUpdatingField:
		return countFlaws(at, value)
	case key == minSuccessTimeField:
		return durationFlaws(at, value)
	case key == progressDeadlineField:
		if _, isString := value.(string); !isString {
			return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidRolloutStrategy, Message: flaw.Shown(value) + " is no duration", Hint: "write a string such as 10m, or None"}}
		}
		return nil
	default:
		return paceFlaws(at, value)
	}
}

// countFlaws accepts what an IntOrString can hold: a string, or a whole 32-bit number.
func countFlaws(at flaw.Path, value any) []flaw.Flaw {
	number, isNumber := 0.0, true
	switch value := value.(type) {
	case string:
		return nil
	case int64:
		number = float64(value)
	case float64:
		number = value
	default:
		isNumber = false
	}
	if isNumber && number == math.Trunc(number) && math.Abs(number) <= math.MaxInt32 {
		return nil
	}
	return []flaw.Flaw{{
		Field: at, Reason: flaw.ReasonInvalidRolloutStrategy,
		Message: flaw.Shown(value) + " is neither a number of clusters nor a percentage",
		Hint:    "write a whole number such as 3, or a percentage such as 10%",
	}}
}

// durationText is a duration as far as its shape tells.
var durationText = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)

func durationFlaws(at flaw.Path, value any) []flaw.Flaw {
	text, isString := value.(string)
	if isString {
		if _, err := time.ParseDuration(text); err == nil {
			return nil
		}
		if durationText.MatchString(text) {
			return []flaw.Flaw{{
				Field: at, Reason: flaw.ReasonInvalidDuration, Message: flaw.Shown(text) + " is longer than a duration can be",
				Hint: "the longest is 2562047h, which is 292 years",
			}}
		}
	}
	return []flaw.Flaw{{
		Field: at, Reason: flaw.ReasonInvalidDuration,
		Message: flaw.Shown(value) + " is no duration",
		Hint:    "write a string with units, such as 90s, 10m or 1h30m",
	}}
}
