package commitstatus

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/addonflow/addonflow/api/brief"
)

// State is the state of a commit status. The values are those of GitHub's and
// Gitea's APIs.
type State string

const (
	// Pending: the outcome is not known yet.
	Pending State = "pending"
	// Success: everything in the context has happened.
	Success State = "success"
	// Failure: the commit was judged and found bad.
	Failure State = "failure"
	// Error: there is no verdict, because the commit could not be judged, or was superseded.
	Error State = "error"
)

// Terminal reports whether the state is final within the same attempt.
func (s State) Terminal() bool {
	return s == Success || s == Failure || s == Error
}

// Known reports whether the state is one of the four.
func (s State) Known() bool {
	return s == Pending || s.Terminal()
}

// Status is one status of one commit, as a forge shows it.
type Status struct {
	// SHA is the full object name of the commit: 40 or 64 lower-case hex digits.
	SHA string
	// Context names the subject of the status. The newest status of a context counts. See ContextName.
	Context string
	// State of the subject.
	State State
	// Description is a short text of at most DescriptionLimit characters. See Shorten.
	Description string
	// TargetURL is the link of the status: http or https, or empty.
	TargetURL string
}

// TargetURLLimit is the limit of GitLab, which is the strictest.
const TargetURLLimit = 255

// Validate returns why no forge can accept the status. A status passes if its texts come from Shorten and
// ContextName.
func (s Status) Validate() error {
	switch {
	case !isSHA(s.SHA):
		return errors.New("the commit is not a full lower-case object name")
	case s.Context == "":
		return errors.New("the context is empty")
	case s.Context != brief.OneLine(s.Context):
		return errors.New("the context has unprintable characters")
	case utf8.RuneCountInString(s.Context) > ContextLimit:
		return fmt.Errorf("the context is longer than %d characters", ContextLimit)
	case !s.State.Known():
		return fmt.Errorf("the state %q is unknown", s.State)
	case s.Description != brief.OneLine(s.Description):
		return errors.New("the description has unprintable characters")
	case utf8.RuneCountInString(s.Description) > DescriptionLimit:
		return fmt.Errorf("the description is longer than %d characters", DescriptionLimit)
	}
	return validateTargetURL(s.TargetURL)
}

// validateTargetURL accepts only links that are safe in a browser. A link with another scheme (javascript:) would run
// in the forge's page. The URL is not part of the error, because it may contain credentials.
func validateTargetURL(raw string) error {
	if raw == "" {
		return nil
	}
	if len(raw) > TargetURLLimit {
		return fmt.Errorf("the target URL is longer than %d bytes", TargetURLLimit)
	}
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("the target URL cannot be parsed")
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return errors.New("the target URL is neither http nor https")
	case parsed.Host == "" || parsed.User != nil:
		return errors.New("the target URL needs a host and no user information")
	}
	return nil
}

// isSHA reports whether s is a full SHA-1 or SHA-256 object name.
func isSHA(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
