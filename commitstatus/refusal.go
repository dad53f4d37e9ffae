package commitstatus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// lookAgain is the least time until a request is repeated that can only succeed after a change outside of the
	// operator: a permission of the token, a moved repository, a proxy that refused for a moment. A new token is used
	// at once.
	lookAgain = time.Minute
	// longestRetryAfter bounds the wait that a forge may ask for. GitHub's limits last an hour.
	longestRetryAfter = time.Hour
	// defaultRateLimit is the wait if the forge names no time. GitHub's documentation asks for a minute in that case.
	defaultRateLimit = time.Minute
)

// refusal returns the error for an answer other than the expected one.
func (c *restClient) refusal(request call, response *http.Response, body []byte) *DeliveryError {
	said := c.redact(message(body))
	if c.limited(response, said) {
		return &DeliveryError{
			Reason:     c.host + " limits the rate of requests",
			RetryAfter: c.retryAfter(response.Header, defaultRateLimit),
			Everyone:   true,
		}
	}
	code := response.StatusCode
	denied := denial(code, body)
	reason := c.host + " " + explain(code, denied, request)
	if said != "" {
		reason += ": " + said
	}
	out := &DeliveryError{Reason: oneLine(reason), Denied: denied}
	switch {
	case code == http.StatusNonAuthoritativeInfo:
		out.Permanent, out.RetryAfter = true, lookAgain
	case code >= 500 || code < 300 || code == http.StatusRequestTimeout || code == http.StatusConflict || code == http.StatusTooEarly:
		out.RetryAfter = c.retryAfter(response.Header, 0)
		out.Uncertain = true
	case needsConfiguration(code):
		out.Permanent, out.RetryAfter = true, lookAgain
	default:
		out.Permanent = true
	}
	return out
}

// needsConfiguration reports whether the same request may succeed after a change of the token, the address or the
// forge. Every redirect is such an answer, because a renamed repository redirects.
func needsConfiguration(code int) bool {
	return code < 400 || code == http.StatusUnauthorized || code == http.StatusForbidden ||
		code == http.StatusNotFound || code == http.StatusGone
}

// bitbucketNotPermitted is in the answer of Bitbucket Data Center to an account without the permission.
const bitbucketNotPermitted = "com.atlassian.bitbucket.AuthorisationException"

// denial returns the problem of the token according to an answer. If Azure DevOps does not know the token, it answers
// with its sign-in page and 203. Bitbucket Data Center answers 401 for an unknown token and for a missing permission.
func denial(code int, body []byte) Denial {
	switch {
	case code == http.StatusForbidden, code == http.StatusUnauthorized && bytes.Contains(body, []byte(bitbucketNotPermitted)):
		return PermissionMissing
	case code == http.StatusUnauthorized, code == http.StatusNonAuthoritativeInfo:
		return TokenRefused
	default:
		return ""
	}
}

// noForge is the likely reason for an answer that is not the answer of a forge.
const noForge = "check the address, and whether a login page is in front of the forge"

// explain describes the forge's answer.
func explain(code int, denied Denial, request call) string {
	switch {
	case denied == TokenRefused:
		return "does not accept the token (" + strconv.Itoa(code) + ")"
	case denied == PermissionMissing:
		return "does not let the token " + cmp.Or(request.doing, "write statuses") + " (" + strconv.Itoa(code) + ")"
	case code == http.StatusNotFound || code == http.StatusGone:
		return "does not know the repository or the commit, or hides it from the token (" + strconv.Itoa(code) + ")"
	case code < 300:
		return "did not answer like a forge (" + strconv.Itoa(code) + "); " + noForge
	case code == http.StatusFound || code == http.StatusSeeOther || code == http.StatusTemporaryRedirect:
		return "redirects (" + strconv.Itoa(code) + "): the repository has moved, or a login page is in front of it; check the address"
	case code < 400:
		return "says that the repository has moved (" + strconv.Itoa(code) + "), the address must be changed"
	case code >= 500:
		return "has an internal error (" + strconv.Itoa(code) + ")"
	default:
		return "refuses the " + cmp.Or(request.refused, "status") + " (" + strconv.Itoa(code) + ")"
	}
}

// limited reports whether the answer is about the rate of requests. GitHub uses 403 for a missing permission and for
// a limit. Headers show the difference; for the secondary limits, only the text does.
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

// retryAfter returns the wait that the forge asks for; at least 1 s if it asks for one. Retry-After is in seconds or
// a date. X-RateLimit-Reset, in seconds since 1970, counts only if the limit is used up.
func (c *restClient) retryAfter(header http.Header, otherwise time.Duration) time.Duration {
	wait := otherwise
	now := c.clock()
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		// The forge's times are of its own clock.
		now = date
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	seconds, err := strconv.ParseInt(value, 10, 32)
	at, errDate := http.ParseTime(value)
	reset, errReset := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
	switch {
	case err == nil || errors.Is(err, strconv.ErrRange): // an error of the range means the largest number
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

// message returns the forge's own message; "": there is none. The error page of a proxy has none, because such a page
// does not belong in a condition. Forges have the message in these fields, the most exact one first:
//
//	errors             GitHub: a text, a list of texts or of objects with a message; Bitbucket Data Center: a list of objects
//	message            all but Bitbucket Cloud: a text, or at GitLab an object with lists of texts
//	error              Bitbucket Cloud: an object with a message; GitLab: a word, which error_description explains
func message(body []byte) string {
	var answer struct {
		Errors      json.RawMessage `json:"errors"`
		Message     json.RawMessage `json:"message"`
		Description string          `json:"error_description"`
		Error       json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return ""
	}
	return cmp.Or(textIn(answer.Errors), textIn(answer.Message), answer.Description, textIn(answer.Error))
}

// textIn returns the text in one of these fields.
func textIn(raw json.RawMessage) string {
	type object struct {
		Message string `json:"message"`
	}
	var text string
	var texts []string
	var objects []object
	var one object
	var fields map[string][]string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &texts) == nil:
		return strings.Join(texts, ", ")
	case json.Unmarshal(raw, &objects) == nil && len(objects) > 0:
		return objects[0].Message
	case json.Unmarshal(raw, &one) == nil && one.Message != "":
		return one.Message
	case json.Unmarshal(raw, &fields) == nil:
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			return field + " " + strings.Join(fields[field], ", ")
		}
	}
	return ""
}
