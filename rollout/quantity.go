package rollout

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// quantity is a number of clusters or a percentage.
type quantity struct {
	n       int
	percent bool
}

// allOfThem is every cluster, however many there are.
var allOfThem = quantity{n: 100, percent: true}

// of resolves the quantity against total clusters, rounded up and at most total:
// 25% of 10 is 3, 1% of 10 is 1, 12 of 10 is 10.
func (q quantity) of(total int) int {
	n := q.n
	if q.percent {
		n = (q.n*total + 99) / 100
	}
	return min(n, total)
}

var (
	wholeNumber  = regexp.MustCompile(`^[0-9]{1,9}$`)
	wholePercent = regexp.MustCompile(`^(100|[0-9]{1,2})%$`)

	errQuantity = errors.New("must be a whole number of clusters or a percentage from 0% to 100%")
	errNegative = errors.New("must not be negative")
	errDeadline = errors.New("must be a positive duration, or None")
	errTooLong  = errors.New("is longer than a duration can be; the longest is 2562047h, which is 292 years")

	// durationText matches the form of a duration; its value may be out of range.
	durationText = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)
)

// parseQuantity reads a number or a percentage. The string "10" is 10: OCM's schema
// accepts it, but OCM's rollout library fails on it.
func parseQuantity(v intstr.IntOrString) (quantity, error) {
	if v.Type == intstr.Int {
		if v.IntVal < 0 {
			return quantity{}, errNegative
		}
		return quantity{n: int(v.IntVal)}, nil
	}
	text := v.StrVal
	switch {
	case wholePercent.MatchString(text):
		n, err := strconv.Atoi(strings.TrimSuffix(text, "%"))
		return quantity{n: n, percent: true}, err
	case wholeNumber.MatchString(text):
		n, err := strconv.Atoi(text)
		return quantity{n: n}, err
	case strings.HasPrefix(text, "-"):
		return quantity{}, errNegative
	default:
		return quantity{}, errQuantity
	}
}

// quantityOf is parseQuantity for values that Validate has passed.
func quantityOf(v intstr.IntOrString) quantity {
	q, err := parseQuantity(v)
	if err != nil {
		return quantity{}
	}
	return q
}

// declared reports whether a non-pointer field of OCM has a value. A literal 0 looks
// like an absent value here; ValidateDeclared refuses it.
func declared(v intstr.IntOrString) bool {
	return v != intstr.IntOrString{}
}

// parseDeadline reads a progressDeadline: None and "" are 0, which is no deadline.
// Any positive Go duration is valid, also 1h30m. OCM's own pattern is anchored wrongly
// and accepts 5mX and xNone.
func parseDeadline(text string) (time.Duration, error) {
	if text == "" || text == "None" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil && durationText.MatchString(text) {
		return 0, errTooLong
	}
	if err != nil || d <= 0 || strings.HasPrefix(text, "+") {
		return 0, errDeadline
	}
	return d, nil
}

// ocmDeadline is the pattern of OCM's schemas for a progressDeadline.
var ocmDeadline = regexp.MustCompile(`^(([0-9])+[h|m|s])|None$`)

// DeadlineForOCM returns a validated progressDeadline in a form that OCM's schemas
// accept: 1.5h becomes 1h30m0s.
func DeadlineForOCM(text string) string {
	d := deadlineOf(text)
	if d == 0 || ocmDeadline.MatchString(text) {
		return text
	}
	if whole := d.String(); ocmDeadline.MatchString(whole) {
		return whole
	}
	if ms := d.Milliseconds(); ms > 0 {
		return strconv.FormatInt(ms, 10) + "ms"
	}
	return "1ms"
}

// deadlineOf is parseDeadline for values that Validate has passed.
func deadlineOf(text string) time.Duration {
	d, err := parseDeadline(text)
	if err != nil {
		return 0
	}
	return d
}
