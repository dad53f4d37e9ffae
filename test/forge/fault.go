package forge

import (
	"net/http"
	"strconv"
	"time"
)

// FaultKind is the kind of a fault.
type FaultKind string

const (
	// None: requests are served as usual.
	None FaultKind = ""
	// InternalError answers 500 and stores nothing.
	InternalError FaultKind = "InternalError"
	// Unavailable answers 503 with Retry-After and stores nothing.
	Unavailable FaultKind = "Unavailable"
	// AcceptedThenError stores the status, and answers 500.
	AcceptedThenError FaultKind = "AcceptedThenError"
	// AcceptedThenCut stores the status, and cuts the connection without an answer.
	AcceptedThenCut FaultKind = "AcceptedThenCut"
	// TooManyRequests answers 429 with Retry-After.
	TooManyRequests FaultKind = "TooManyRequests"
	// SecondaryLimit answers 403 as GitHub's secondary limits do, with Retry-After.
	SecondaryLimit FaultKind = "SecondaryLimit"
	// PrimaryLimit answers 403 as GitHub's hourly limit does, with X-RateLimit-Reset.
	PrimaryLimit FaultKind = "PrimaryLimit"
	// Forbidden answers 403 as for a token without the right to write statuses.
	Forbidden FaultKind = "Forbidden"
	// Moved answers 301, as for a repository that was renamed.
	Moved FaultKind = "Moved"
	// Garbage answers 200 with a page that is not the API's.
	Garbage FaultKind = "Garbage"
	// Hang answers nothing until the fault is changed or the client gives up.
	Hang FaultKind = "Hang"
)

// Fault is a fault of the next requests.
type Fault struct {
	// Kind is what goes wrong.
	Kind FaultKind
	// RetryAfter is the wait that a rate limit asks for.
	RetryAfter time.Duration
	// Times is how many requests it hits; 0: every one until the next Set.
	Times int
	// PostsOnly spares the requests that only read.
	PostsOnly bool
}

// Set replaces the fault, and answers requests that hang in the old one. The zero Fault heals
// the forge.
func (f *Forge) Set(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault, f.faultLeft = fault, fault.Times
	close(f.released)
	f.released = make(chan struct{})
}

// strike returns the fault that hits the request, and uses it up.
func (f *Forge) strike(r *http.Request) (Fault, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	fault := f.fault
	if fault.Kind == None || fault.PostsOnly && r.Method != http.MethodPost {
		return Fault{}, nil
	}
	if fault.Times > 0 {
		if f.faultLeft == 0 {
			return Fault{}, nil
		}
		f.faultLeft--
	}
	return fault, f.released
}

// refuse answers as the fault says. It returns false if the request must be served first, or
// normally.
func (f *Forge) refuse(w http.ResponseWriter, r *http.Request, fault Fault, released <-chan struct{}) bool {
	header := w.Header()
	switch fault.Kind {
	case None, AcceptedThenError, AcceptedThenCut:
		return false
	case InternalError:
		reply(w, http.StatusInternalServerError, problem{Message: "internal server error"})
	case Unavailable:
		header.Set("Retry-After", seconds(fault.RetryAfter))
		reply(w, http.StatusServiceUnavailable, problem{Message: "maintenance"})
	case TooManyRequests:
		header.Set("Retry-After", seconds(fault.RetryAfter))
		reply(w, http.StatusTooManyRequests, problem{Message: "too many requests"})
	case SecondaryLimit:
		header.Set("Retry-After", seconds(fault.RetryAfter))
		reply(w, http.StatusForbidden, problem{Message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."})
	case PrimaryLimit:
		header.Set("X-RateLimit-Remaining", "0")
		header.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(fault.RetryAfter+time.Second-1).Unix(), 10))
		reply(w, http.StatusForbidden, problem{Message: "API rate limit exceeded for user ID 1."})
	case Forbidden:
		reply(w, http.StatusForbidden, problem{Message: "Resource not accessible by personal access token"})
	case Moved:
		header.Set("Location", "/moved"+r.URL.Path)
		reply(w, http.StatusMovedPermanently, problem{Message: "Moved Permanently"})
	case Garbage:
		_, _ = w.Write([]byte("<html>Please sign in</html>"))
	case Hang:
		select {
		case <-released:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
	return true
}

// spoil answers wrongly to a post that was stored. It returns false if the answer is
// to be the ordinary one.
func spoil(w http.ResponseWriter, fault Fault) bool {
	switch fault.Kind {
	case AcceptedThenError:
		reply(w, http.StatusInternalServerError, problem{Message: "internal server error"})
	case AcceptedThenCut:
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

// seconds returns whole seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
