package pageserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// streamFor is the longest duration of a stream. A browser then connects again, and the viewer is checked again.
	streamFor = 10 * time.Minute
	// writeWithin is how long one event may take to be sent.
	writeWithin = 10 * time.Second
	// aliveEvery is the time between two comments in a stream. Without them, proxies would close a stream without
	// events.
	aliveEvery = 20 * time.Second
)

// streams counts the open streams of events, by viewer.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// enter takes one of openStreams places, if one is free. A place of a viewer counts twice for the next place of that
// viewer, so that no viewer takes all of them.
func (s *streams) enter(viewer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all+s.of[viewer] >= openStreams {
		return false
	}
	s.all++
	s.of[viewer]++
	return true
}

// leave gives a place back.
func (s *streams) leave(viewer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[viewer]--; s.of[viewer] == 0 {
		delete(s.of, viewer)
	}
}

// events sends the version of a page when it changes, as server-sent events. The right of the viewer to see the page
// is checked each time.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		return // HEAD: a stream has no end
	}
	viewer, err := s.Door.Enter(r)
	if err != nil {
		http.Error(w, "log in first", http.StatusUnauthorized)
		return
	}
	if !s.open.enter(viewer.Name) {
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer s.open.leave(viewer.Name)
	ctx, cancel := context.WithTimeout(r.Context(), streamFor)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control, tick := http.NewResponseController(w), time.NewTicker(s.Poll)
	defer tick.Stop()
	_ = control.SetReadDeadline(time.Time{}) // the body was already read
	last, sent := "", time.Time{}
	for {
		version, err := s.version(&request{Request: r.WithContext(ctx), viewer: viewer}, r.PathValue("path")) //nolint:contextcheck // the request has it
		text := ""
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && refusalOf(err).code == http.StatusServiceUnavailable:
			// The hub does not answer: the page stays unchanged.
		case err != nil:
			version = "none"
			fallthrough
		default:
			if version != last {
				last = version
				text = fmt.Sprintf("event: version\ndata: %x\n\n", sha256.Sum256([]byte(version)))
			}
		}
		if text == "" && time.Since(sent) >= aliveEvery {
			text = ": nothing new\n\n"
		}
		if text != "" {
			if write(w, control, text) != nil {
				return
			}
			sent = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := s.Door.Enter(r); err != nil {
			return // the token is no longer valid
		}
	}
}

// write sends an event. The deadline is removed afterwards: with HTTP/2, a deadline that passes ends the stream
// although nothing is being written.
func write(w http.ResponseWriter, control *http.ResponseController, text string) error {
	if err := control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil { //nolint:gosec // an event stream of digests
		return err
	}
	return errors.Join(control.Flush(), control.SetWriteDeadline(time.Time{}))
}
