package commitstatus

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// lookAgain is when a request is repeated that fails until something outside changes: a new
	// token, a moved repository. It is a safety net under Retry.
	lookAgain = time.Hour
	// longestRetryAfter bounds the wait that a forge may ask for. GitHub's limits last an hour.
	longestRetryAfter = time.Hour
	// defaultRateLimit is the wait for a limit without a time; GitHub asks for a minute in that
	// case.
	defaultRateLimit = time.Minute
)

// refusal returns the error for an answer other than the expected one.
func (c *restClient) refusal(response *http.Response, body []byte) *DeliveryError {
	said := c.redact(message(body))
	if c.limited(response, said) {
		return &DeliveryError{
			Reason:     c.host + " limits the rate of requests",
			RetryAfter: c.retryAfter(response.Header, defaultRateLimit),
			Everyone:   true,
		}
	}
	code := response.StatusCode
	reason := c.host + " " + explain(code)
	if said != "" {
		reason += ": " + said
	}
	out := &DeliveryError{Reason: oneLine(reason)}
	switch {
	case code >= 500 || code < 300 || code == http.StatusRequestTimeout || code == http.StatusConflict || code == http.StatusTooEarly:
		out.RetryAfter = c.retryAfter(response.Header, 0)
		out.Uncertain = true
	case needsSomebody(code):
		out.Permanent, out.RetryAfter = true, lookAgain
	default:
		out.Permanent = true
	}
	return out
}

// needsSomebody reports whether the same request may succeed after a change of the token, the
// address or the forge. Any redirect is one of those: a renamed repository answers so.
func needsSomebody(code int) bool {
	return code < 400 || code == http.StatusUnauthorized || code == http.StatusForbidden ||
		code == http.StatusNotFound || code == http.StatusGone
}

// explain describes the forge's answer.
func explain(code int) string {
	switch {
	case code == http.StatusUnauthorized:
		return "does not accept the token (401)"
	case code == http.StatusForbidden:
		return "does not let the token write statuses (403)"
	case code == http.StatusNotFound || code == http.StatusGone:
		return "does not know the repository or the commit, or hides it from the token (" + strconv.Itoa(code) + ")"
	case code < 300:
		return "did not answer as a forge does (" + strconv.Itoa(code) + ")"
	case code < 400:
		return "says that the repository has moved (" + strconv.Itoa(code) + "), the address must be changed"
	case code >= 500:
		return "has an internal error (" + strconv.Itoa(code) + ")"
	default:
		return "refuses the status (" + strconv.Itoa(code) + ")"
	}
}

// limited reports whether the answer is about the rate of requests. GitHub uses 403 for that
// too, and distinguishes it from a missing right by headers or, for the secondary limits, by
// the text alone.
func (c *restClient) limited(response *http.Response, said string) bool {
	switch response.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		said = strings.ToLower(said)
		return response.Header.Get("Retry-After") != "" || response.Header.Get("X-RateLimit-Remaining") == "0" ||
			strings.Contains(said, "rate limit") || strings.Contains(said, "abuse")
	default:
		return false
	}
}

// retryAfter returns how long the forge asks to be left alone, at least 1 s if it asks at all.
// Retry-After is in seconds or a date; X-RateLimit-Reset, in seconds since 1970, counts only if
// the limit is used up.
func (c *restClient) retryAfter(header http.Header, otherwise time.Duration) time.Duration {
	wait := otherwise
	now := c.clock()
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		// The forge's times are relative to its own clock.
		now = date
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	seconds, err := strconv.ParseInt(value, 10, 32)
	at, errDate := http.ParseTime(value)
	reset, errReset := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	switch {
	case err == nil:
		wait = time.Duration(seconds) * time.Second
	case errDate == nil:
		wait = at.Sub(now)
	case errReset == nil && header.Get("X-RateLimit-Remaining") == "0":
		wait = time.Unix(reset, 0).Sub(now)
	default:
		return wait
	}
	return min(max(wait, time.Second), longestRetryAfter)
}

// message returns the forge's own message. GitHub puts the important part into errors, which is
// a string, a list of strings or a list of objects.
func message(body []byte) string {
	var answer struct {
		Message string          `json:"message"`
		Errors  json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		// An error page of a proxy does not belong in a condition.
		return ""
	}
	var text string
	var texts []string
	var objects []struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(answer.Errors, &text) == nil && text != "":
		return text
	case json.Unmarshal(answer.Errors, &texts) == nil && len(texts) > 0:
		return strings.Join(texts, ", ")
	case json.Unmarshal(answer.Errors, &objects) == nil && len(objects) > 0 && objects[0].Message != "":
		return objects[0].Message
	}
	return answer.Message
}
