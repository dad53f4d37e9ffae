package gitserver

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxRequestBody bounds the memory for one request. A fetch takes a few hundred bytes, and
// negotiation a few thousand.
const maxRequestBody = 16 << 20

// Requests counts what clients asked for since Start or ResetRequests.
type Requests struct {
	// LsRemote counts reference advertisements. Every fetch begins with one;
	// a bare ls-remote is one without an UploadPack to follow.
	LsRemote int
	// UploadPack counts requests for a pack, negotiation rounds included.
	UploadPack int
	// Other counts everything else.
	Other int
	// Rejected counts those of the above that were answered 401.
	Rejected int
}

// Requests returns the counts so far.
func (s *Server) Requests() Requests {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	return s.tally.seen
}

// ResetRequests starts counting from zero.
func (s *Server) ResetRequests() {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	s.tally.seen = Requests{}
}

type tally struct {
	mu   sync.Mutex
	seen Requests
}

// count classifies each request before it is answered. It reads bodies whole: CGI needs a
// length, which a chunked request does not have.
func (t *tally) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBody))
		if err != nil {
			http.Error(w, "cannot read the request", http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		t.classify(r, body)
		next.ServeHTTP(&statusWriter{ResponseWriter: w, tally: t}, r)
	})
}

func (t *tally) classify(r *http.Request, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		t.seen.LsRemote++
	case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		// Protocol 2 asks for references by POST; the advertisement before it
		// was counted already.
		if !bytes.Contains(body, []byte("command=ls-refs")) {
			t.seen.UploadPack++
		}
	default:
		t.seen.Other++
	}
}

// statusWriter notices a 401.
type statusWriter struct {
	http.ResponseWriter
	tally *tally
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		w.tally.mu.Lock()
		w.tally.seen.Rejected++
		w.tally.mu.Unlock()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController find Flush.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
