package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
)

// defaultClusterLabel is PrometheusGate.ClusterLabel if that is absent.
const defaultClusterLabel = "cluster"

// The variables of the two queries.
var (
	movedVariable   = regexp.MustCompile(`\$moved\b`)
	controlVariable = regexp.MustCompile(`\$control\b`)
)

// prometheus evaluates a gate of type prometheus. It sends no query about zero clusters, because the matcher of zero
// clusters would match the series without a cluster.
func (s *server) prometheus(ctx context.Context, gate *v1alpha1.PrometheusGate, q gates.Question) (gates.Verdict, error) {
	if movedVariable.MatchString(gate.Query) && len(q.Moved) == 0 {
		return gates.Verdict{State: v1alpha1.GateWaiting, Reason: "no cluster is Soaking or Done with the content"}, nil
	}
	value, err := s.query(ctx, movedVariable.ReplaceAllLiteralString(gate.Query, matcher(gate.ClusterLabel, q.Moved)))
	if err != nil {
		return gates.Verdict{}, err
	}
	passed := gates.Verdict{State: v1alpha1.GatePassed, Reason: decimal(value)}
	if limit := gate.Max; limit != nil {
		got, most := apart(value, *limit)
		if value > *limit {
			return failed("%s, above max %s", got, most), nil
		}
		passed.Reason += ", max " + most
	}
	if limit := gate.Min; limit != nil {
		got, least := apart(value, *limit)
		if value < *limit {
			return failed("%s, below min %s", got, least), nil
		}
		passed.Reason += ", min " + least
	}
	if gate.MaxRatio == nil {
		return passed, nil
	}
	if controlVariable.MatchString(gate.Control) && len(q.Control) == 0 {
		passed.Reason += "; maxRatio is not evaluated: there is no cluster to compare with"
		return passed, nil
	}
	control, err := s.query(ctx, controlVariable.ReplaceAllLiteralString(gate.Control, matcher(gate.ClusterLabel, q.Control)))
	if err != nil {
		return gates.Verdict{}, fmt.Errorf("control: %w", err)
	}
	ratio, err := quotient(value, control)
	if err != nil {
		return gates.Verdict{}, err
	}
	times, most := apart(ratio, *gate.MaxRatio)
	if ratio > *gate.MaxRatio {
		return failed("%s, which is %s times the control's %s, above maxRatio %s", decimal(value), times, decimal(control), most), nil
	}
	passed.Reason += fmt.Sprintf("; %s times the control's %s, maxRatio %s", times, decimal(control), most)
	return passed, nil
}

func failed(format string, args ...any) gates.Verdict {
	return gates.Verdict{State: v1alpha1.GateFailed, Reason: fmt.Sprintf(format, args...)}
}

// quotient divides the results of query and control. If control is 0, query must be 0. If control is below 0, nothing
// can be compared with it.
func quotient(value, control float64) (float64, error) {
	switch {
	case control == 0 && value == 0:
		return 0, nil
	case control <= 0:
		return 0, fmt.Errorf("%s cannot be compared with the control's %s: maxRatio needs a control above 0", decimal(value), decimal(control))
	}
	return value / control, nil
}

// matcher returns a label matcher of PromQL for clusters: cluster=~"c1|c7".
func matcher(label string, clusters []string) string {
	if label == "" {
		label = defaultClusterLabel
	}
	names := make([]string, 0, len(clusters))
	for _, name := range clusters {
		names = append(names, regexp.QuoteMeta(name))
	}
	return label + "=~" + strconv.Quote(strings.Join(names, "|")) // PromQL has Go's escapes
}

// shownDigits is how many digits of a number are shown.
const shownDigits = 4

// decimal shows a number.
func decimal(n float64) string { return strconv.FormatFloat(n, 'g', shownDigits, 64) }

// apart formats two numbers with as many digits as are needed to see that they differ.
func apart(a, b float64) (string, string) {
	for digits := shownDigits; ; digits++ {
		as, bs := strconv.FormatFloat(a, 'g', digits, 64), strconv.FormatFloat(b, 'g', digits, 64)
		if as != bs || a == b || digits > 17 {
			return as, bs
		}
	}
}

// query returns the number that a query results in.
func (s *server) query(ctx context.Context, query string) (float64, error) {
	body := url.Values{"query": {query}, "timeout": {answerWithin.String()}}.Encode()
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	status, answer, err := s.post(ctx, s.address.JoinPath("api/v1/query"), []byte(body), header)
	if err != nil {
		return 0, err
	}
	value, err := readNumber(status, answer)
	if err != nil {
		return 0, fmt.Errorf("%s %w", s.address.Host, err)
	}
	return value, nil
}

// queryAnswer is the answer of Prometheus to a query.
type queryAnswer struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// sample is an element of an instant vector. A histogram has no value.
type sample struct {
	Value []json.RawMessage `json:"value"`
}

// readNumber returns the number in an answer: a scalar, or a vector of one element. An answer with
// a warning may lack a part of the result, so it counts as no answer.
func readNumber(status int, body []byte) (float64, error) {
	answer := queryAnswer{}
	err := json.Unmarshal(body, &answer)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return 0, fmt.Errorf("does not accept the credentials (%d)", status)
	case err == nil && answer.Error != "":
		return 0, fmt.Errorf("cannot answer the query (%d): %s: %s", status, answer.ErrorType, answer.Error)
	case err != nil || status != http.StatusOK || answer.Status != "success":
		return 0, fmt.Errorf("does not answer like Prometheus (%d)", status)
	case len(answer.Warnings) > 0:
		return 0, fmt.Errorf("warns: %s", strings.Join(answer.Warnings, "; "))
	}
	var pair []json.RawMessage
	switch answer.Data.ResultType {
	case "scalar":
		err = json.Unmarshal(answer.Data.Result, &pair)
	case "vector":
		var vector []sample
		err = json.Unmarshal(answer.Data.Result, &vector)
		switch {
		case err != nil:
		case len(vector) == 0:
			return 0, errors.New("has no data for the query")
		case len(vector) > 1:
			return 0, fmt.Errorf("returns %d elements: the query must return one, such as with sum(...)", len(vector))
		default:
			pair = vector[0].Value
		}
	default:
		return 0, fmt.Errorf("returns a %q: the query must return one number", answer.Data.ResultType)
	}
	var text string
	if err != nil || len(pair) != 2 || json.Unmarshal(pair[1], &text) != nil {
		return 0, errors.New("returns no number")
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, fmt.Errorf("returns %q, which is not a finite number", text)
	}
	return value, nil
}
