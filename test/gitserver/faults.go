package gitserver

import (
	"io"
	"log"
	"net/http"
	"sync"
	"time"
)

// faults is what is currently wrong with the server.
type faults struct {
	mu       sync.Mutex
	status   int
	delay    time.Duration
	byteRate int
	hang     chan struct{} // not nil while hanging; closed by Heal
}

// FailWith answers every request with an HTTP status until Heal.
func (s *Server) FailWith(status int) { s.faults.set(func(f *faults) { f.status = status }) }

// Hang lets requests wait until the client gives up, or Heal, or Close. After
// Heal they are answered.
func (s *Server) Hang() {
	s.faults.set(func(f *faults) {
		if f.hang == nil {
			f.hang = make(chan struct{})
		}
	})
}

// Delay waits before every answer until Heal.
func (s *Server) Delay(d time.Duration) { s.faults.set(func(f *faults) { f.delay = d }) }

// Throttle limits each answer's body to a number of bytes a second until Heal.
func (s *Server) Throttle(bytesPerSecond int) {
	s.faults.set(func(f *faults) { f.byteRate = bytesPerSecond })
}

// Heal ends FailWith, Hang, Delay and Throttle.
func (s *Server) Heal() { s.faults.heal() }

func (f *faults) set(change func(*faults)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faults) heal() {
	f.set(func(f *faults) {
		if f.hang != nil {
			close(f.hang)
		}
		f.status, f.delay, f.byteRate, f.hang = 0, 0, 0, nil
	})
}

func (f *faults) inject(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		status, delay, byteRate, hang := f.status, f.delay, f.byteRate, f.hang
		f.mu.Unlock()
		if hang != nil && !wait(r, hang, nil) {
			return
		}
		if delay > 0 {
			timer := time.NewTimer(delay)
			defer timer.Stop()
			if !wait(r, nil, timer.C) {
				return
			}
		}
		if status != 0 {
			http.Error(w, http.StatusText(status), status)
			return
		}
		if byteRate > 0 {
			w = &slowWriter{ResponseWriter: w, request: r, rate: byteRate}
		}
		next.ServeHTTP(w, r)
	})
}

// wait returns false when the client went away first.
func wait(r *http.Request, released <-chan struct{}, elapsed <-chan time.Time) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-released:
		return true
	case <-elapsed:
		return true
	}
}

// slowWriter passes a tenth of a second's bytes at a time.
type slowWriter struct {
	http.ResponseWriter
	request *http.Request
	rate    int
}

// Write implements io.Writer.
func (w *slowWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		chunk := p[:min(len(p), max(1, w.rate/10))]
		n, err := w.ResponseWriter.Write(chunk)
		written += n
		if err != nil {
			return written, err
		}
		if err := http.NewResponseController(w.ResponseWriter).Flush(); err != nil {
			return written, err
		}
		p = p[len(chunk):]
		timer := time.NewTimer(time.Duration(len(chunk)) * time.Second / time.Duration(w.rate))
		if !wait(w.request, nil, timer.C) {
			timer.Stop()
			return written, w.request.Context().Err()
		}
	}
	return written, nil
}

// quiet keeps failed TLS handshakes of clients under test out of the output.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
