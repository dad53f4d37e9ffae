package proxy

import (
	"bufio"
	"errors"
	"io"
	"log"
	"maps"
	"net/http"
	"slices"
	"time"
)

// watching is a watch that an operator has open.
type watching struct {
	resource string
	gone     chan struct{} // closed when it is to end
}

// gone is the last event of a watch whose resourceVersion the server has forgotten.
const gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: injected fault","reason":"Expired","code":410}}` + "\n"

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// Watched are the resources that an operator watches, sorted.
func (p *Proxy) Watched() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]bool{}
	for w := range p.watches {
		all[w.resource] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Freeze holds back the events of a resource until Thaw.
func (p *Proxy) Freeze(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen[resource] == nil {
		p.frozen[resource] = make(chan struct{})
	}
}

// Thaw ends Freeze.
func (p *Proxy) Thaw(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if thaw := p.frozen[resource]; thaw != nil {
		close(thaw)
		delete(p.frozen, resource)
	}
}

// Delay holds back each event of a resource for a time.
func (p *Proxy) Delay(resource string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delays[resource] = d
}

// Gone ends all watches of a resource with 410, and returns how many there were. Events that
// are held back are lost: the operator sees only what came of them.
func (p *Proxy) Gone(resource string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for w := range p.watches {
		if w.resource == resource {
			close(w.gone)
			delete(p.watches, w)
			n++
		}
	}
	return n
}

// watch forwards a watch event by event.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request) {
	write, _ := target(r.URL.Path)
	this := &watching{resource: write.Resource, gone: make(chan struct{})}
	p.mu.Lock()
	p.watches[this] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, this)
	}()
	reader, writer := io.Pipe()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-this.gone:
			_ = writer.CloseWithError(errGone)
		case <-r.Context().Done():
			_ = writer.CloseWithError(r.Context().Err())
		case <-stop:
		}
	}()
	header := make(chan *pipeWriter, 1)
	go func() {
		to := &pipeWriter{w: writer, header: http.Header{}, ready: header}
		defer func() {
			if recover() != nil { // ErrorHandler's: the server or the operator is gone
				_ = writer.CloseWithError(io.ErrUnexpectedEOF)
			}
			to.begin(http.StatusBadGateway)
			_ = writer.Close()
		}()
		p.reverse.ServeHTTP(to, r)
	}()
	to := <-header
	maps.Copy(w.Header(), to.header)
	w.WriteHeader(to.code)
	p.forward(w, r, this, bufio.NewReader(reader))
	_ = reader.Close()
}

// forward copies events as long as the operator listens.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, this *watching, from *bufio.Reader) {
	flush, _ := w.(http.Flusher)
	flush.Flush()
	for {
		line, err := from.ReadBytes('\n')
		if len(line) > 0 && err == nil && p.release(r, this) {
			_, err = w.Write(line)
			flush.Flush()
		}
		select {
		case <-this.gone:
			_, _ = io.WriteString(w, gone)
			return
		default:
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			panic(http.ErrAbortHandler)
		}
		if err != nil {
			return
		}
	}
}

// release waits while events of the resource are held back. It returns false if the watch ends
// meanwhile.
func (p *Proxy) release(r *http.Request, this *watching) bool {
	p.mu.Lock()
	thaw, delay := p.frozen[this.resource], p.delays[this.resource]
	p.mu.Unlock()
	var late <-chan time.Time
	switch {
	case thaw != nil:
	case delay > 0:
		late = time.After(delay)
	default:
		return true
	}
	select {
	case <-thaw:
		return true
	case <-late:
		return true
	case <-this.gone:
	case <-r.Context().Done():
	}
	return false
}

// pipeWriter is where the reverse proxy writes a watch to.
type pipeWriter struct {
	w      *io.PipeWriter
	header http.Header
	code   int
	ready  chan<- *pipeWriter
}

func (p *pipeWriter) Header() http.Header { return p.header }

func (p *pipeWriter) WriteHeader(code int) { p.begin(code) }

// begin hands the header on, once.
func (p *pipeWriter) begin(code int) {
	if p.code == 0 {
		p.code = code
		p.ready <- p
	}
}

func (p *pipeWriter) Write(text []byte) (int, error) {
	p.begin(http.StatusOK)
	return p.w.Write(text)
}

// Flush is for the reverse proxy: what is written to a pipe is read at once.
func (p *pipeWriter) Flush() { p.begin(http.StatusOK) }
