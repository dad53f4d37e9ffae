package load

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/addonflow/addonflow/render/flaw"
)

// The fields of a pace whose values rollout.Validate checks, in any kind.
const (
	maxConcurrencyField          = "maxConcurrency"
	maxConcurrentlyUpdatingField = "maxConcurrentlyUpdating"
	maxFailuresField             = "maxFailures"
	minSuccessTimeField          = "minSuccessTime"
	progressDeadlineField        = "progressDeadline"
)

// leftToRollout reports whether a flaw of the CRD's schema is about a pace. The schema would refuse 101% by a regular
// expression and accept 5mX, so its flaw is dropped. Instead, paceFlaws makes sure that the value can be decoded, and
// package rollout explains the error: ValidateDeclared of values that cannot be decoded, Validate of the others.
func leftToRollout(f flaw.Flaw, kind field.ErrorType) bool {
	if !strings.Contains(string(f.Field), ".rolloutStrategy") && !f.Field.Under("spec.strategy") && !f.Field.Under("spec.stages") {
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

// paceFlaws checks a strategy, a list of stages or an object that contains them. It returns the values that cannot be
// decoded: counts that are not whole numbers, and invalid durations. Every value without a flaw can be decoded.
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
	decodes, reason := true, flaw.ReasonInvalidRolloutStrategy
	switch {
	case value == nil:
	case key == maxConcurrencyField || key == maxFailuresField || key == maxConcurrentlyUpdatingField:
		decodes = decodesAsCount(value)
	case key == minSuccessTimeField || slices.Contains(gateDurations(), key):
		decodes, reason = decodesAsDuration(value), flaw.ReasonInvalidDuration
	case key == progressDeadlineField:
		_, decodes = value.(string)
	default:
		return paceFlaws(at, value)
	}
	if decodes {
		return nil
	}
	return []flaw.Flaw{{Field: at, Reason: reason, Message: flaw.Shown(value) + " cannot be read"}}
}

func gateDurations() []string { return []string{"interval", "errorAfter", "duration"} }

// decodesAsCount accepts the values of an IntOrString: a string, or a whole 32-bit number.
func decodesAsCount(value any) bool {
	switch value := value.(type) {
	case string:
		return true
	case int64:
		return math.Abs(float64(value)) <= math.MaxInt32
	case float64:
		return value == math.Trunc(value) && math.Abs(value) <= math.MaxInt32
	default:
		return false
	}
}

// decodesAsDuration accepts the values of a metav1.Duration.
func decodesAsDuration(value any) bool {
	text, isString := value.(string)
	_, err := time.ParseDuration(text)
	return isString && err == nil
}
