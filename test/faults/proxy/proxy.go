package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options of a Proxy.
type Options struct {
	// Upstream is the server, and Transport how it is reached, with the identity of the
	// operator; nil: http.DefaultTransport.
	Upstream  *url.URL
	Transport http.RoundTripper
	// Classify tells writes from other requests.
	Classify Classifier
	// Kill ends every operator at once, and returns when none can send anything any more.
	Kill func()
	// Faults to inject.
	Faults []Fault
}

// Proxy is a running proxy. Close must be called.
type Proxy struct {
	options Options
	reverse *httputil.ReverseProxy
	server  *http.Server
	address string

	mu sync.Mutex
	// seen counts the writes by class, and applied those that the server accepted, by object.
	seen    map[string]int
	applied map[Object]int
	order   []Arrival
	last    time.Time
	hits    []Hit
	// struck counts the hits of each fault, and total the writes that have a position.
	struck []int
	total  int
	// again is how many writes are left until the fault repeat strikes once more.
	again, repeat int
	// recovering are hits after which the operator has not recovered yet, and recovered is how
	// long the others took.
	recovering []Hit
	recovered  []time.Duration
	watches    map[*watching]bool
	frozen     map[string]chan struct{} // by resource; closed when it thaws
	delays     map[string]time.Duration
	// late is how long each request waits before the server gets it.
	late time.Duration
}

// Start listens on a free port of 127.0.0.1.
func Start(o Options) (*Proxy, error) {
	p := &Proxy{
		options: o, seen: map[string]int{}, applied: map[Object]int{}, last: time.Now(), struck: make([]int, len(o.Faults)),
		watches: map[*watching]bool{}, frozen: map[string]chan struct{}{}, delays: map[string]time.Duration{},
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(o.Upstream)
			r.Out.Host = ""
		},
		Transport: o.Transport, FlushInterval: -1, ErrorLog: quiet(),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start a fault proxy: %w", err)
	}
	p.address = listener.Addr().String()
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: quiet(),
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, opened{}, time.Now())
		},
	}
	go func() { _ = p.server.Serve(listener) }() // it ends with Close
	return p, nil
}

// URL is where the operator sends its requests.
func (p *Proxy) URL() string { return "http://" + p.address }

// Close ends the proxy and every request in it.
func (p *Proxy) Close() error {
	p.mu.Lock()
	for name, thaw := range p.frozen {
		close(thaw)
		delete(p.frozen, name)
	}
	p.mu.Unlock()
	return p.server.Close()
}

// Seen counts the writes that arrived, by class.
func (p *Proxy) Seen() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.seen)
}

// Arrival is when a write of a class arrived.
type Arrival struct {
	Class string
	Time  time.Time
}

// Order is that of the writes that arrived.
func (p *Proxy) Order() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.order)
}

// Applied counts the writes that the server accepted, by object.
func (p *Proxy) Applied() map[Object]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.applied)
}

// Last is when the last write arrived that is no event and no lease.
func (p *Proxy) Last() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Hits are the writes that faults hit, oldest first.
func (p *Proxy) Hits() []Hit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hits)
}

// Struck counts the hits of each fault, in the order of Options.Faults. The repetition of a fault is one more.
func (p *Proxy) Struck() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.struck)
}

// Recoveries are the times from a hit to the next write that the server accepted: of a new
// process if the hit killed the operator, and of the same object otherwise.
func (p *Proxy) Recoveries() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.recovered)
}

// Late makes each request from now on wait before the server gets it; 0: none. Events of open watches are not late.
func (p *Proxy) Late(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = d
}

// wait waits as long as Late says.
func (p *Proxy) wait(ctx context.Context) {
	p.mu.Lock()
	late := p.late
	p.mu.Unlock()
	if late == 0 {
		return
	}
	select {
	case <-time.After(late):
	case <-ctx.Done():
	}
}

// ServeHTTP forwards a request, or makes it go wrong.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Header.Set("Accept", withoutProtobuf(r.Header.Get("Accept")))
	p.wait(r.Context())
	if isWatch(r) {
		p.watch(w, r)
		return
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		p.reverse.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the operator ended while it wrote
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	write, ok := p.options.Classify(r, body)
	if !ok {
		p.reverse.ServeHTTP(w, r)
		return
	}
	p.write(w, r, write, p.strike(write))
}

// strike counts a write and returns what happens to it; "": nothing.
func (p *Proxy) strike(w Write) Action {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[w.Class()]++
	p.total++
	p.order = append(p.order, Arrival{w.Class(), time.Now()})
	if !besides[w.Kind()] {
		p.last = time.Now()
	}
	if p.again--; p.again == 0 {
		return p.hit(w, p.repeat)
	}
	for i, f := range p.options.Faults {
		n := p.seen[w.Class()]
		if f.Class == "" {
			n = p.total
		}
		if f.Class != "" && f.Class != w.Class() || n < f.At || p.struck[i] >= f.Times {
			continue
		}
		if f.Again > 0 {
			p.again, p.repeat = f.Again, i
		}
		return p.hit(w, i)
	}
	return ""
}

// hit notes what a fault does to a write. The lock is held.
func (p *Proxy) hit(w Write, fault int) Action {
	action := p.options.Faults[fault].Action
	if action == KillBefore {
		p.seen[w.Class()]--
		p.total--
	}
	p.struck[fault]++
	hit := Hit{Write: w, Action: action, Time: time.Now()}
	p.hits, p.recovering = append(p.hits, hit), append(p.recovering, hit)
	return action
}

// besides are the kinds that are written beside everything else: such a write does not show that
// anything continues.
var besides = map[string]bool{"events": true, "leases": true}

// write forwards a write, unless the action says otherwise.
func (p *Proxy) write(w http.ResponseWriter, r *http.Request, write Write, action Action) {
	var answer *response
	if action == "" || action.applies() {
		if action != "" {
			// The operator may give up meanwhile; the server shall not.
			r = r.WithContext(context.WithoutCancel(r.Context()))
		}
		answer = &response{header: http.Header{}}
		p.reverse.ServeHTTP(answer, r)
		connected, _ := r.Context().Value(opened{}).(time.Time)
		p.count(write, answer.code, action, connected)
	}
	switch action {
	case "":
		answer.copyTo(w)
	case KillBefore, KillAfter:
		p.options.Kill()
		panic(http.ErrAbortHandler)
	case Conflict:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
	case Throttled:
		w.Header().Set("Retry-After", retryAfter)
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
	case Broken, AppliedBroken:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case Timeout, AppliedTimeout:
		select {
		case <-time.After(timeoutAfter):
		case <-r.Context().Done():
		}
		refuse(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout)
	case Cut, AppliedCut:
		panic(http.ErrAbortHandler)
	}
}

// count notes what the server answered.
func (p *Proxy) count(w Write, code int, action Action, connected time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if code >= http.StatusMultipleChoices {
		return
	}
	p.applied[w.Object()]++
	if action != "" || besides[w.Kind()] {
		return
	}
	p.recovering = slices.DeleteFunc(p.recovering, func(h Hit) bool {
		done := h.Write.Kind() == w.Kind() && h.Write.Namespace == w.Namespace && h.Write.Name == w.Name
		if h.Action.Kills() {
			done = connected.After(h.Time)
		}
		if done {
			p.recovered = append(p.recovered, time.Since(h.Time))
		}
		return done
	})
}

// refuse answers with a Status, as an API server does. A forge's client reads the code.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"injected fault","reason":%q,"code":%d}`, reason, code)
}

// response keeps an answer until it is known what becomes of it.
type response struct {
	code   int
	header http.Header
	body   bytes.Buffer
}

func (a *response) Header() http.Header { return a.header }

func (a *response) WriteHeader(code int) { a.code = code }

func (a *response) Write(text []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	return a.body.Write(text)
}

func (a *response) copyTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes()) // the operator may be gone
}

// withoutProtobuf takes protobuf out of an Accept header.
func withoutProtobuf(accept string) string {
	kept := slices.DeleteFunc(strings.Split(accept, ","), func(part string) bool { return strings.Contains(part, "protobuf") })
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// opened is the key of the time at which a request's connection was opened.
type opened struct{}

// errGone ends a watch.
var errGone = errors.New("watch ended with 410 Gone")
