package rollout

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// ValidateDeclared checks a rolloutStrategy, strategy or stage as decoded from its file,
// before it becomes a typed value. At that point a literal 0 differs from an absent field,
// and a value of the wrong type can be reported. Field is the path of the object; the paths
// of errors are below it.
//
// It checks only values that are lost or refused when they become typed values. Validate checks the
// rest. A caller uses both; if both refuse a value, both report the same Field.
func ValidateDeclared(field string, object map[string]any) []FieldError {
	var f findings
	f.declared(field, object, isStage(object))
	return f
}

// isStage distinguishes a stage from a strategy: in a stage, a concurrency of 0 holds it.
func isStage(object map[string]any) zeroRule {
	if _, ok := object["placement"]; ok {
		return zeroHolds
	}
	return zeroRefused
}

// zeroRule says what a concurrency of 0 means.
type zeroRule int

const (
	zeroRefused zeroRule = iota
	zeroHolds
)

func (f *findings) declared(field string, object map[string]any, zero zeroRule) {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value, path := object[name], field+"."+name
		if value == nil {
			continue // absent, as in the API server
		}
		switch name {
		case "maxConcurrency", "maxConcurrentlyUpdating":
			f.declaredQuantity(path, value, zero)
		case "maxFailures":
			f.declaredQuantity(path, value, zeroHolds)
		case "minSuccessTime":
			f.declaredSoak(path, value)
		case "progressDeadline":
			f.declaredDeadline(path, value)
		case "type":
			f.declaredType(path, value)
		case "all", "progressive", "progressivePerGroup", "rollingUpdateWithPlacement":
			if block, ok := value.(map[string]any); ok {
				f.declared(path, block, zero)
			}
		}
	}
}

// declaredType refuses an empty text: in a typed value it looks like an absent field.
func (f *findings) declaredType(field string, value any) {
	if value == "" {
		f.add(field, `"": must be a strategy`, "one of All, Progressive and ProgressivePerGroup, or leave it out for All")
	}
}

// declaredDeadline refuses an empty text: in a typed value it looks like an absent field.
func (f *findings) declaredDeadline(field string, value any) {
	text, isString := value.(string)
	switch {
	case !isString:
		f.add(field, asWritten(value)+": "+errDeadline.Error(), hintDeadline)
	case text == "":
		f.add(field, `"": `+errDeadline.Error(), hintDeadline)
	default:
		f.deadline(field, text)
	}
}

func (f *findings) declaredQuantity(field string, value any, zero zeroRule) {
	hint := hintConcurrency
	if zero == zeroHolds {
		hint = hintQuantity
	}
	v, shown, ok := quantityFrom(value)
	if !ok {
		f.add(field, shown+": "+errQuantity.Error(), hint)
		return
	}
	q, err := parseQuantity(v)
	switch {
	case err != nil:
		f.add(field, shown+": "+err.Error(), hint)
	case q.n == 0 && zero == zeroRefused:
		f.add(field, shown+": must be at least 1", hint)
	}
}

// quantityFrom reads a decoded number or string. shown is the value for an error text.
func quantityFrom(value any) (v intstr.IntOrString, shown string, ok bool) {
	switch n := value.(type) {
	case string:
		return intstr.FromString(n), n, true
	case int:
		return whole(int64(n))
	case int64:
		return whole(n)
	case float64:
		if n != math.Trunc(n) {
			return v, strconv.FormatFloat(n, 'g', -1, 64), false
		}
		return whole(int64(n))
	case json.Number:
		i, err := n.Int64()
		if err != nil {
			return v, n.String(), false
		}
		return whole(i)
	default:
		return v, asWritten(value), false
	}
}

// asWritten is a value of the wrong type as JSON, cut to fit in a message.
func asWritten(value any) string {
	const most = 40
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("a %T", value)
	}
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "..."
	}
	return string(text)
}

// whole refuses a number beyond 32 bits instead of truncating it.
func whole(n int64) (intstr.IntOrString, string, bool) {
	shown := strconv.FormatInt(n, 10)
	if n < math.MinInt32 || n > math.MaxInt32 {
		return intstr.IntOrString{}, shown, false
	}
	return intstr.FromInt32(int32(n)), shown, true
}

// soakText is the pattern of minSuccessTime in an AddOnRollout's schema, narrower
// than a Go duration.
var soakText = regexp.MustCompile(`^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`)

// ofOCM reports whether a field belongs to a ClusterManagementAddOn. Its schema has no
// pattern for a soak.
func ofOCM(field string) bool {
	return strings.Contains(field, "installStrategy")
}

func (f *findings) declaredSoak(field string, value any) {
	problem, hint := "", "such as 10m or 1h30m; 5d is 120h"
	text, isString := value.(string)
	switch d, err := time.ParseDuration(text); {
	case !isString:
		problem = asWritten(value) + ": must be a duration"
	case err != nil && durationText.MatchString(text):
		problem, hint = fmt.Sprintf("%q: %s", text, errTooLong), ""
	case err != nil:
		problem = fmt.Sprintf("%q: must be a duration", text)
	case d < 0:
		problem = fmt.Sprintf("%q: %s", text, errNegative)
	case !soakText.MatchString(text) && !ofOCM(field):
		problem = fmt.Sprintf("%q: must be a duration in h, m, s or ms, with a digit before the point", text)
	}
	if problem != "" {
		*f = append(*f, FieldError{Field: field, Reason: InvalidDuration, Message: problem, Hint: hint})
	}
}
